"""Drawings that several artifacts share: the three systems, error against time, and the error of predicted times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import label
from paper_figures.rudra.readings import CifarTimes, runs_of
from paper_figures.rudra.settings import BATCHES, LEARNERS, cifar_server, grid, splitting
from paper_figures.rudra.simulations import BASELINE, CALIBRATED, TABLE2, TABLE3
from suite.papers.artifact import Evidence, Missing
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = {"base": 6, "adv": 12, "adv*": 12}  # learners of the diagrams


def draw_system(architecture: str, figure: Figure) -> None:
    """Nodes and edges as the simulated object names them, in layers by distance from the weights."""
    from suite.parameter_server.placement import simulation  # torch, which listing must not import

    learners = DRAWN[architecture]
    settings = cifar_server(30) | {"architecture": architecture}
    if architecture != "base":
        settings["tree"] = {"per_leaf": 4, "fan_out": 4}
    edges = simulation(settings, learners, 1, 4, 0).edges()
    axes = figure.subplots()
    axes.set_axis_off()
    places = _layers(edges)
    for sender, receiver, what in edges:
        colour = "C3" if what == "gradients" else "C0"
        bend = 0.45 if places[sender][1] == places[receiver][1] else 0.12  # around the nodes between them
        axes.annotate(
            "",
            xy=places[receiver],
            xytext=places[sender],
            arrowprops={
                "arrowstyle": "->",
                "color": colour,
                "alpha": 0.7,
                "shrinkA": 12,
                "shrinkB": 12,
                "connectionstyle": f"arc3,rad={bend}",
            },
        )
    for name, (x, y) in places.items():
        server = not name.startswith("learner")
        face = "0.85" if server else "white"
        text = name if server else name.removeprefix("learner ")
        axes.text(x, y, text, ha="center", va="center", fontsize=8, bbox={"boxstyle": "round", "facecolor": face})
    _legend(axes)


def _layers(edges: list[tuple[str, str, str]]) -> dict[str, tuple[float, float]]:
    """Places of all nodes: the server at the top, each node one layer below the receiver of its gradients."""
    parent = {sender: receiver for sender, receiver, what in edges if what == "gradients"}
    names = dict.fromkeys([name for edge in edges for name in edge[:2]])

    def depth(name: str) -> int:
        return 0 if name not in parent else 1 + depth(parent[name])

    layers: dict[int, list[str]] = {}
    for name in names:
        layers.setdefault(depth(name), []).append(name)
    deepest = max(layers)
    return {
        name: ((at + 0.5) / len(layer), 1 - level / max(deepest, 1) * 0.85)
        for level, layer in layers.items()
        for at, name in enumerate(layer)
    }


def _legend(axes: Axes) -> None:
    axes.plot([], [], color="C3", label="gradients")
    axes.plot([], [], color="C0", label="weights")
    axes.legend(loc="upper left", fontsize=8)
    axes.set(xlim=(0, 1), ylim=(0, 1.1))


def draw_tradeoff(protocol: str, evidence: Evidence, figure: Figure) -> None:
    """Error against virtual time where there are errors; contours of time over the grid beside it.

    Raises Missing where the profile trains, but none of its runs is stored.
    """
    configurations = [c for c in [*grid(protocol), (0, 128, 30)] if label(c) in evidence.groups]
    left, right = figure.subplots(1, 2)
    predicted = CifarTimes(evidence)
    for mu in BATCHES:
        points = [(k, predicted[splitting(protocol, k), mu, k]) for k in LEARNERS]
        right.plot(*zip(*points, strict=True), marker="o", markersize=3, label=f"mu = {mu}")
    right.set(xscale="log", yscale="log", xlabel="learners", ylabel="predicted seconds, 140 epochs")
    right.legend(fontsize=7)
    shown = 0
    for configuration in dict.fromkeys(configurations):
        try:
            runs = runs_of(evidence, label(configuration))
        except Missing:
            continue
        shown += 1
        for run in runs:
            left.scatter(run.results["virtual_seconds"], 100 * run.results["test_error"], s=16)
            where = (run.results["virtual_seconds"], 100 * run.results["test_error"])
            note = f"{label(configuration)}, {run.results['epoch']:.0f} epochs"
            left.annotate(note, where, fontsize=6, xytext=(3, 3), textcoords="offset points")
    left.set(xlabel="virtual seconds of the run", ylabel="test error (%)")
    if shown:
        left.set_xscale("log")
    elif configurations:
        raise Missing(f"none of the {len(configurations)} configurations is trained at profile {evidence.profile}")
    else:
        left.text(0.5, 0.5, "no training at this profile", ha="center", transform=left.transAxes)


def draw_times(evidence: Evidence, figure: Figure) -> None:
    """Predicted against printed time, calibration rows apart, and the error of each row."""
    predicted = CifarTimes(evidence)
    rows = [(f"rudra/table2/r{at:02d}-training-time", row) for at, row in enumerate(TABLE2, 1)]
    rows += [(f"rudra/table3/r{at:02d}-training-time", row) for at, row in enumerate(TABLE3, 1) if row[0] == 0]
    rows += [("rudra/table3/baseline-time", BASELINE)]
    axes = figure.subplots()
    for at, (claim, row) in enumerate(rows):
        theirs = printed_value(claim)
        off = 100 * (predicted[row] / theirs - 1)
        fitted = row in CALIBRATED
        axes.barh(at, off, color="0.7" if fitted else "C0")
        side = "left" if off >= 0 else "right"
        axes.text(off, at, f" {predicted[row]:.0f} / {theirs:.0f} s ", va="center", ha=side, fontsize=6)
    axes.axvspan(-20, 20, color="0.5", alpha=0.12)
    axes.set_yticks(range(len(rows)), [label(row) for _, row in rows], fontsize=7)
    axes.set(xlabel="predicted over printed time, error in % (grey: calibrated on)", xlim=(-45, 55))
    axes.invert_yaxis()
