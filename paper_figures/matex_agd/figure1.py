"""Figure 1: throughput of each approach relative to no communication, from the cost model of both machines.

The printed bars are lost; what is left to test are the sentences about them. Machines are ranges of constants
(``suite/machines.py``), so every simulated quantity is an interval over the corners of those ranges.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from paper_figures.matex_agd.algorithms import ALEXNET, GOOGLENET, LAYERS
from paper_figures.matex_agd.settings import EFFECTIVE_BATCH, whole_training
from suite.claims.measured import exact, interval, point
from suite.cost_models.machines import DGX1, SANDY_BRIDGE, LayerCost, Machine, exchange, network
from suite.cost_models.overlap import AllReduce, Network, delayed, layer_wise, rates, synchronous
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYERWISE = ("layer-wise, all", "layer-wise, backward", "layer-wise, completed")
DELAYED = ("AGD 1 comm", "AGD 2 comm", "AGD 3 comm")
SHARED = (2, 4, 8)  # device counts at which there is something to communicate


def layer_runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    return {"layers": (LAYERS,)}


def layer_costs(evidence: Evidence, name: str) -> tuple[LayerCost, ...]:
    """Layers of a network from the stored table, first to last."""
    table = evidence.run("layers").curve(name)
    columns = zip(table["flops"].tolist(), table["weights"].tolist(), table["biases"].tolist(), strict=True)
    return tuple(LayerCost(float(flops), tuple(n for n in tensors if n)) for flops, *tensors in columns)


@dataclass(frozen=True)
class Panel:
    """One panel: a network on a machine."""

    letter: str
    name: str
    machine: Machine

    def relative(self, evidence: Evidence) -> Iterator[tuple[int, list[dict[str, float]]]]:
        """For each device count: rates relative to no communication, at the centre and then at all corners."""
        yield from _relative(self, layer_costs(evidence, self.name))


@cache
def _relative(panel: Panel, layers: tuple[LayerCost, ...]) -> list[tuple[int, list[dict[str, float]]]]:
    settings = (panel.machine.centre(), *panel.machine.corners())
    return [
        (
            devices,
            [
                rates(network(layers, EFFECTIVE_BATCH[panel.name] / devices, setting), exchange(setting, devices))
                for setting in settings
            ],
        )
        for devices in panel.machine.devices
    ]


PANELS = {
    "a": Panel("a", ALEXNET, SANDY_BRIDGE),
    "b": Panel("b", ALEXNET, DGX1),
    "c": Panel("c", GOOGLENET, SANDY_BRIDGE),
    "d": Panel("d", GOOGLENET, DGX1),
}


def trend(panel: Panel, evidence: Evidence) -> Quantities:
    """The three sentences that hold for every panel."""
    runs = (evidence.run("layers").id,)
    agd, layers, highest = [], [], []
    for devices, settings in panel.relative(evidence):
        highest += [max(rate for name, rate in seen.items() if name != "no comm") for seen in settings]
        if devices in SHARED:
            best = [max(seen[name] for name in DELAYED) for seen in settings]
            agd.append([value - seen["SGD"] for value, seen in zip(best, settings, strict=True)])
            layers.append(
                [value - max(seen[name] for name in LAYERWISE) for value, seen in zip(best, settings, strict=True)]
            )
    where = f"{panel.name.removeprefix('caffe_')} on 2, 4, 8 devices, 16 corners of the {panel.machine.name}'s ranges"
    yield "agd-best", over_corners(agd, runs, f"AGD less SGD, share of no comm; {where}")
    yield "layerwise-below-agd", over_corners(layers, runs, f"AGD less the best layer-wise order; {where}")
    yield "no-comm-best", point(max(highest), kind="simulated", runs=runs, note=f"largest rate over no comm; {where}")


def over_corners(rows: list[list[float]], runs: tuple[str, ...], note: str):
    """Value at the centre of the ranges with the ends over all corners, at the device count where it is least."""
    least = min(rows, key=min)
    return interval(least[0], min(least), max(least), kind="simulated", runs=runs, note=note)


def headline(evidence: Evidence) -> Quantities:
    """The largest speed-up and efficiency over the four panels, at each choice of constants."""
    runs = (evidence.run("layers").id,)
    speedups: dict[str, list[list[float]]] = {}
    efficiencies: list[list[float]] = []
    for panel in PANELS.values():
        layers = layer_costs(evidence, panel.name)
        for devices, settings in panel.relative(evidence):
            if devices not in SHARED:
                continue
            speedups.setdefault(panel.machine.name, []).append(
                [max(seen[name] for name in DELAYED) / seen["SGD"] for seen in settings]
            )
            if devices == max(SHARED):
                efficiencies.append(
                    [
                        network(layers, EFFECTIVE_BATCH[panel.name], s).compute
                        / (devices * network(layers, EFFECTIVE_BATCH[panel.name] / devices, s).compute)
                        * max(seen[name] for name in DELAYED)
                        * 100
                        for s, seen in zip((panel.machine.centre(), *panel.machine.corners()), settings, strict=True)
                    ]
                )
    best = [[max(column) for column in zip(*rows, strict=True)] for rows in speedups.values()]
    centre = max(row[0] for row in best)
    low, high = max(min(row) for row in best), max(max(row) for row in best)
    yield "speedup", interval(centre, low, high, kind="simulated", runs=runs, note="best AGD over SGD, any panel")
    top = [max(column) for column in zip(*efficiencies, strict=True)]
    note = "rate on 8 devices over 8 x that on one, if a device is as efficient on an eighth of the batch"
    yield "efficiency", interval(top[0], min(top), max(top), kind="proxy", runs=runs, note=note)


def strong_scaling(evidence: Evidence) -> Quantities:
    """Where doubling the nodes stops paying, for GoogLeNet's batch of 32 on the CPU cluster."""
    layers, machine = layer_costs(evidence, GOOGLENET), SANDY_BRIDGE
    gains = []
    for setting in (machine.centre(), *machine.corners()):
        seconds = [
            delayed(network(layers, 32 / nodes, setting), exchange(setting, nodes), 3)
            for nodes in (1, 2, 4, 8, 16, 32)
        ]
        gains.append(min(before / after for before, after in itertools.pairwise(seconds)))
    yield (
        "strong-scaling-limit",
        interval(
            gains[0],
            min(gains),
            max(gains),
            kind="simulated",
            runs=(evidence.run("layers").id,),
            note="smallest gain in rate from doubling the nodes, 1 to 32, AGD 3 comm",
        ),
    )


