"""Fig. 1's exchanges: over a shaped link, on hosts that sleep to compute, and in the cost model; drawn as bars.

The link decides what can be decided of Fig. 1(a) without a cluster, and stands beside the printed efficiency. The
other panels have runs of their own on 2, 4 and 8 hosts that sleep for what computing takes on the paper's machines.
Their order of methods can come out otherwise than the cost model's, whose equations allow one: sums really travel,
start-ups and updates of weights really take time.

The cost model has the stored layers of both networks on each of the paper's two machines. The constants of a
machine are ranges (``suite/cost_models.py``), so whatever is modelled is an interval over the corners of
its ranges.

Bars are rates relative to no communication: modelled ones by devices, measured ones by the speed of a link.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from paper_figures.matex_agd.settings import EFFECTIVE_BATCH
from suite.claims.intervals import Interval, least, log_interval, mean_interval, most, over_ends, share_above
from suite.communication.link import PAYLOAD
from suite.cost_models import (
    DGX1,
    SANDY_BRIDGE,
    AllReduce,
    LayerCost,
    LayerTimes,
    Machine,
    NetworkTimes,
    Setting,
    delayed,
    exchange,
    network,
    rates,
)
from suite.papers.figure import Axes, Frame, Groups, RunSpec, np, pd, sns
from suite.report.style import INK

ALEXNET, GOOGLENET = "caffe_alexnet", "caffe_googlenet"
LAYERS = RunSpec("matex_agd/layers")
SHARED = (2, 4, 8)  # device counts at which there is something to communicate
DELAYED = ("AGD 1 comm", "AGD 2 comm", "AGD 3 comm")
CASES: dict[str, tuple[str, Machine]] = {  # network and machine of each panel of Fig. 1
    "a": (ALEXNET, SANDY_BRIDGE),
    "b": (ALEXNET, DGX1),
    "c": (GOOGLENET, SANDY_BRIDGE),
    "d": (GOOGLENET, DGX1),
}


def layer_costs(table: pd.DataFrame) -> tuple[LayerCost, ...]:
    """Layers of a network from its table (``matex_agd/layers``), first to last."""
    columns = zip(table["flops"].tolist(), table["weights"].tolist(), table["biases"].tolist(), strict=True)
    return tuple(LayerCost(float(flops), tuple(n for n in tensors if n)) for flops, *tensors in columns)


def settings_of(machine: Machine) -> tuple[Setting, ...]:
    """The centre of a machine's ranges, and then all 16 corners."""
    return machine.centre(), *machine.corners()


def of_settings(values: Sequence[float]) -> Interval:
    """The value at the centre of a machine's ranges, with its extremes over the corners."""
    return over_ends(values[0], values)


def relative(frame: Frame, letter: str) -> dict[int, list[dict[str, float]]]:
    """By number of devices: rates relative to no communication, at each of the machine's settings."""
    return _relative(letter, layer_costs(frame.table(CASES[letter][0], "layers")))


@cache
def _relative(letter: str, layers: tuple[LayerCost, ...]) -> dict[int, list[dict[str, float]]]:
    name, machine = CASES[letter]
    share = {devices: EFFECTIVE_BATCH[name] / devices for devices in machine.devices}
    return {
        devices: [rates(network(layers, batch, s), exchange(s, devices)) for s in settings_of(machine)]
        for devices, batch in share.items()
    }


def best_delayed(frame: Frame, letter: str, devices: int, over: str) -> np.ndarray:
    """The best delayed rate over that of another approach, at each setting."""
    return np.array([max(seen[n] for n in DELAYED) / seen[over] for seen in relative(frame, letter)[devices]])


def speedup(frame: Frame) -> Interval:
    """The largest speed-up over the panels and numbers of devices, of the machine on which it is larger."""
    found = []
    for letters in ("ac", "bd"):  # of one machine: its settings are common
        rows = [best_delayed(frame, letter, devices, "SGD") for letter in letters for devices in SHARED]
        found.append(of_settings(np.max(rows, axis=0)))
    return most(found)


