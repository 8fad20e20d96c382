"""Exchanges that happen: over a shaped link between two workers, and on hosts that sleep to compute.

The link decides what can be decided of Fig. 1(a) without a cluster, and stands beside the printed efficiency. The
other panels have runs of their own on 2, 4 and 8 hosts that sleep for what computing takes on the paper's machines.
Their order of methods can come out otherwise than the cost model's, whose equations allow one: sums really travel,
start-ups and updates of weights really take time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from paper_figures.matex_agd.costs import CASES, DELAYED, SHARED
from paper_figures.matex_agd.settings import EFFECTIVE_BATCH
from suite.claims.intervals import Interval, least, log_interval, mean_interval
from suite.communication.link import PAYLOAD
from suite.cost_models.overlap import AllReduce, LayerTimes, NetworkTimes, rates
from suite.lazy import pd
from suite.papers.artifact import Groups, Missing
from suite.papers.panel import Frame
from suite.spec import RunSpec

SPEEDS = (2e8, 6e8, 4e9)  # bits per second: communication-bound, balanced, compute-bound
WORKLOADS = {
    "sleeping": "sleeping stand-in (simulated compute)",
    "computing": "LeNet, one thread a worker (measured)",
}
LINK = RunSpec("matex_agd/link", {"speeds": SPEEDS, "repeats": 5})
LAYER_WISE = ("layer-wise, backward", "layer-wise, completed")  # section 4.2's; buckets are ours
PAPERS = ("SGD", *LAYER_WISE, *DELAYED)
METHODS = ("SGD", *LAYER_WISE, "layer-wise, buckets", *DELAYED, "PyTorch DDP")

# The sleeping network: AlexNet in small, convolutions with most of the time, inner products with most of the numbers
ASLEEP = ((5_000, 3.0e-3), (15_000, 3.0e-3), (30_000, 2.0e-3), (30_000, 2.0e-3), (250_000, 1.0e-3), (120_000, 1.0e-3))


def link_runs(profile: str) -> Groups:
    """Needs root and Linux, so it is no part of ``smoke``."""
    return {} if profile == "smoke" else {"link": (LINK,)}


def hosts_spec(letter: str) -> RunSpec:
    """The run of a panel, at the geometric middle of its machine's ranges; computing takes a second an update."""
    name, machine = CASES[letter]
    there = machine.centre()
    return RunSpec(
        "matex_agd/hosts",
        {
            "network": name,
            "batch": EFFECTIVE_BATCH[name],
            "flops": there.flops,
            "memory": there.memory,
            "beta": there.beta,
            "devices": SHARED,
            "seconds": 1.0,
            "numbers": 1_000_000,
            "stages": 16,
            "repeats": 5,
        },
    )


def host_runs(letters: str, profile: str) -> Groups:
    """Needs root and Linux, and most of an hour of sleep a panel, so it is no part of ``smoke``."""
    return {} if profile == "smoke" else {f"hosts {letter}": (hosts_spec(letter),) for letter in letters}


# ---------------------------------------------------------------- seconds and rates


def over_link(frame: Frame, workload: str) -> dict[float, pd.DataFrame]:
    """Seconds per update by speed of the link: repetitions (rows) by methods. Raises Missing."""
    return _blocks(frame, "link", workload, "speed", "seconds")


def on_hosts(frame: Frame, letter: str) -> dict[float, pd.DataFrame]:
    """The same by number of hosts, of a block's updates the fastest. Raises Missing.

    The hosts of one machine wait for its cores, which only ever adds; sums of these panels take less than computing,
    so that every update of a block has the same ones to wait for.
    """
    return _blocks(frame, f"hosts {letter}", "hosts", "devices", "fastest")


def _blocks(frame: Frame, group: str, name: str, by: str, value: str) -> dict[float, pd.DataFrame]:
    if skipped := frame.needed([group]).one(group)["skipped"]:
        raise Missing(f"the {group.split()[0]} could not be made: {skipped}")
    table = frame.table(name, group).query("method != 'empty sum'")
    found = {}
    for condition, part in table.groupby(by):
        found[condition] = part.pivot(index="repeat", columns="method", values=value).dropna()
    return found


def timed(frame: Frame, letter: str) -> dict[float, pd.DataFrame]:
    """Seconds that decide a panel of Fig. 1: of LeNet over the link for (a), on hosts for the others."""
    return over_link(frame, "computing") if letter == "a" else on_hosts(frame, letter)


