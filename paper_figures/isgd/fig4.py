"""Fig. 4: the data-parallel scheme of Caffe, as section 4 describes it.

A batch is cut into as many equal parts as there are GPUs; each computes on one; losses and gradients are summed
along a tree in log2 n steps; the master updates the weights and broadcasts them the same way back. The numbers in
the diagram drawn here are those of a stored run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.isgd import readings, settings
from paper_figures.isgd.reduction_tree import tree
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = 4  # devices in the diagram


def runs(profile: str) -> Groups:
    return settings.parallel()


def measure(evidence: Evidence) -> Quantities:
    """Parts, tree and replicas of the run, over all its worker counts."""
    yield from readings.data_parallelism(evidence)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Boxes and arrows; part sizes and rounds are those of the stored run and its tree."""
    results = evidence.run("parallel").results
    sizes = results["parts"][results["workers"].index(DRAWN)]
    rounds = tree(DRAWN)
    axes = figure.subplots()
    axes.set_axis_off()
    levels = {"batch": 5.2, "part": 4.2, "device": 3.2}
    across = [1.5 + 2.4 * device for device in range(DRAWN)]
    middle = sum(across) / DRAWN
    _box(axes, middle, levels["batch"], f"batch of {sum(sizes)} images")
    for device, (x, size) in enumerate(zip(across, sizes, strict=True)):
        _arrow(axes, (middle, levels["batch"]), (x, levels["part"]))
        _box(axes, x, levels["part"], f"{size} images")
        _arrow(axes, (x, levels["part"]), (x, levels["device"]))
        _box(axes, x, levels["device"], f"GPU {device}\nforward, backward")
    below = levels["device"]
    for number, pairs in enumerate(rounds, start=1):
        lower = below - 1.0
        axes.text(-0.2, (below + lower) / 2 - 0.1, f"reduce,\nstep {number}", fontsize="small", va="center")
        holding = {device for pair in rounds[number - 1 :] for edge in pair for device in edge}
        for device in holding:
            if device in {sender for sender, _ in pairs}:
                continue
            _arrow(axes, (across[device], below), (across[device], lower))
            _box(axes, across[device], lower, "loss, gradient")
        for sender, receiver in pairs:
            _arrow(axes, (across[sender], below), (across[receiver] + 0.6, lower))
        below = lower
    _arrow(axes, (across[0], below), (across[0], below - 1.0))
    _box(axes, across[0], below - 1.0, "master updates w\n(barrier before)")
    axes.annotate(
        f"broadcast in {len(rounds)} steps, the tree backwards",
        (across[-1], levels["device"] - 0.3),
        (across[0] + 1.2, below - 1.0),
        arrowprops={"arrowstyle": "->", "connectionstyle": "angle,angleA=0,angleB=90", "color": "C3"},
        va="center",
        color="C3",
        fontsize="small",
    )
    axes.set_xlim(-0.4, across[-1] + 1.4)
    axes.set_ylim(below - 1.5, levels["batch"] + 0.5)


def _box(axes: Axes, x: float, y: float, text: str) -> None:
    frame = {"boxstyle": "round", "facecolor": "white", "edgecolor": "C0"}
    axes.text(x, y, text, ha="center", va="center", fontsize="small", color="#111111", zorder=3, bbox=frame)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    arrow = {"arrowstyle": "->", "color": "0.4", "shrinkA": 12, "shrinkB": 14}
    axes.annotate("", (end[0], end[1]), (start[0], start[1]), arrowprops=arrow, zorder=1)


ARTIFACTS = (
    Artifact(
        "isgd/fig4",
        "Diagram of the data-parallel scheme used by Caffe",
        runs,
        (measure,),
        draw,
        alt="A batch is cut into four parts; four GPUs compute on one each; two steps of a tree sum losses and "
        "gradients on the first, which updates the weights and broadcasts them back.",
        size=(7.2, 5.6),
    ),
)
