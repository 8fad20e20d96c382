"""Figure 1: throughput of each approach relative to no communication, from the cost model of both machines.

The printed bars are lost; what is left to test are the sentences about them. Machines are ranges of constants
(``suite/machines.py``), so every simulated quantity is an interval over the corners of those ranges. What is not
said of one panel alone stands with the first that it concerns; accuracy at the end of training, with panel (b).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from paper_figures.matex_agd.accuracy import accuracies, ids, over_seeds, trained_on
from paper_figures.matex_agd.overlap_cases import ALEXNET, GOOGLENET, layer_costs, layer_runs
from paper_figures.matex_agd.settings import EFFECTIVE_BATCH, table1, whole_training
from suite.claims.measured import Measured, exact, interval, point
from suite.cost_models.machines import DGX1, SANDY_BRIDGE, LayerCost, Machine, exchange, network
from suite.cost_models.overlap import delayed, rates
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYERWISE = ("layer-wise, all", "layer-wise, backward", "layer-wise, completed")
DELAYED = ("AGD 1 comm", "AGD 2 comm", "AGD 3 comm")
SHARED = (2, 4, 8)  # device counts at which there is something to communicate
ENOUGH = {"ImageNet": 0.53, "mnist": 0.97}  # accuracy that counts as converged: "about 54%", less a point; LeNet's


def runs_and_trainings(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Of panel (b); the others need the layers alone."""
    return {**layer_runs(profile), **whole_training(profile)}


@dataclass(frozen=True)
class Panel:
    """One panel: a network by its name, on a machine."""

    name: str
    machine: Machine

    def relative(self, evidence: Evidence) -> list[tuple[int, list[dict[str, float]]]]:
        """For each device count: rates relative to no communication, at the centre and then at all corners."""
        return _relative(self, layer_costs(evidence, self.name))


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
    "a": Panel(ALEXNET, SANDY_BRIDGE),
    "b": Panel(ALEXNET, DGX1),
    "c": Panel(GOOGLENET, SANDY_BRIDGE),
    "d": Panel(GOOGLENET, DGX1),
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


def over_corners(rows: list[list[float]], runs: tuple[str, ...], note: str) -> Measured:
    """Value at the centre of the ranges with the ends over all corners, at the device count where it is least."""
    least = min(rows, key=min)
    return interval(least[0], min(least), max(least), kind="simulated", runs=runs, note=note)


def measure_trend_a(evidence: Evidence) -> Quantities:
    return trend(PANELS["a"], evidence)


def measure_trend_b(evidence: Evidence) -> Quantities:
    return trend(PANELS["b"], evidence)


def measure_trend_c(evidence: Evidence) -> Quantities:
    return trend(PANELS["c"], evidence)


def measure_trend_d(evidence: Evidence) -> Quantities:
    return trend(PANELS["d"], evidence)


def measure_headline(evidence: Evidence) -> Quantities:
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


def measure_strong_scaling(evidence: Evidence) -> Quantities:
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


def measure_same_trend(evidence: Evidence) -> Quantities:
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


def measure_phases(evidence: Evidence) -> Quantities:
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


def measure_counted(evidence: Evidence) -> Quantities:
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


def measure_sizes(evidence: Evidence) -> Quantities:
    """Batches, devices and data as the declared runs, the machine and the data set's catalogue have them."""
    devices = max(DGX1.devices)
    yield "dgx-devices", exact(devices, note="eight P100 in a DGX-1")
    alexnet = [s.settings["batch"] * s.settings["workers"] for specs in table1("paper").values() for s in specs]
    batch = sum(alexnet) / len(alexnet)
    yield (
        "alexnet-batch",
        exact([batch, batch / devices], note="batch of the runs at the paper profile, over the devices"),
    )
    batch = EFFECTIVE_BATCH[GOOGLENET]
    yield "googlenet-batch", exact([batch, devices, batch / devices], note="batch of the simulated runs")
    images = DATASETS["imagenet"]
    gigabytes = images.sizes["train"] * 3 * 256 * 256 / 1e9
    yield (
        "dataset",
        point(
            [images.sizes["train"], images.sizes["validation"], images.classes, gigabytes],
            kind="exact",
            note="250 GB is what 256 x 256 pixels as bytes take",
        ),
    )


