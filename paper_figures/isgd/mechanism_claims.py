"""What the runs of single mechanisms say: sampling, learning rate, unbiased gradients."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from suite.claims.measured import Measured, exact, interval
from suite.papers.artifact import Evidence

Quantities = Iterable[tuple[str, Measured]]


def fixed_cycle(evidence: Evidence) -> Quantities:
    run = evidence.run("sampling")
    note = f"cycles of {', '.join(map(str, run.results['batches']))} batches"
    for name, ends in (("period", "periods"), ("once-per-epoch", "visits")):
        low, high = run.results[ends]
        yield name, interval((low + high) / 2, low, high, kind="exact", runs=[run.id], note=note)


def learning_rate(evidence: Evidence) -> Quantities:
    """Rates seen, the mean losses at which they changed, and whether one ever rose."""
    run = evidence.run("ImageNet")
    rates, means = run.results["rate"], run.results["mean"]
    seen = list(dict.fromkeys(rates))
    lowest = [min(mean for mean, rate in zip(means, rates, strict=True) if rate == used) for used in seen[:-1]]
    rises = sum(b > a for a, b in pairwise(rates))
    note = f"mean loss from {max(means):g} down to {min(means):g} and up to {means[-1]:g} nats"
    yield "rates", exact(seen, runs=[run.id], note=note)
    yield "thresholds", exact(lowest, runs=[run.id], note=note)
    yield "turning-point", exact(lowest[0], runs=[run.id], note=note)
    yield "irreversible", exact(rises, runs=[run.id], note=note)
    small = [evidence.run(name) for name in ("MNIST", "CIFAR-10")]
    low = [min(run.results["rate"]) for run in small]
    high = [max(run.results["rate"]) for run in small]
    first = [run.results["rate"][0] for run in small]
    ids = [run.id for run in small]
    yield "constant-small-sets", interval(first, low, high, kind="exact", runs=ids, note=note)


def unbiased(evidence: Evidence) -> Quantities:
    run = evidence.run("partition")
    note = f"one batch's gradient differs from the full one by up to {run.results['spread']:.2g}"
    yield "unbiased", exact(max(run.results["difference"]), runs=[run.id], note=note)