def same_trend(evidence: Evidence) -> Quantities:
    """Share of networks, device counts and corners in which SGD < layer-wise < AGD on both machines alike."""
    agreements = []
    for cpu, gpu in (("a", "b"), ("c", "d")):
        for (_, ours), (_, theirs) in zip(
            PANELS[cpu].relative(evidence), PANELS[gpu].relative(evidence), strict=True
        ):
            agreements += [_ranking(a) == _ranking(b) for a in ours for b in theirs]
    share = sum(agreements) / len(agreements)
    yield (
        "same-trend",
        point(
            share,
            kind="simulated",
            runs=(evidence.run("layers").id,),
            note="share of pairs of corners with the same order",
        ),
    )


def _ranking(seen: dict[str, float]) -> tuple[bool, bool]:
    layers, late = max(seen[n] for n in LAYERWISE), max(seen[n] for n in DELAYED)
    return seen["SGD"] <= layers, layers <= late


def phases(evidence: Evidence) -> Quantities:
    """Seconds of compute that a sum can pass behind: a whole iteration against the rest of backward."""
    gaps = []
    for name, machine in ((ALEXNET, DGX1), (GOOGLENET, DGX1), (ALEXNET, SANDY_BRIDGE), (GOOGLENET, SANDY_BRIDGE)):
        made = network(layer_costs(evidence, name), EFFECTIVE_BATCH[name] / 8, machine.centre())
        gaps.append((made.compute - made.after_first_gradient) / made.compute)
    yield (
        "agd-covers-three-phases",
        point(
            min(gaps),
            kind="simulated",
            runs=(evidence.run("layers").id,),
            note="share of an iteration that only delayed exchange can use, smallest of four",
        ),
    )


def counted(evidence: Evidence) -> Quantities:
    """Parameters, and multiply-adds as a proxy for the time per image."""
    run = evidence.run("layers")
    found, runs = run.results, (run.id,)
    yield "parameters-alexnet", exact(found[f"{ALEXNET} parameters"] / 1e6, runs=runs)
    without = found[f"{GOOGLENET} without auxiliary heads"] / 1e6
    yield (
        "parameters-googlenet",
        exact(without, runs=runs, note=f"with the auxiliary heads {found[f'{GOOGLENET} parameters'] / 1e6:.2f}"),
    )
    ratio = found[f"{GOOGLENET} forward multiply-adds"] / found[f"{ALEXNET} forward multiply-adds"]
    yield "compute-ratio", point(ratio, kind="proxy", runs=runs, note="ratio of multiply-adds, not of seconds")


