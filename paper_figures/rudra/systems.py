"""Figs. 1 to 3: Rudra-base, Rudra-adv and Rudra-adv*, drawn from the simulated systems.

Learners of Rudra-base push gradients to one server and pull weights from it, one message at a time. In Rudra-adv a
tree of servers averages gradients on their way; in Rudra-adv* weights come down a tree of learners.
"""

from __future__ import annotations

from functools import partial

from paper_figures.rudra.plans import tree_groups
from paper_figures.rudra.settings import INTERCONNECT
from suite.claims.intervals import Interval, over_ends
from suite.papers.figure import Artifact, Figure, Frame

FIG1 = Artifact("rudra/fig1", "Rudra-base: learners and one parameter server")
FIG2 = Artifact(
    "rudra/fig2",
    "Rudra-adv: a tree of servers, leaves beside their learners",
    lambda profile: tree_groups(),
    alt="Twelve learners beneath three leaves beneath a root; gradients go up and weights come down the tree.",
)
FIG3 = Artifact(
    "rudra/fig3",
    "Rudra-adv*: weights broadcast down a tree of learners",
    lambda profile: tree_groups(),
    alt="Gradients go up a tree of servers; weights go from the root to learner 0 and down a tree of learners.",
)

MODEL_BYTES, PUSHES = 300_000_000, 16  # of the example in section 3.3
IDLE = MODEL_BYTES / INTERCONNECT  # seconds of a push over an idle link at the printed bandwidth


@FIG2.quantity("push-10ms")
def push(frame: Frame) -> float:
    """Milliseconds of a push over an idle link."""
    return 1000 * IDLE


@FIG2.quantity("incast-1s", ["times"], note="from the printed bandwidth to the one that Table 4 implies")
def incast(frame: Frame) -> Interval:
    """Seconds of sixteen pushes to one receiver.

    The paper prints nothing of contention. At most there is none; the bandwidth that the times of Table 4 imply,
    contention and whatever else the cost model lacks included, is taken for the other end.
    """
    effective = float(frame.one("times")["incast_seconds"])
    return over_ends(effective, (PUSHES * IDLE, effective))


@FIG3.quantity("staleness-higher", ["adv", "adv*"])
def staler(frame: Frame) -> float:
    """By how many updates gradients are staler on average in Rudra-adv* than in Rudra-adv."""
    return float(frame.one("adv*")["mean"] - frame.one("adv")["mean"])


# ---------------------------------------------------------------- drawing


@FIG1.drawing
def draw_base(frame: Frame, figure: Figure) -> None:
    """Six learners, each sending gradients to one server and receiving weights from it."""
    draw_system("base", 6, frame, figure)
    (axes,) = figure.axes
    box = {"boxstyle": "round", "facecolor": "none", "linestyle": "--"}
    for height, name in ((1.0, "statistics server"), (0.86, "data server")):
        axes.text(0.85, height, f"{name} (not simulated)", ha="center", va="center", fontsize=8, bbox=box)


def draw_system(architecture: str, learners: int, frame: Frame, figure: Figure) -> None:
    """Nodes and edges as the processes of Table 1 are laid out, in layers by distance from the weights."""
    from suite.parameter_server.servers import Layout

    edges = Layout(learners, architecture, per_leaf=4, fan_out=4).edges()
    axes = figure.subplots()
    axes.set_axis_off()
    places = layers(edges)
    for sender, receiver, what in edges:
        level = places[sender][1] == places[receiver][1]  # two learners: the arrow goes around those between them
        bend = 0.45 if level else 0.12
        arrow = {"arrowstyle": "->", "color": "C3" if what == "gradients" else "C0", "alpha": 0.7}
        arrow |= {"shrinkA": 12, "shrinkB": 12, "connectionstyle": f"arc3,rad={bend}"}
        axes.annotate("", xy=places[receiver], xytext=places[sender], arrowprops=arrow)
    for name, (x, y) in places.items():
        text = name.removeprefix("learner ")
        box = {"boxstyle": "round", "facecolor": "white" if name.startswith("learner") else "0.85"}
        axes.text(x, y, text, ha="center", va="center", fontsize=8, color="#111111", bbox=box)  # dark on any paper
    axes.plot([], [], color="C3", linestyle="-", label="gradients")
    axes.plot([], [], color="C0", linestyle="-", label="weights")
    axes.legend(loc="upper left", fontsize=8)
    axes.set(xlim=(0, 1), ylim=(-0.3 if architecture == "adv*" else 0, 1.1))


FIG2.drawing(partial(draw_system, "adv", 12))
FIG3.drawing(partial(draw_system, "adv*", 12))


def layers(edges: list[tuple[str, str, str]]) -> dict[str, tuple[float, float]]:
    """Places of all nodes: the server at the top, each node one layer below the receiver of its gradients."""
    parent = {sender: receiver for sender, receiver, what in edges if what == "gradients"}
    names = dict.fromkeys([name for edge in edges for name in edge[:2]])

    def depth(name: str) -> int:
        return 0 if name not in parent else 1 + depth(parent[name])

    found: dict[int, list[str]] = {}
    for name in names:
        found.setdefault(depth(name), []).append(name)
    deepest = max(found)
    return {
        name: ((at + 0.5) / len(layer), 1 - level / max(deepest, 1) * 0.85)
        for level, layer in found.items()
        for at, name in enumerate(layer)
    }
