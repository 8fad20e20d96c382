"""Algorithm 1: synchronous model averaging; replicas are corrected towards an average model that has momentum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from paper_figures.crossbow import settings
from paper_figures.crossbow.readings import (
    accuracies,
    epochs,
    ids,
    paired,
    results,
    rungs,
    several,
    spread,
    stand_in,
    telling,
)
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> settings.Groups:
    many = settings.MANY[profile]
    return {
        "algebra": (settings.ALGEBRA,),
        **settings.groups(profile, f"sma {many}", f"ea-sgd {many}"),
        "followed": settings.followed(profile)["followed"],
    }


def measure_algebra(evidence: Evidence) -> Quantities:
    """What follows from the algorithm alone, computed in float64."""
    return results(
        evidence,
        "algebra",
        {
            "one-learner-leapfrog": "leapfrog",
            "one-learner-unstable": "one_learner_limits",
            "k-learners-stable": "many_learner_limits",
            "one-learner-alpha0": "never_synchronised",
            "mean-of-replicas": "mean_of_replicas",
            "sum-conserved": "sum_conserved",
            "no-momentum-is-easgd": "elastic",
            "synchronous": "batches_per_learner",
            "distinct-batches": "shared_in_epoch",
            "stop-rule": ("continues_at", "stops_at_target"),
            "zprev-lag": "previous_lag",
            "identical-data-stays-equal": "equal_data",
            "alpha": "alpha_times_k",
            "polyak": "present_position",
        },
    )


@counterfeit("crossbow/alg1/one-learner-leapfrog")
def one_learner_follows_sgd(evidence: Evidence) -> Evidence:
    """The leapfrog scheme is as far from the run as SGD is."""
    return telling(evidence, "algebra", leapfrog=evidence.run("algebra").results["leapfrog_from_sgd"])


@counterfeit("crossbow/alg1/one-learner-unstable", "crossbow/alg1/k-learners-stable")
def limits_exchanged(evidence: Evidence) -> Evidence:
    found = evidence.run("algebra").results
    one, many = found["one_learner_limits"], found["many_learner_limits"]
    return telling(evidence, "algebra", one_learner_limits=many, many_learner_limits=one)


@counterfeit(
    "crossbow/alg1/one-learner-alpha0",
    "crossbow/alg1/mean-of-replicas",
    "crossbow/alg1/sum-conserved",
    "crossbow/alg1/no-momentum-is-easgd",
    "crossbow/alg1/identical-data-stays-equal",
)
def another_rule(evidence: Evidence) -> Evidence:
    """What ran is as far from the rule written out as leapfrog is from SGD after two steps."""
    apart = evidence.run("algebra").results["leapfrog_from_sgd"]
    names = ("never_synchronised", "mean_of_replicas", "sum_conserved", "elastic", "equal_data")
    return telling(evidence, "algebra", **dict.fromkeys(names, apart))


@counterfeit("crossbow/alg1/distinct-batches", "crossbow/alg1/zprev-lag")
def batch_put_back(evidence: Evidence) -> Evidence:
    """One batch of four samples is read twice, and the momentum looks back over an iteration more."""
    return telling(evidence, "algebra", shared_in_epoch=4.0, previous_lag=[2.0, 2.0])


@counterfeit("crossbow/alg1/variance-lower")
def variances_exchanged(evidence: Evidence) -> Evidence:
    found = evidence.run("algebra").results
    replica, centre = found["replica_variance"], found["centre_variance"]
    return telling(evidence, "algebra", replica_variance=centre, centre_variance=replica)


def measure_variance(evidence: Evidence) -> Quantities:
    """How much less the average model varies than a replica."""
    run = evidence.run("algebra")
    steps = [r - c for r, c in zip(run.results["replica_variance"], run.results["centre_variance"], strict=True)]
    yield "variance-lower", spread(steps, [run.id], "a quadratic with white gradient noise")


def measure_momentum(evidence: Evidence) -> Quantities:
    """The algorithm without momentum is EA-SGD; with many learners."""
    many = settings.MANY[evidence.profile]
    a, b = f"sma {many}", f"ea-sgd {many}"
    note = leads(evidence, a, b)
    found = paired(evidence, a, b, lambda x, y: y - x, note, printed=settings.FINAL_TARGET)
    if evidence.profile == "reduced":  # a general statement, for which LeNet is the model itself
        found = replace(found, proxy=False)
    yield "momentum-helps-many", found


def leads(evidence: Evidence, a: str, b: str) -> str:
    """How many epochs a is ahead of b on average, at every rung that all their runs reach."""
    if evidence.profile == "paper":
        return ""
    steps = []
    for rung in rungs([accuracies(run) for name in (a, b) for run in evidence.runs(name)]):
        first, second = (sum(found) / len(found) for found in (epochs(evidence, name, rung) for name in (a, b)))
        steps.append(f"{100 * rung:g}%: {second - first:+.1f}")
    return "epochs ahead at each rung, " + ", ".join(steps[-6:]) if steps else ""


def measure_average_model(evidence: Evidence) -> Quantities:
    """The average model against the mean replica of the same run."""
    last, over_run = [], []
    for run in evidence.runs("followed"):
        table = run.curve("models")
        gap = 100 * (table["replica_error"] - table["centre_error"])
        last.append(float(gap.iloc[-1]))
        over_run.append(float(gap.mean()))
    sources = ids(evidence, "followed")
    note = f"points of test error, {stand_in(evidence, 'followed') or 'LeNet'}"
    proxy = evidence.profile == "smoke"
    yield "average-better", several([spread(gaps, sources, note, proxy=proxy) for gaps in (last, over_run)])


def draw(evidence: Evidence, figure: Figure) -> None:
    """Which rates are stable, from running 500 quadratics."""
    axes = figure.subplots()
    found = evidence.run("algebra").results
    labels = ("k = 1, alpha = 1,\nno momentum", "k = 1, alpha = 1,\nmomentum 0.9", "k = 2", "k = 4")
    limits = [*found["one_learner_limits"], *found["many_learner_limits"]]
    axes.bar(labels, limits)
    axes.plot(labels, [0, 9 / 14, 1, 1.5], "D", color="C1", label="theory")
    axes.set_ylabel("largest stable rate x curvature")
    axes.legend()


ARTIFACTS = (
    Artifact(
        "crossbow/alg1",
        "Synchronous model averaging",
        runs,
        (measure_algebra, measure_variance, measure_momentum, measure_average_model),
        draw,
        "Largest stable rate for one, two and four learners, with the values of theory.",
    ),
)
