"""Fig. 7: error against time under softsync with (a) n = lambda, the stalest, and (b) n = 1, the least stale."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from paper_figures.rudra import tradeoff
from paper_figures.rudra.groups import cifar_times_group, label, training_groups
from paper_figures.rudra.readings import (
    CifarTimes,
    counted,
    error_steps,
    final_error,
    joined,
    simulated,
)
from paper_figures.rudra.settings import LEARNERS, MANY, grid
from paper_figures.rudra.simulations import clock, identities, messages
from suite.claims.measured import Measured, exact, interval
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities, row_by_row
from suite.papers.counterfeits import counterfeit, replaced, rerun, told_as
from suite.runs.store import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs_a(profile: str) -> Groups:
    return {
        **cifar_times_group(),
        **training_groups(profile, [*grid("lambda-softsync"), (0, 128, 30)]),
        "mu 4": tuple(messages(k, 4, k, 30_000) for k in MANY),
        "alike": tuple(clock(k, k, gradients=30_000) for k in MANY),
        "identities": (identities(),),
    }


def runs_b(profile: str) -> Groups:
    return {
        **cifar_times_group(),
        **training_groups(profile, grid("1-softsync")),
        "zero jitter": tuple(clock(1, k, jitter=0.0, gradients=30_000) for k in LEARNERS),
        "pulls": (messages(1, 4), messages(30, 4)),
        **training_groups(profile, [(30, 4, 30), (30, 128, 30), (2, 4, 2), (2, 128, 2)]),
    }


def measure_a_protocol(evidence: Evidence) -> Quantities:
    mu4, alike, same = evidence.runs("mu 4"), evidence.runs("alike"), evidence.run("identities")
    yield "mu4-staleness", between_orders((mu4[0], alike[0]), (mu4[-1], alike[-1]))
    yield "lambda1-is-hardsync", exact(same.results["one_learner_softsync"], runs=[same.id])
    largest = max(run.results["largest"] / k for k, run in zip(MANY, alike, strict=True))
    yield "max-2lambda", simulated(largest, *alike)


def between_orders(*pairs: tuple[Run, Run]) -> Measured:
    """Average staleness where pulls wait at the server, with intervals to where each follows its push at once.

    Each pair holds a run of either order, which the paper does not state.
    """
    means = [(waiting.results["mean"], at_once.results["mean"]) for waiting, at_once in pairs]
    waiting, low, high = [m[0] for m in means], [min(m) for m in means], [max(m) for m in means]
    note = "from pulls that wait at the server to pulls that follow their push at once"
    ids = [run.id for pair in pairs for run in pair]
    return interval(waiting, low, high, runs=ids, note=note)


def measure_a_times(evidence: Evidence) -> Quantities:
    times = CifarTimes(evidence)
    yield "time-jump", times.simulated(times[30, 4, 30] - times[30, 128, 30])


def measure_a_errors(evidence: Evidence) -> Quantities:
    stalest = label((30, 128, 30))
    yield from row_by_row(
        [
            ("degradation-larger", partial(error_steps, evidence, [label((0, 128, 30)), stalest])),
            ("mitigated-by-small-mu", partial(error_steps, evidence, [label((30, 4, 30)), stalest])),
            ("mu4-immune", partial(worst_of_mu_4, evidence)),
        ]
    )


def worst_of_mu_4(evidence: Evidence) -> Measured:
    """The highest error along the contour mu = 4."""
    return max((final_error(evidence, label((k, 4, k))) for k in LEARNERS), key=lambda found: found.values[0])


def draw_a(evidence: Evidence, figure: Figure) -> None:
    tradeoff.draw("lambda-softsync", evidence, figure)


@counterfeit("rudra/fig7a/max-2lambda")
def uneven_learners(evidence: Evidence) -> Evidence:
    """A gradient's time varies by three times its mean."""
    return rerun(evidence, lambda s: {**s, "clock": {"jitter": 3.0}, "updates": 2000, "warm_up": 600}, "alike")


def measure_b_protocol(evidence: Evidence) -> Quantities:
    alike = evidence.runs("zero jitter")
    yield "staleness-one", counted([run.results["mean"] for run in alike], *alike)
    one, many = evidence.runs("pulls")
    moved = [run.results["pulls"] / run.results["pushes"] for run in (one, many)]
    yield "fewer-pulls", simulated(moved[1] - moved[0], one, many)


def measure_b_times(evidence: Evidence) -> Quantities:
    times = CifarTimes(evidence)
    yield "no-slowdown", times.simulated(times[18, 4, 18] - times[1, 4, 18])


def measure_b_errors(evidence: Evidence) -> Quantities:
    corners = [(mu, k) for mu in (4, 128) for k in (2, 30)]
    found = [error_steps(evidence, [label((k, mu, k)), label((1, mu, k))]) for mu, k in corners]
    yield "like-lambda-softsync", joined(found)


@counterfeit("rudra/fig7b/fewer-pulls")
def protocols_exchanged(evidence: Evidence) -> Evidence:
    one, many = evidence.runs("pulls")
    return replaced(evidence, {one.id: told_as(one, many), many.id: told_as(many, one)})


def draw_b(evidence: Evidence, figure: Figure) -> None:
    tradeoff.draw("1-softsync", evidence, figure)


ARTIFACTS = (
    Artifact(
        "rudra/fig7a",
        "Error against time under lambda-softsync",
        runs_a,
        (measure_a_protocol, measure_a_times, measure_a_errors),
        draw_a,
        alt="Left: test error against training time, printed and ours; right: predicted time against learners.",
        size=(9.5, 5.0),
        frame=partial(tradeoff.frame, "lambda-softsync"),
    ),
    Artifact(
        "rudra/fig7b",
        "Error against time under 1-softsync",
        runs_b,
        (measure_b_protocol, measure_b_times, measure_b_errors),
        draw_b,
        alt="Left: test error against training time, printed and ours; right: predicted time against learners.",
        size=(9.5, 5.0),
        frame=partial(tradeoff.frame, "1-softsync"),
    ),
)
