"""Table 1: share of computation in a learner's time in the three systems, in a case chosen to be hard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import imagenet_times_group
from paper_figures.rudra.readings import simulated
from paper_figures.rudra.settings import LEARNERS_PER_NODE
from paper_figures.rudra.simulations import ADVERSARIAL, CORES_PER_NODE
from suite.claims.measured import exact, point
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged, genuine
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SYSTEMS = {"rudra-base": "base", "rudra-adv": "adv", "rudra-adv-star": "adv*"}


def runs(profile: str) -> Groups:
    return imagenet_times_group()


def measure_overlap(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    shares = {name: run.results[f"overlap {system}"] for name, system in SYSTEMS.items()}
    for name in ("rudra-base", "rudra-adv"):
        yield name, simulated(shares[name], run)
    # The model swaps pointers at no cost and gives communication its own cores: it can say nothing but 100%.
    yield "rudra-adv-star", point(shares["rudra-adv-star"], proxy=True, runs=[run.id], note="swaps cost nothing")
    base, adv, star = shares.values()
    yield "order", simulated([adv - base, star - adv], run)
    case = run.spec.settings["overlap"]
    threads = CORES_PER_NODE / LEARNERS_PER_NODE
    yield "setup", exact([case["batch"], threads, case["model_bytes"] / 1e6, case["learners"]], runs=[run.id])


def measure_arithmetic(evidence: Evidence) -> Quantities:
    shares = [printed_value(f"rudra/table1/{name}") / 100 for name in SYSTEMS]
    yield "comm-to-comp", exact([(1 - share) / share for share in shares])
    processors, cores, gigahertz, flops_per_cycle = 4, 8, 3.84, 8
    yield "hardware-node-peak", exact(processors * cores * gigahertz * flops_per_cycle)


def telling(evidence: Evidence, **shares: float) -> Evidence:
    """The simulated systems with other shares, in %."""
    return edited(evidence, lambda run: forged(run, {f"overlap {s}": share for s, share in shares.items()}))


@counterfeit("rudra/table1/rudra-adv", "rudra/table1/order")
def tree_saves_nothing(evidence: Evidence) -> Evidence:
    run = evidence.run("times")
    return telling(evidence, adv=run.results["overlap base"])


@genuine("rudra/table1/rudra-base")
def more_communication(evidence: Evidence) -> Evidence:
    """Pushes and pulls of Rudra-base take 1.4 times as long."""
    share = evidence.run("times").results["overlap base"] / 100
    return telling(evidence, base=100 * share / (share + 1.4 * (1 - share)))


def frame(evidence: Evidence) -> pd.DataFrame:
    """Share of computation in %. Columns: system, source ("printed" or "simulated"), share."""
    import pandas as pd

    ours = evidence.run("times").results
    found = []
    for name, system in SYSTEMS.items():
        printed = printed_value(f"rudra/table1/{name}")
        found.append({"system": f"Rudra-{system}", "source": "printed", "share": printed})
        found.append({"system": f"Rudra-{system}", "source": "simulated", "share": ours[f"overlap {system}"]})
    return pd.DataFrame(found)


def draw(evidence: Evidence, figure: Figure) -> None:
    import seaborn as sns

    from suite.report.style import INK, PALETTE

    table = frame(evidence)
    axes = figure.subplots()
    ours, theirs = table[table["source"] == "simulated"], table[table["source"] == "printed"]
    sns.barplot(ours, x="system", y="share", color=PALETTE[0], width=0.5, ax=axes, label="simulated", legend=False)
    axes.scatter(
        theirs["system"], theirs["share"], s=60, facecolors="white", edgecolors=INK, zorder=3, label="printed"
    )
    size = ADVERSARIAL["model_bytes"] / 1e6
    case = f"mu = {ADVERSARIAL['batch']}, {ADVERSARIAL['learners']} learners, {size:.0f} MB"
    axes.set(xlabel="", ylabel="computation / (computation + communication), %", title=case)
    axes.legend(loc="upper left")


ARTIFACTS = (
    Artifact(
        "rudra/table1",
        "Communication overlap of the three systems",
        runs,
        (measure_overlap, measure_arithmetic),
        draw,
        alt="Printed and simulated share of computation for the three systems.",
        frame=frame,
    ),
)
