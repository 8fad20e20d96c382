"""Two mechanisms beside Algorithms 1 and 2, which have files of their own: sampling and the learning rate.

FCPR sampling (section 2.3.3) permutes the data once and reads batches in a fixed cycle, so that each is visited once
per epoch. The learning rate (section 5.2) falls when the running mean loss passes a threshold, and never rises.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from paper_figures.isgd.settings import RATE_FACTORS, RATE_THRESHOLDS, RATES
from suite.claims.estimate import exact, interval
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.spec import RunSpec


def sampling_runs(profile: str) -> Groups:
    """Fixed cycles over sizes that divide the data set and sizes that do not."""
    sizes = [[1437, 32], [1437, 479], [1000, 10], [60_000, 64], [50_000, 100]]
    return {"sampling": (RunSpec("isgd/sampling", {"sizes": sizes, "epochs": 3}),)}


def rate_runs(profile: str) -> Groups:
    """The learning rate in use while the mean loss falls past the thresholds and rises again."""
    falling = [3.0, 2.5, 2.1, 2.05, 2.0, 1.95, 1.9, 1.5, 1.25, 1.2, 1.15, 1.1, 0.5]
    levels = [*falling, 1.3, 1.6, 2.2, 3.0]
    lowered = {"thresholds": RATE_THRESHOLDS, "factors": RATE_FACTORS}
    constant: dict[str, Any] = {"thresholds": [], "factors": [1.0]}
    return {
        name: (
            RunSpec("isgd/rates", {"rate": rate, "levels": levels, **(lowered if name == "ImageNet" else constant)}),
        )
        for name, rate in RATES.items()
    }


def measure_sampling(evidence: Evidence) -> Quantities:
    """Distances between returns of a batch in epochs, and its visits per epoch: the extremes over all cycles."""
    run = evidence.run("sampling")
    note = f"cycles of {', '.join(map(str, run.results['batches']))} batches"
    for name, ends in (("period", "periods"), ("once-per-epoch", "visits")):
        low, high = run.results[ends]
        yield name, interval((low + high) / 2, low, high, runs=[run.id], note=note)


def measure_rate(evidence: Evidence) -> Quantities:
    """Rates seen, the mean losses at which they changed, and whether one ever rose."""
    run = evidence.run("ImageNet")
    rates, means = run.results["rate"], run.results["mean"]
    seen = list(dict.fromkeys(rates))
    lowest = [min(mean for mean, rate in zip(means, rates, strict=True) if rate == used) for used in seen[:-1]]
    rises = sum(b > a for a, b in pairwise(rates))
    note = f"mean loss from {max(means):g} down to {min(means):g} and up to {means[-1]:g} nats"
    yield "rates", exact(seen, runs=[run.id], note=note)
    yield "thresholds", exact(lowest, runs=[run.id], note=note)
    yield "irreversible", exact(rises, runs=[run.id], note=note)
    small = [evidence.run(name) for name in ("MNIST", "CIFAR-10")]
    low = [min(run.results["rate"]) for run in small]
    high = [max(run.results["rate"]) for run in small]
    first = [run.results["rate"][0] for run in small]
    ids = [run.id for run in small]
    yield "constant-small-sets", interval(first, low, high, runs=ids, note=note)


ARTIFACTS = (
    Artifact(
        "isgd/alg-fcpr",
        "Fixed-cycle pseudo-random sampling: permute once, then read batches in a cycle",
        sampling_runs,
        (measure_sampling,),
    ),
    Artifact(
        "isgd/alg-lr",
        "Learning rate driven by the running average loss, never reversed",
        rate_runs,
        (measure_rate,),
    ),
)