def efficiency(frame: Frame) -> Interval:
    """Per cent: the largest rate on eight devices over eight times that on one, of the four panels."""
    devices, found = max(SHARED), []
    for letter, (name, machine) in CASES.items():
        layers, batch = layer_costs(frame.table(name, "layers")), EFFECTIVE_BATCH[name]
        seconds = lambda share, layers=layers, batch=batch: network(layers, batch / share[1], share[0]).compute
        ideal = np.array([seconds((s, 1)) / (devices * seconds((s, devices))) for s in settings_of(machine)])
        found.append(100 * ideal * best_delayed(frame, letter, devices, "no comm"))
    return of_settings(np.max(found, axis=0))


def strong_scaling(frame: Frame) -> Interval:
    """The smallest gain in rate from doubling the nodes, 1 to 32: GoogLeNet's batch of 32 on the CPU cluster."""
    layers, gains = layer_costs(frame.table(GOOGLENET, "layers")), []
    for setting in settings_of(SANDY_BRIDGE):
        nodes = (1, 2, 4, 8, 16, 32)
        seconds = [delayed(network(layers, 32 / n, setting), exchange(setting, n), 3) for n in nodes]
        gains.append(min(before / after for before, after in pairwise(seconds)))
    return of_settings(gains)


SPEEDS = (2e8, 6e8, 4e9)  # bits per second: communication-bound, balanced, compute-bound
WORKLOADS = {
    "sleeping": "sleeping stand-in (simulated compute)",
    "computing": "LeNet, one thread a worker (measured)",
}
LINK = RunSpec("matex_agd/link", {"speeds": SPEEDS, "repeats": 15})
LAYER_WISE = ("layer-wise, backward", "layer-wise, completed")  # section 4.2's; buckets are ours
PAPERS = ("SGD", *LAYER_WISE, *DELAYED)
METHODS = ("SGD", *LAYER_WISE, "layer-wise, buckets", *DELAYED, "PyTorch DDP")

# The sleeping network: AlexNet in small, convolutions with most of the time, inner products with most of the numbers
ASLEEP = ((5_000, 3.0e-3), (15_000, 3.0e-3), (30_000, 2.0e-3), (30_000, 2.0e-3), (250_000, 1.0e-3), (120_000, 1.0e-3))


def link_runs(profile: str) -> Groups:
    """Needs root and Linux, so it is no part of ``smoke``."""
    return {} if profile == "smoke" else {"link": (LINK,)}


STAGES = 16  # sums, about, into which neighbouring layers are joined for the hosts
REPEATS = {"a": 5, "b": 8, "c": 8, "d": 8}  # five, beside other work, left the orders of these three open


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
            "stages": STAGES,
            "repeats": REPEATS[letter],
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
    frame.needed([group]).refuse_skipped(group)
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

    def logs(methods: Sequence[str]) -> list[float]:
        return [sum(map(math.log, row)) / len(row) for row in table[list(methods)].to_numpy().tolist()]

    return mean_interval([late - early for late, early in zip(logs(behind), logs(DELAYED), strict=True)])


def least_lead(rivals: Sequence[Sequence[str]], frame: Frame, letter: str) -> Interval:
    """The lead of delayed exchange over the nearest of other ways to exchange, where it is least."""
    tables = timed(frame, letter).values()
    return least([lead(table, behind) for behind in rivals for table in tables])


def highest(frame: Frame, letter: str) -> Interval:
    """The largest rate over no communication of any method anywhere."""
    seen = [ratio(table, method) for table in timed(frame, letter).values() for method in PAPERS]
    return most(seen)


def same_trend(frame: Frame) -> Interval:
    """Share of networks and numbers of devices at which delayed exchange is ahead of all on both machines.

    It reaches from where the whole intervals of the leads are above zero to where some of each is.
    """
    a, b, c, d = (on_hosts(frame, letter).values() for letter in CASES)
    pairs = [*zip(a, b, strict=True), *zip(c, d, strict=True)]
    leads = [least([lead(t, behind) for t in both for behind in (("SGD",), LAYER_WISE)]) for both in pairs]
    return share_above(leads, 0.0)


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


