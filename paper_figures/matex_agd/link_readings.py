"""What a shaped link between two workers showed: the run, its ratios, and what the cost model makes of it.

The link decides what can be decided of Fig. 1(a) without a cluster, and stands beside the printed efficiency.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from suite.claims.intervals import Interval, log_interval, mean_interval
from suite.communication.link import PAYLOAD
from suite.cost_models.overlap import AllReduce, LayerTimes, NetworkTimes, rates
from suite.papers.artifact import Evidence, Missing
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

SPEEDS = (2e8, 6e8, 4e9)  # bits per second: communication-bound, balanced, compute-bound
WORKLOADS = {
    "sleeping": "sleeping stand-in (simulated compute)",
    "computing": "LeNet, one thread a worker (measured)",
}
LINK = RunSpec("matex_agd/link", {"speeds": SPEEDS, "repeats": 5})
DELAYED = ("AGD 1 comm", "AGD 2 comm", "AGD 3 comm")
LAYER_WISE = ("layer-wise, backward", "layer-wise, completed")  # section 4.2's; buckets are ours
METHODS = ("SGD", *LAYER_WISE, "layer-wise, buckets", *DELAYED, "PyTorch DDP")

# The sleeping network: AlexNet in small, convolutions with most of the time, inner products with most of the numbers
ASLEEP = ((5_000, 3.0e-3), (15_000, 3.0e-3), (30_000, 2.0e-3), (30_000, 2.0e-3), (250_000, 1.0e-3), (120_000, 1.0e-3))


def link_runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Needs root and Linux, so it is no part of ``smoke``."""
    return {} if profile == "smoke" else {"link": (LINK,)}


def link_run(evidence: Evidence) -> Run:
    """The run over the shaped link. Raises Missing, with the reason, where there was none."""
    if "link" not in evidence.groups:
        raise Missing(f"no shaped link at {evidence.profile}")
    run = evidence.run("link")
    if run.results["skipped"]:
        raise Missing(f"the shaped link could not be made: {run.results['skipped']}")
    return run


def seconds(run: Run, workload: str, speed: float) -> pd.DataFrame:
    """Seconds per update by repetition (rows) and method (columns), repetitions that lack a method left out."""
    table = run.curve(workload)
    return table[table["speed"] == speed].pivot(index="repeat", columns="method", values="seconds").dropna()


def ratios(run: Run, workload: str, speed: float, method: str, base: str = "no comm") -> Interval:
    """Rate of ``method`` over that of ``base``, paired by repetition."""
    table = seconds(run, workload, speed)
    return log_interval([float(value) for value in table[base] / table[method]])


def lead(table: pd.DataFrame, ahead: Sequence[str], behind: Sequence[str]) -> Interval:
    """Log of the rate of some methods over that of others; of each the geometric mean, by repetition.

    The mean and not the best: picking the best of several noisy methods would favour the side with more of them.
    """
    logs = table.map(math.log)
    return mean_interval([float(v) for v in logs[list(behind)].mean(axis=1) - logs[list(ahead)].mean(axis=1)])


def leads(run: Run, workload: str, ahead: Sequence[str], behind: Sequence[str]) -> list[Interval]:
    """The lead at each speed of the link."""
    return [lead(seconds(run, workload, speed), ahead, behind) for speed in SPEEDS]


def asleep(layers: Sequence[tuple[int, float]], rest: float = 0.0) -> tuple[LayerTimes, ...]:
    """Layers of so many weights, and 100 biases, and seconds forward; ``rest`` seconds are spent on applying."""
    numbers = sum(n + 100 for n, _ in layers)
    return tuple(LayerTimes(s, 2 * s, (4.0 * n, 400.0), apply=rest * (n + 100) / numbers) for n, s in layers)


def predicted(compute_seconds: float, latency: float, speed: float) -> dict[str, float]:
    """The cost model's rates for the sleeping network; ``compute_seconds`` is no communication as measured.

    What the update of weights costs is the part of that which is not sleep, spread over the numbers it moves.
    """
    rest = max(0.0, compute_seconds - 3 * math.fsum(each for _, each in ASLEEP))
    layers = asleep(ASLEEP, rest)
    cost = AllReduce(0.0, speed / 8 * PAYLOAD, 2, "ring", call=latency)
    return rates(NetworkTimes(layers), cost)


def forecast(run: Run, speed: float) -> dict[str, float]:
    """The cost model's rates over no communication at a speed, from the run's median compute and empty sum."""
    table = run.curve("sleeping")
    median = table[table["speed"] == speed].groupby("method")["seconds"].median()
    return predicted(float(median["no comm"]), float(median["empty sum"]), speed)


def frame(run: Run) -> pd.DataFrame:
    """Rates over no communication: workload, speed (bits per second), method, repeat, source, rate.

    ``source`` is "link" with a row per repetition, or "cost model", which predicts the sleeping network.
    """
    import pandas as pd

    parts = []
    for workload in WORKLOADS:
        for speed in SPEEDS:
            table = seconds(run, workload, speed)
            relative = table.drop(columns=["no comm", "empty sum"]).rdiv(table["no comm"], axis=0)
            long = relative.reset_index().melt("repeat", var_name="method", value_name="rate")
            parts.append(long.assign(workload=workload, speed=speed, source="link"))
    for speed in SPEEDS:
        rows = [{"method": name, "rate": rate} for name, rate in forecast(run, speed).items() if name != "no comm"]
        parts.append(pd.DataFrame(rows).assign(workload="sleeping", speed=speed, source="cost model"))
    return pd.concat(parts, ignore_index=True)


def renamed(evidence: Evidence, names: Mapping[str, str]) -> Evidence:
    """Each method over the link took the seconds of another."""

    def edit(run: Run) -> Run:
        tables = {name: run.curve(name) for name in WORKLOADS}
        return forged(run, **{name: t.assign(method=t["method"].replace(names)) for name, t in tables.items()})

    return edited(evidence, edit, "link")


def swapped(*pairs: tuple[str, str]) -> dict[str, str]:
    return {**dict(pairs), **{b: a for a, b in pairs}}


@counterfeit("matex_agd/fig1a/agd-best", "matex_agd/fig1a/layerwise-below-agd")
def delay_costs_what_it_saves(evidence: Evidence) -> Evidence:
    """Delayed exchange is as slow as the others were, and they as fast as it was."""
    return renamed(evidence, swapped(*zip(DELAYED, (*LAYER_WISE, "SGD"), strict=True)))


@counterfeit("matex_agd/fig1a/no-comm-best")
def communication_speeds_up(evidence: Evidence) -> Evidence:
    return renamed(evidence, swapped(("AGD 1 comm", "no comm")))
