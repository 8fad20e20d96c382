"""Figs. 1 to 3: the three systems drawn from the simulated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.settings import cifar_server

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
        frame = {"boxstyle": "round", "facecolor": face}
        axes.text(x, y, text, ha="center", va="center", fontsize=8, color="#111111", bbox=frame)  # dark on any paper
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
    axes.plot([], [], color="C3", linestyle="-", label="gradients")
    axes.plot([], [], color="C0", linestyle="-", label="weights")
    axes.legend(loc="upper left", fontsize=8)
    axes.set(xlim=(0, 1), ylim=(0, 1.1))