def measure_whole_training(evidence: Evidence) -> Quantities:
    """Accuracy at the end of a full training, and whether each approach reaches what its network should."""
    rows = ("serial", "agd1", "agd2", "agd3")
    seen = {row: accuracies(evidence, row) for row in rows}
    of, (what, kind) = ids(evidence, *rows), trained_on(evidence)
    last = [[b[-1] - a[-1] for a, b in zip(seen["serial"], seen[row], strict=True)] for row in rows[1:]]
    points = [[100 * value for value in row] for row in last]
    worst = min(points, key=sum)
    note = f"{what}, worst of AGD 1-3 less serial at the end, points"
    yield "final-accuracy-kept", over_seeds([worst], kind, of, note)
    reached = [max(values) >= ENOUGH[what] for row in rows[1:] for values in seen[row]]
    share, updates = sum(reached) / len(reached), evidence.runs("serial")[0].spec.settings["updates"]
    note = f"share of AGD runs at {100 * ENOUGH[what]:g}% on {what} within {updates} updates"
    yield "same-iterations", point(share, kind=kind, runs=of, note=note)
    yield "no-warm-start", point(share, kind=kind, runs=of, note="the same runs, at the full rate from the start")
    ends = [[100 * values[-1] for values in seen["agd2"]]]
    yield "alexnet-54", over_seeds(ends, kind, of, f"{what}, AGD 2 comm at the end, %")


def draw_panel(panel: Panel, evidence: Evidence, figure: Figure) -> None:
    """Bars at the centre of the ranges with whiskers over the corners, by approach and device count."""
    axes = figure.subplots()
    names = ("no comm", "SGD", *LAYERWISE[1:], *DELAYED)
    seen = panel.relative(evidence)
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


def draw_a(evidence: Evidence, figure: Figure) -> None:
    draw_panel(PANELS["a"], evidence, figure)


def draw_b(evidence: Evidence, figure: Figure) -> None:
    draw_panel(PANELS["b"], evidence, figure)


def draw_c(evidence: Evidence, figure: Figure) -> None:
    draw_panel(PANELS["c"], evidence, figure)


def draw_d(evidence: Evidence, figure: Figure) -> None:
    draw_panel(PANELS["d"], evidence, figure)


ALT = "Bars of the simulated rate of each approach relative to no communication, for 1, 2, 4 and 8 devices"

ARTIFACTS = (
    Artifact(
        "matex_agd/fig1a",
        "AlexNet on the CPU cluster: throughput against no communication",
        layer_runs,
        (measure_trend_a, measure_headline, measure_sizes),
        draw_a,
        f"{ALT}; AlexNet on the CPU cluster",
    ),
    Artifact(
        "matex_agd/fig1b",
        "AlexNet on the DGX-1: throughput against no communication",
        runs_and_trainings,
        (measure_trend_b, measure_same_trend, measure_phases, measure_counted, measure_sizes, measure_whole_training),
        draw_b,
        f"{ALT}; AlexNet on the DGX-1",
    ),
    Artifact(
        "matex_agd/fig1c",
        "GoogLeNet on the CPU cluster: throughput against no communication",
        layer_runs,
        (measure_trend_c, measure_strong_scaling),
        draw_c,
        f"{ALT}; GoogLeNet on the CPU cluster",
    ),
    Artifact(
        "matex_agd/fig1d",
        "GoogLeNet on the DGX-1: throughput against no communication",
        layer_runs,
        (measure_trend_d, measure_counted, measure_sizes),
        draw_d,
        f"{ALT}; GoogLeNet on the DGX-1",
    ),
)
