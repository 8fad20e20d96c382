"""The three systems (section 3.3): Figs. 1-3 drawn from the simulated objects, and Table 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.machine import LEARNERS_PER_NODE, cifar_server
from paper_figures.rudra.protocols import counted, simulated
from paper_figures.rudra.simulations import (
    ADVERSARIAL,
    CORES_PER_NODE,
    identities,
    imagenet_messages,
    imagenet_times,
    messages,
    printed,
)
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = {"base": 6, "adv": 12, "adv*": 12}  # learners of the diagrams


def fig1_runs(profile: str) -> Groups:
    return {"base": (messages(1, 4),), "async": (messages(30, 4),)}


def fig1(evidence: Evidence) -> Quantities:
    runs = (evidence.run("base"), evidence.run("async"))
    book = [run.results for run in runs]
    yield "pull-skipped-when-current", counted(sum(b["needless_pulls"] for b in book), *runs)
    yield "message-size", counted(max(b["pushed_scalars"] for b in book), *runs)
    single = all(b["overlapping_messages"] == 0 and b["served"] > 0 for b in book)
    yield "one-by-one", counted(float(single), *runs)
    recorded = [
        sum(b["gradients_by_learner"]) == b["gradients"]
        and run.spec.settings["updates"] * b["gradients_per_update"][0] == b["gradients"]
        for run, b in zip(runs, book, strict=True)
    ]
    yield "vector-clock-recorded", counted(float(all(recorded)), *runs)


def tree_runs(profile: str) -> Groups:
    """adv and adv* at the configuration of Table 4."""
    return {
        "adv": (imagenet_messages("adv", 1, 4, 54),),
        "adv*": (imagenet_messages("adv*", 1, 4, 54),),
        "identities": (identities(),),
        "times": (imagenet_times(),),
    }


def fig2(evidence: Evidence) -> Quantities:
    same, adv = evidence.run("identities"), evidence.run("adv")
    yield "tree-average", exact(same.results["tree"], runs=[same.id])
    # servers that hold a shard each would attach several timestamps to one gradient
    yield "one-timestamp", counted(adv.results["timestamps_per_gradient"], adv)


def fig2_times(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    yield "push-10ms", simulated(1000 * run.results["push_seconds"], run)
    yield "incast-1s", simulated(run.results["incast_seconds"], run)


def fig3(evidence: Evidence) -> Quantities:
    adv, star = evidence.run("adv"), evidence.run("adv*")
    yield "push-ordered", counted(star.results["out_of_order"], star)
    yield "mu-unchanged", counted(star.results["gradients"] / star.results["batches_applied"], star)
    yield "staleness-higher", simulated(star.results["mean"] - adv.results["mean"], adv, star)


def draw_system(architecture: str, figure: Figure) -> None:
    """Nodes and edges as the simulated object names them, in layers by distance from the weights."""
    from suite.parameter_server.placement import simulation

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


def draw_fig1(evidence: Evidence, figure: Figure) -> None:
    draw_system("base", figure)


def draw_fig2(evidence: Evidence, figure: Figure) -> None:
    draw_system("adv", figure)


def draw_fig3(evidence: Evidence, figure: Figure) -> None:
    draw_system("adv*", figure)


# --- Table 1

SYSTEMS = {"rudra-base": "base", "rudra-adv": "adv", "rudra-adv-star": "adv*"}


def table1_runs(profile: str) -> Groups:
    return {"times": (imagenet_times(),)}


def table1(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    shares = {name: run.results[f"overlap {system}"] for name, system in SYSTEMS.items()}
    for name, share in shares.items():
        yield name, simulated(share, run)
    base, adv, star = shares.values()
    yield "order", simulated([adv - base, star - adv], run)
    case = run.spec.settings["overlap"]
    threads = CORES_PER_NODE / LEARNERS_PER_NODE
    yield "setup", exact([case["batch"], threads, case["model_bytes"] / 1e6, case["learners"]], runs=[run.id])


def table1_arithmetic(evidence: Evidence) -> Quantities:
    shares = [printed(f"table1/{name}")[0] / 100 for name in SYSTEMS]
    yield "comm-to-comp", exact([(1 - share) / share for share in shares])
    processors, cores, gigahertz, flops_per_cycle = 4, 8, 3.84, 8
    yield "hardware-node-peak", exact(processors * cores * gigahertz * flops_per_cycle)


def draw_table1(evidence: Evidence, figure: Figure) -> None:
    run = evidence.run("times")
    axes = figure.subplots()
    places = range(len(SYSTEMS))
    axes.bar([p - 0.2 for p in places], [printed(f"table1/{n}")[0] for n in SYSTEMS], 0.4, label="paper")
    axes.bar(
        [p + 0.2 for p in places], [run.results[f"overlap {s}"] for s in SYSTEMS.values()], 0.4, label="simulated"
    )
    axes.set_xticks(list(places), [f"Rudra-{s}" for s in SYSTEMS.values()])
    axes.set(ylabel="computation / (computation + communication), %", title=_case())
    axes.legend()


def _case() -> str:
    return "mu = {batch}, {learners} learners, {size:.0f} MB".format(
        size=ADVERSARIAL["model_bytes"] / 1e6, **ADVERSARIAL
    )


SYSTEM_ARTIFACTS = (
    Artifact(
        "rudra/fig1",
        "Rudra-base: learners and one parameter server",
        fig1_runs,
        (fig1,),
        draw_fig1,
        alt="Six learners, each sending gradients to one server and receiving weights from it.",
    ),
    Artifact(
        "rudra/fig2",
        "Rudra-adv: a tree of servers, leaves beside their learners",
        tree_runs,
        (fig2, fig2_times),
        draw_fig2,
        alt="Twelve learners beneath three leaves beneath a root; gradients go up and weights come down the tree.",
    ),
    Artifact(
        "rudra/fig3",
        "Rudra-adv*: weights broadcast down a tree of learners",
        tree_runs,
        (fig3,),
        draw_fig3,
        alt="Gradients go up a tree of servers; weights go from the root to learner 0 and down a tree of learners.",
    ),
)
TABLE1 = Artifact(
    "rudra/table1",
    "Communication overlap of the three systems",
    table1_runs,
    (table1, table1_arithmetic),
    draw_table1,
    alt="Printed and simulated share of computation for the three systems.",
)
