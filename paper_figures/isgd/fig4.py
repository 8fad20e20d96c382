"""Fig. 4: the data-parallel scheme of Caffe, as section 4 describes it.

A batch is cut into as many equal parts as there are GPUs; each computes on one; losses and gradients are summed
along a tree in log2 n steps; the master updates the weights and broadcasts them the same way back.
"""

from __future__ import annotations

from paper_figures.isgd.settings import SMALL
from suite.papers.figure import Artifact, Axes, Figure, Frame

DEVICES = 4  # in the diagram
LEVELS = {"batch": 5.2, "part": 4.2, "device": 3.2}

PANEL = Artifact("isgd/fig4", "Diagram of the data-parallel scheme used by Caffe", size=(7.2, 5.6))


def tree(devices: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The binary tree along which Caffe sums over devices: (sender, receiver) pairs, round by round.

    In round r the devices still holding an unsent sum stand 2^r apart, and every second one sends to the one before
    it. Device 0 ends with the sum of all; backwards the rounds broadcast from it.
    """
    rounds, apart = [], 1
    while apart < devices:
        rounds.append(tuple((device + apart, device) for device in range(0, devices - apart, 2 * apart)))
        apart *= 2
    return tuple(rounds)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """A batch is cut into four parts; four GPUs compute on one each; two steps of a tree sum losses and gradients on
    the first, which updates the weights and broadcasts them back.
    """
    axes = figure.subplots()
    axes.set_axis_off()
    across = [1.5 + 2.4 * device for device in range(DEVICES)]
    middle = sum(across) / DEVICES
    _box(axes, middle, LEVELS["batch"], f"batch of {SMALL['batch']} images")
    for device, x in enumerate(across):
        _arrow(axes, (middle, LEVELS["batch"]), (x, LEVELS["part"]))
        _box(axes, x, LEVELS["part"], f"{SMALL['batch'] // DEVICES} images")
        _arrow(axes, (x, LEVELS["part"]), (x, LEVELS["device"]))
        _box(axes, x, LEVELS["device"], f"GPU {device}\nforward, backward")
    below = _draw_rounds(axes, across)
    _arrow(axes, (across[0], below), (across[0], below - 1.0))
    _box(axes, across[0], below - 1.0, "master updates w\n(barrier before)")
    axes.annotate(
        f"broadcast in {len(tree(DEVICES))} steps, the tree backwards",
        (across[-1], LEVELS["device"] - 0.3),
        (across[0] + 1.2, below - 1.0),
        arrowprops={"arrowstyle": "->", "connectionstyle": "angle,angleA=0,angleB=90", "color": "C3"},
        va="center",
        color="C3",
        fontsize="small",
    )
    axes.set_xlim(-0.4, across[-1] + 1.4)
    axes.set_ylim(below - 1.5, LEVELS["batch"] + 0.5)


def _draw_rounds(axes: Axes, across: list[float]) -> float:
    """The rounds of the sum, one below the other; returns the height of the last."""
    rounds, below = tree(DEVICES), LEVELS["device"]
    for number, pairs in enumerate(rounds, start=1):
        lower = below - 1.0
        axes.text(-0.2, (below + lower) / 2 - 0.1, f"reduce,\nstep {number}", fontsize="small", va="center")
        # the devices that hold a sum after this round: those of it and of later rounds that do not send in it
        senders = {sender for sender, _ in pairs}
        for device in {device for later in rounds[number - 1 :] for edge in later for device in edge} - senders:
            _arrow(axes, (across[device], below), (across[device], lower))
            _box(axes, across[device], lower, "loss, gradient")
        for sender, receiver in pairs:
            _arrow(axes, (across[sender], below), (across[receiver] + 0.6, lower))
        below = lower
    return below


def _box(axes: Axes, x: float, y: float, text: str) -> None:
    frame = {"boxstyle": "round", "facecolor": "white", "edgecolor": "C0"}
    axes.text(x, y, text, ha="center", va="center", fontsize="small", color="#111111", zorder=3, bbox=frame)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    arrow = {"arrowstyle": "->", "color": "0.4", "shrinkA": 12, "shrinkB": 14}
    axes.annotate("", end, start, arrowprops=arrow, zorder=1)
