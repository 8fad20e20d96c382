"""The protocols of section 3.1 (hardsync, async, n-softsync) and their clocks, counted in simulated runs."""

from __future__ import annotations

from paper_figures.rudra.groups import protocol_groups
from paper_figures.rudra.readings import counted, simulated
from paper_figures.rudra.settings import BASE_RATE, REFERENCE_BATCH
from paper_figures.rudra.simulations import SPLITS
from reference_impls.rudra_rates import hardsync_rate
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities


def runs(profile: str) -> Groups:
    return protocol_groups()


def measure_hardsync(evidence: Evidence) -> Quantities:
    run, same = evidence.run("hardsync"), evidence.run("identities")
    yield "staleness-zero", counted(run.results["largest"], run)
    yield "equals-large-batch", exact(same.results["hardsync_large_batch"], runs=[same.id])
    given = run.results["gradients_by_learner"]
    updates = run.spec.settings["updates"]
    yield "one-gradient-each", counted([min(given) / updates, max(given) / updates], run)


def measure_hardsync_rates(evidence: Evidence) -> Quantities:
    configurations = ((1, 128), (30, 4), (30, 128))  # lambda, mu
    rates = [hardsync_rate(BASE_RATE, learners, mu, REFERENCE_BATCH) for learners, mu in configurations]
    yield "lr-sqrt", exact([rate / BASE_RATE for rate in rates])


def measure_async(evidence: Evidence) -> Quantities:
    run, stalled = evidence.run("async"), evidence.run("stalled")
    yield "one-gradient-one-update", counted(run.spec.settings["updates"] / run.results["gradients"], run)
    yield "unbounded", counted(float(stalled.results["largest"] > 2 * 30), stalled)


def measure_softsync(evidence: Evidence) -> Quantities:
    several, one = evidence.runs("n"), evidence.run("one learner")
    same = evidence.run("identities")
    yield "c-formula", counted([size for run in several for size in run.results["gradients_per_update"]], *several)
    yield "n-lambda-is-async", exact(same.results["async"], runs=[same.id])
    ends = [run.results[end] / n for n, run in zip(SPLITS, several, strict=True) for end in ("smallest", "largest")]
    yield "range", simulated([min(ends), max(ends)], *several)
    means = [run.results["mean"] for run in several]
    yield "mean", simulated([mean / n for n, mean in zip(SPLITS, means, strict=True)], *several)
    yield "mean-exact", simulated(means, *several)
    yield "lambda1", counted(one.results["largest"], one)
    first = several[0]
    yield (
        "one-softsync-not-hardsync",
        counted(first.results["uneven_updates"] / first.spec.settings["updates"], first),
    )
    yield "n1-min-staleness", simulated([means[1] - means[0], means[3] - means[1]], *several)


def measure_clock(evidence: Evidence) -> Quantities:
    several = (*evidence.runs("hardsync"), *evidence.runs("n"))
    # every update is checked to have the timestamp that follows the last one's, from 0 on
    steps = 1.0 + max(run.results["out_of_step"] for run in several)
    yield "increment", counted([0.0 if steps == 1 else 1.0, steps], *several)
    yield "non-negative", counted(min(run.results["smallest"] for run in several), *several)
    yield "clock-below", counted(max(run.results["clock_above"] for run in several), *several)


ARTIFACTS = (
    Artifact("rudra/alg-hardsync", "Hardsync", runs, (measure_hardsync, measure_hardsync_rates)),
    Artifact("rudra/alg-async", "Async", runs, (measure_async,)),
    Artifact("rudra/alg-softsync", "n-softsync", runs, (measure_softsync,)),
    Artifact("rudra/alg-clock", "Timestamps and the vector clock", runs, (measure_clock,)),
)
