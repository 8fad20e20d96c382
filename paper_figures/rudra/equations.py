"""Eqs. 1-7: the update of each protocol, its average staleness, and the rate that goes with it."""

from __future__ import annotations

from paper_figures.rudra.groups import label, modulation_groups, protocol_groups, training_groups
from paper_figures.rudra.readings import counted, erring_half_more, error_steps, errors, runs_of
from paper_figures.rudra.settings import BASE_RATE
from paper_figures.rudra.simulations import identities
from reference_impls.rudra_rates import gradients_per_update, softsync_rate
from suite.claims.measured import exact, point
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.counterfeits import as_if, counterfeit


def runs(profile: str) -> Groups:
    """Of Eqs. 1-4."""
    return protocol_groups()


def runs_eq6(profile: str) -> Groups:
    return modulation_groups(profile)


def runs_eq7(profile: str) -> Groups:
    return {"identities": (identities(),), **training_groups(profile, [(0, 128, 1), (0, 4, 30)])}


def measure_eq1(evidence: Evidence) -> Quantities:
    run = evidence.run("identities")
    yield "batch-gd", exact(run.results["full_batch"], runs=[run.id])


def measure_eq2(evidence: Evidence) -> Quantities:
    hard = evidence.run("hardsync")
    yield "zero-hardsync", counted(float(abs(hard.curve("averages")["average"]).max()), hard)
    several = evidence.runs("n")
    yield "mean-of-sigma", counted(max(run.results["average_gap"] for run in several), *several)


def measure_eq3(evidence: Evidence) -> Quantities:
    run = evidence.run("identities")
    yield "average", exact(run.results["hardsync_mean"], runs=[run.id])


def measure_eq4(evidence: Evidence) -> Quantities:
    run = evidence.run("identities")
    yield "single", exact(run.results["async_single"], runs=[run.id])


def measure_eq5(evidence: Evidence) -> Quantities:
    yield "c-one", exact(gradients_per_update(30, 30))
    yield "c-lambda", exact(gradients_per_update(30, 1) / 30)


def measure_eq6(evidence: Evidence) -> Quantities:
    yield "n30", exact(softsync_rate(BASE_RATE, 30))
    yield "n1", exact(softsync_rate(BASE_RATE, 1))


def measure_eq6_needed(evidence: Evidence) -> Quantities:
    divided, undivided = errors(evidence, "alpha0/30"), errors(evidence, "alpha0")
    near_chance = 89.0  # one who guesses 10,000 images errs less than this once in a thousand times
    held = [b >= near_chance > a for a, b in zip(divided, undivided, strict=False)]
    ids = [run.id for group in ("alpha0/30", "alpha0") for run in runs_of(evidence, group)]
    yield "needed", point(sum(held) / len(held), n=len(held), runs=ids)


@counterfeit("rudra/eq6/needed")
def division_makes_no_difference(evidence: Evidence) -> Evidence:
    return as_if(evidence, "alpha0", like="alpha0/30")


def measure_eq7(evidence: Evidence) -> Quantities:
    run = evidence.run("identities")
    yield "identity", exact(run.results["two_level_mean"], runs=[run.id])


def measure_eq7_errors(evidence: Evidence) -> Quantities:
    yield "same-error", error_steps(evidence, [label((0, 128, 1)), label((0, 4, 30))])


@counterfeit("rudra/eq7/same-error")
def learners_err_half_more(evidence: Evidence) -> Evidence:
    """Thirty learners of four images end with half as many errors again as one of 128."""
    return erring_half_more(evidence, label((0, 4, 30)))


ARTIFACTS = (
    Artifact("rudra/eq1", "Mini-batch gradient descent", runs, (measure_eq1,)),
    Artifact("rudra/eq2", "Average staleness of an update", runs, (measure_eq2,)),
    Artifact("rudra/eq3", "Hardsync's update", runs, (measure_eq3,)),
    Artifact("rudra/eq4", "Async's update", runs, (measure_eq4,)),
    Artifact("rudra/eq5", "n-softsync's update", measures=(measure_eq5,)),
    Artifact("rudra/eq6", "The rate divided by staleness", runs_eq6, (measure_eq6, measure_eq6_needed)),
    Artifact("rudra/eq7", "Hardsync depends on mu lambda alone", runs_eq7, (measure_eq7, measure_eq7_errors)),
)