def ratio(table: pd.DataFrame, method: str) -> Interval:
    """Rate of a method over that of no communication, paired by repetition."""
    return log_interval((table["no comm"] / table[method]).tolist())


def lead(table: pd.DataFrame, behind: Sequence[str]) -> Interval:
    """Log of the rate of delayed exchange over that of other methods; of each the geometric mean, by repetition.

    The mean and not the best: picking the best of several noisy methods would favour the side with more of them.
    """
    logs = table.map(math.log)
    return mean_interval((logs[list(behind)].mean(axis=1) - logs[list(DELAYED)].mean(axis=1)).tolist())


def over_layer_wise(frame: Frame, letter: str) -> Interval:
    """The lead of delayed over layer-wise exchange, where it is least."""
    return least([lead(table, LAYER_WISE) for table in timed(frame, letter).values()])


def over_all(frame: Frame, letter: str) -> Interval:
    """The lead over synchronous or layer-wise exchange, whichever is nearer, where it is least."""
    tables = timed(frame, letter).values()
    return least([lead(table, behind) for behind in (("SGD",), LAYER_WISE) for table in tables])


def highest(frame: Frame, letter: str) -> Interval:
    """The largest rate over no communication of any method anywhere."""
    seen = [ratio(table, method) for table in timed(frame, letter).values() for method in PAPERS]
    return Interval(max(i.mean for i in seen), max(i.low for i in seen), max(i.high for i in seen), seen[0].n)


def same_trend(frame: Frame) -> float:
    """Share of networks and numbers of devices at which delayed exchange is ahead of all on both machines."""
    ahead = {
        letter: [min(lead(t, ("SGD",)).mean, lead(t, LAYER_WISE).mean) > 0 for t in on_hosts(frame, letter).values()]
        for letter in CASES
    }
    alike = [cpu and gpu for one, other in ("ab", "cd") for cpu, gpu in zip(ahead[one], ahead[other], strict=True)]
    return sum(alike) / len(alike)


# ---------------------------------------------------------------- beside the cost model


def asleep(layers: Sequence[tuple[int, float]], rest: float = 0.0) -> tuple[LayerTimes, ...]:
    """Layers of so many weights, and 100 biases, and seconds forward; ``rest`` seconds are spent on applying."""
    numbers = sum(n + 100 for n, _ in layers)
    return tuple(LayerTimes(s, 2 * s, (4.0 * n, 400.0), apply=rest * (n + 100) / numbers) for n, s in layers)


def forecast(frame: Frame, speed: float) -> dict[str, float]:
    """The cost model's rates over no communication at a speed, from the median compute and empty sum of the run.

    What the update of weights costs is the part of compute which is not sleep, spread over the numbers it moves.
    """
    table = frame.table("sleeping", "link")
    median = table[table["speed"] == speed].groupby("method")["seconds"].median()
    rest = max(0.0, float(median["no comm"]) - 3 * math.fsum(each for _, each in ASLEEP))
    cost = AllReduce(0.0, speed / 8 * PAYLOAD, 2, "ring", call=float(median["empty sum"]))
    return rates(NetworkTimes(asleep(ASLEEP, rest)), cost)


def link_table(frame: Frame, *workloads: str) -> pd.DataFrame:
    """Rates over no communication: workload, speed (bits per second), approach, repeat, source, rate.

    ``source`` is "link" with a row per repetition, or "cost model", which predicts the sleeping network.
    """
    parts = []
    for workload in workloads:
        for speed, table in over_link(frame, workload).items():
            relative = table.drop(columns="no comm").rdiv(table["no comm"], axis=0)
            long = relative.reset_index().melt("repeat", var_name="approach", value_name="rate")
            parts.append(long.assign(workload=workload, speed=speed, source="link"))
    for speed in SPEEDS if "sleeping" in workloads else ():
        modelled = (
            pd.Series(forecast(frame, speed), name="rate").drop("no comm").rename_axis("approach").reset_index()
        )
        parts.append(modelled.assign(workload="sleeping", speed=speed, source="cost model"))
    return pd.concat(parts, ignore_index=True)


def hosts_table(frame: Frame, letter: str) -> pd.DataFrame:
    """Rates over no communication on hosts: approach, devices, rate, low and high (95% t interval), source."""
    rows = [
        {"approach": name, "devices": devices, "rate": seen.mean, "low": seen.low, "high": seen.high}
        for devices, table in on_hosts(frame, letter).items()
        for name in PAPERS
        for seen in [ratio(table, name)]
    ]
    return pd.DataFrame(rows).assign(source="hosts")
