"""Table 1: share of computation in a learner's time in the three systems, in a case chosen to be hard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import imagenet_times_group
from paper_figures.rudra.readings import simulated
from paper_figures.rudra.settings import LEARNERS_PER_NODE
from paper_figures.rudra.simulations import ADVERSARIAL, CORES_PER_NODE
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SYSTEMS = {"rudra-base": "base", "rudra-adv": "adv", "rudra-adv-star": "adv*"}


def runs(profile: str) -> Groups:
    return imagenet_times_group()


def measure_overlap(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    shares = {name: run.results[f"overlap {system}"] for name, system in SYSTEMS.items()}
    for name, share in shares.items():
        yield name, simulated(share, run)
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


def draw(evidence: Evidence, figure: Figure) -> None:
    run = evidence.run("times")
    axes = figure.subplots()
    places = range(len(SYSTEMS))
    theirs = [printed_value(f"rudra/table1/{name}") for name in SYSTEMS]
    ours = [run.results[f"overlap {system}"] for system in SYSTEMS.values()]
    axes.bar([p - 0.2 for p in places], theirs, 0.4, label="paper")
    axes.bar([p + 0.2 for p in places], ours, 0.4, label="simulated")
    axes.set_xticks(list(places), [f"Rudra-{s}" for s in SYSTEMS.values()])
    size = ADVERSARIAL["model_bytes"] / 1e6
    case = f"mu = {ADVERSARIAL['batch']}, {ADVERSARIAL['learners']} learners, {size:.0f} MB"
    axes.set(ylabel="computation / (computation + communication), %", title=case)
    axes.legend()


ARTIFACTS = (
    Artifact(
        "rudra/table1",
        "Communication overlap of the three systems",
        runs,
        (measure_overlap, measure_arithmetic),
        draw,
        alt="Printed and simulated share of computation for the three systems.",
    ),
)