@dataclass(frozen=True)
class Case:
    """One network on one link, for statements that hold on any."""

    network: Network
    cost: AllReduce

    def hidden_by_layers(self, order: str) -> float:
        """Seconds that layer-wise exchange saves over synchronous; its copies and calls count against it."""
        return synchronous(self.network, self.cost) - layer_wise(self.network, self.cost, order)  # type: ignore[arg-type]

    @property
    def delayed(self) -> dict[int, float]:
        return {delay: delayed(self.network, self.cost, delay) for delay in (1, 2, 3)}


def link_grid(evidence: Evidence) -> Iterator[Case]:
    """Both networks on 8 devices of the DGX-1, over 30 links from far too slow to far too fast."""
    for name in (ALEXNET, GOOGLENET):
        made = network(layer_costs(evidence, name), EFFECTIVE_BATCH[name] / 8, DGX1.centre())
        for alpha in (0.0, 1e-6, 1e-5, 1e-4, 1e-3):
            for beta in (1e8, 1e9, 4e9, 1.6e10, 6.4e10, 1e12):
                yield Case(made, AllReduce(alpha, beta, 8))


def draw(panel: Panel, evidence: Evidence, figure: Figure) -> None:
    """Bars at the centre of the ranges with whiskers over the corners, by approach and device count."""
    axes = figure.subplots()
    names = ("no comm", "SGD", *LAYERWISE[1:], *DELAYED)
    seen = list(panel.relative(evidence))
    width = 0.8 / len(seen)
    for place, (devices, settings) in enumerate(seen):
        at = [x + (place - (len(seen) - 1) / 2) * width for x in range(len(names))]
        centre = [settings[0][name] for name in names]
        low = [c - min(s[name] for s in settings) for c, name in zip(centre, names, strict=True)]
        high = [max(s[name] for s in settings) - c for c, name in zip(centre, names, strict=True)]
        spread = [[max(0.0, v) for v in low], [max(0.0, v) for v in high]]
        axes.bar(at, centre, width, yerr=spread, capsize=1.5, error_kw={"linewidth": 0.7}, label=f"{devices}")
    labels = [name.replace("layer-wise, ", "layer-wise\n").replace("AGD ", "AGD\n") for name in names]
    axes.set_xticks(range(len(names)), labels, fontsize=7)
    axes.set_ylim(0, 1.08)
    axes.set_ylabel("rate relative to no comm (simulated)")
    title = panel.name.removeprefix("caffe_").replace("alexnet", "AlexNet").replace("googlenet", "GoogLeNet")
    axes.set_title(f"{title}, {panel.machine.name}; effective batch {EFFECTIVE_BATCH[panel.name]}", fontsize=9)
    axes.legend(title="devices", fontsize=7, title_fontsize=7, ncols=4, loc="lower left")


ALT = "Bars of the simulated rate of each approach relative to no communication, for 1, 2, 4 and 8 devices"


def artifacts() -> tuple[Artifact, ...]:
    """The four panels; what is not said of one panel alone stands with the first that it concerns."""
    from paper_figures.matex_agd import printed, table1

    def runs_of_b(profile: str) -> dict[str, tuple[RunSpec, ...]]:
        return {**layer_runs(profile), **whole_training(profile)}

    more: dict[str, tuple[Callable[[Evidence], Quantities], ...]] = {
        "a": (headline, printed.sizes),
        "b": (same_trend, phases, counted, printed.sizes, table1.whole_training),
        "c": (strong_scaling,),
        "d": (counted, printed.sizes),
    }
    titles = {"a": "AlexNet on the CPU cluster", "b": "AlexNet on the DGX-1"}
    titles |= {"c": "GoogLeNet on the CPU cluster", "d": "GoogLeNet on the DGX-1"}
    return tuple(
        Artifact(
            f"matex_agd/fig1{letter}",
            f"{titles[letter]}: throughput against no communication",
            runs_of_b if letter == "b" else layer_runs,
            (partial(trend, panel), *more[letter]),
            partial(draw, panel),
            f"{ALT}; {titles[letter]}",
        )
        for letter, panel in PANELS.items()
    )