IN_THE_PAPER = ("no comm", "SGD", *DELAYED)  # the bars of Fig. 1 whose labels survive
APPROACHES = (*IN_THE_PAPER, *LAYER_WISE)


def draw_bars(table: pd.DataFrame, axes: Axes, modelled: pd.DataFrame | None = None) -> None:
    """Bars by approach and number of devices, with whiskers from ``low`` to ``high``; crosses where ``modelled``."""
    approaches = [name for name in APPROACHES if name in set(table["approach"])]
    counts = sorted(table["devices"].unique().tolist())
    names = [f"{count} device{'s' * (count > 1)}" for count in counts]
    told = table.assign(devices=table["devices"].map(dict(zip(counts, names, strict=True))))
    looks: dict[str, Any] = {"order": approaches, "hue": "devices", "hue_order": names, "saturation": 1}
    sns.barplot(told, x="approach", y="rate", **looks, ax=axes)
    for count, bars in zip(counts, list(axes.containers), strict=True):
        rows = table[table["devices"] == count].set_index("approach").loc[approaches]
        at = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        spread = [rows["rate"] - rows["low"], rows["high"] - rows["rate"]]
        axes.errorbar(at, rows["rate"], spread, fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5)
        if modelled is not None:
            expected = modelled[modelled["devices"] == count].set_index("approach").loc[approaches]
            label = "cost model" if count == counts[-1] else None
            axes.plot(at, expected["rate"], "x", color=INK, markersize=5, linestyle="none", label=label)
    whiskers = "95%" if modelled is not None else "corners of the ranges"
    finish(axes, approaches, max(1.05, 1.02 * table["high"].max()), len(names) + 1, whiskers)


def draw_link(table: pd.DataFrame, methods: Sequence[str], axes: Axes) -> None:
    """Bars of rates by method and speed with t intervals, a dot for each repetition, crosses for the cost model."""
    table = table.assign(speed=[f"{speed / 1e6:,.0f} Mbit/s" for speed in table["speed"]])
    speeds = [f"{speed / 1e6:,.0f} Mbit/s" for speed in SPEEDS]
    looks: dict[str, Any] = {"x": "approach", "y": "rate", "order": methods, "hue": "speed", "hue_order": speeds}
    seen, modelled = table[table["source"] == "link"], table[table["source"] == "cost model"]
    sns.barplot(
        seen, **looks, saturation=1, capsize=0.15,
        estimator=lambda rates: log_interval(list(rates)).mean, errorbar=lambda rates: log_interval(list(rates)).ends,
        err_kws={"color": INK, "linewidth": 0.8, "linestyle": "-"}, ax=axes,
    )  # fmt: skip
    dots = {"palette": [INK] * len(speeds), "dodge": True, "jitter": False, "legend": False}
    sns.stripplot(seen, **looks, **dots, size=2, ax=axes)
    if len(modelled):
        sns.stripplot(modelled, **looks, **dots, marker="x", size=5, linewidth=1.2, ax=axes)
        axes.plot([], [], "x", color=INK, markersize=5, label="cost model")
    axes.axhline(1, color=INK, linewidth=0.8, linestyle=":")
    finish(axes, methods, 1.05, 4, "95%")


def finish(axes: Axes, names: Sequence[str], top: float, columns: int, whiskers: str) -> None:
    """Names below the bars in two lines, rates from 0 to ``top``, the legend above."""
    axes.set_xticks(range(len(names)), [re.sub("^(layer-wise|AGD|PyTorch),? ", r"\1\n", name) for name in names])
    axes.grid(visible=False, axis="x")
    axes.set(xlabel="", ylabel=f"rate relative to no comm (whiskers: {whiskers})", ylim=(0, top))
    axes.legend(title="", ncols=columns, loc="lower left", bbox_to_anchor=(0, 0.99), borderaxespad=0)
