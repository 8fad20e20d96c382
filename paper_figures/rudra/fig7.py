"""Fig. 7: error against time under softsync with (a) n = lambda, the stalest, and (b) n = 1, the least stale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import cifar_times_group, label, training_groups
from paper_figures.rudra.plots import draw_tradeoff
from paper_figures.rudra.readings import CifarTimes, counted, error_steps, final_error, joined, simulated
from paper_figures.rudra.settings import LEARNERS, MANY, grid
from paper_figures.rudra.simulations import clock, identities, messages
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

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
    yield "mu4-staleness", simulated([mu4[0].results["mean"], mu4[-1].results["mean"]], mu4[0], mu4[-1])
    yield "lambda1-is-hardsync", exact(same.results["one_learner_softsync"], runs=[same.id])
    largest = max(run.results["largest"] / k for k, run in zip(MANY, alike, strict=True))
    yield "max-2lambda", simulated(largest, *alike)


def measure_a_times(evidence: Evidence) -> Quantities:
    times = CifarTimes(evidence)
    yield "time-jump", times.simulated(times[30, 4, 30] - times[30, 128, 30])


def measure_a_errors(evidence: Evidence) -> Quantities:
    yield "degradation-larger", error_steps(evidence, [label((0, 128, 30)), label((30, 128, 30))])
    yield "mitigated-by-small-mu", error_steps(evidence, [label((30, 4, 30)), label((30, 128, 30))])
    if evidence.profile == "paper":
        found = [final_error(evidence, label((k, 4, k))) for k in LEARNERS]
        yield "mu4-immune", max(found, key=lambda value: value.values[0])


def draw_a(evidence: Evidence, figure: Figure) -> None:
    draw_tradeoff("lambda-softsync", evidence, figure)


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
    if evidence.profile == "paper":
        corners = [(mu, k) for mu in (4, 128) for k in (2, 30)]
        found = [error_steps(evidence, [label((k, mu, k)), label((1, mu, k))]) for mu, k in corners]
        yield "like-lambda-softsync", joined(found)


def draw_b(evidence: Evidence, figure: Figure) -> None:
    draw_tradeoff("1-softsync", evidence, figure)


ARTIFACTS = (
    Artifact(
        "rudra/fig7a",
        "Error against time under lambda-softsync",
        runs_a,
        (measure_a_protocol, measure_a_times, measure_a_errors),
        draw_a,
        alt="Left: test error against virtual time; right: predicted time against learners for each mu.",
        size=(9.0, 4.0),
    ),
    Artifact(
        "rudra/fig7b",
        "Error against time under 1-softsync",
        runs_b,
        (measure_b_protocol, measure_b_times, measure_b_errors),
        draw_b,
        alt="Left: test error against virtual time; right: predicted time against learners for each mu.",
        size=(9.0, 4.0),
    ),
)
