"""Figure 1: throughput of each approach relative to no communication.

The printed bars are lost; what is left to test are the sentences about them. In the cost model of both machines
(``suite/cost_models/machines.py``: ranges of constants, so whatever is modelled is an interval over their corners)
the order of the approaches follows from the equations. It is therefore drawn, and decided only where it was
measured and could have come out otherwise: panel (a)'s sentences over a link between two workers that compute, the
other panels' on hosts that sleep and really exchange (:mod:`paper_figures.matex_agd.hosts`). What is not said of one
panel alone stands with the first that it concerns; accuracy at the end of training, with panel (b).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from paper_figures.matex_agd import hosts
from paper_figures.matex_agd.accuracy import accuracies, ids, trained_on
from paper_figures.matex_agd.link_readings import (
    DELAYED,
    LAYER_WISE,
    SPEEDS,
    leads,
    link_run,
    link_runs,
    ratios,
)
from paper_figures.matex_agd.link_readings import frame as link_frame
from paper_figures.matex_agd.overlap_cases import ALEXNET, GOOGLENET, PANELS, layer_costs, layer_runs
from paper_figures.matex_agd.plots import APPROACHES, draw_bars, draw_workload
from paper_figures.matex_agd.settings import COMPUTE, EFFECTIVE_BATCH, table1, whole_training
from suite.claims.estimate import Estimate, exact, interval, over_seeds, point
from suite.claims.intervals import Interval, least, log_interval, mean_interval
from suite.cost_models.machines import DGX1, SANDY_BRIDGE, exchange, network
from suite.cost_models.overlap import delayed
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged, genuine
from suite.papers.published import printed_value
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from suite.runs.store import Run

LAYERWISE = ("layer-wise, all", *LAYER_WISE)  # the cost model's orders of applying
ENOUGH = {"ImageNet": 0.53, "mnist": 0.97}  # accuracy that counts as converged: "about 54%", less a point; LeNet's


def runs_and_compute(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Of panel (d); some minutes of one core, so no part of ``smoke``."""
    compute = {} if profile == "smoke" else {"compute": (COMPUTE,)}
    return {**layer_runs(profile), **hosts.host_runs("d", profile), **compute}


def runs_and_link(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Of panel (a)."""
    return {**layer_runs(profile), **hosts.host_runs("a", profile), **link_runs(profile)}


def runs_and_trainings(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Of panel (b), which speaks of the trends of all."""
    return {**layer_runs(profile), **hosts.host_runs("abcd", profile), **whole_training(profile)}


def runs_of_googlenet(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Of panel (c)."""
    return {**layer_runs(profile), **hosts.host_runs("c", profile)}


def measure_link(evidence: Evidence) -> Quantities:
    """The sentences on all approaches over a link: each must hold at that of three speeds where it holds least."""
    run = link_run(evidence)
    over_sgd, over_layers = (leads(run, "computing", DELAYED, behind) for behind in (("SGD",), LAYER_WISE))
    note = "log of the rate of AGD 1-3 comm over {}: LeNet, two workers, at the speed of three where it is least"
    near = note.format("SGD and layer-wise, the nearer")
    yield "agd-best", over_seeds([least([*over_sgd, *over_layers])], (run.id,), near)
    yield "layerwise-below-agd", over_seeds([least(over_layers)], (run.id,), note.format("layer-wise, both orders"))
    methods = ("SGD", *LAYER_WISE, *DELAYED)
    seen = [ratios(run, "computing", speed, method) for speed in SPEEDS for method in methods]
    most = Interval(max(i.mean for i in seen), max(i.low for i in seen), max(i.high for i in seen), seen[0].n)
    note = "largest rate over no comm of all methods and speeds: LeNet, two workers"
    yield "no-comm-best", over_seeds([most], (run.id,), note)


def measure_model(letter: str) -> Callable[[Evidence], Quantities]:
    """Measures the same sentences in a panel of the cost model, whose equations they follow from: shown, no more."""

    def measure(evidence: Evidence) -> Quantities:
        panel, runs = PANELS[letter], (evidence.run("layers").id,)
        agd, layers, highest = [], [], []
        for devices, settings in panel.relative(evidence):
            highest += [max(rate for name, rate in seen.items() if name != "no comm") for seen in settings]
            if devices in hosts.SHARED:
                best = [max(seen[name] for name in DELAYED) for seen in settings]
                orders = [max(seen[name] for name in LAYERWISE) for seen in settings]
                agd.append([value - seen["SGD"] for value, seen in zip(best, settings, strict=True)])
                layers.append([value - other for value, other in zip(best, orders, strict=True)])
        network = panel.name.removeprefix("caffe_")
        where = f"{network} on 2, 4, 8 devices, 16 corners of the {panel.machine.name}'s ranges"
        yield "modelled: AGD over SGD", over_corners(agd, runs, f"AGD less SGD, share of no comm; {where}")
        note = f"AGD less the best layer-wise order; {where}"
        yield "modelled: AGD over layer-wise", over_corners(layers, runs, note)
        note = f"largest rate over no comm; {where}"
        yield "modelled: best over no comm", point(max(highest), runs=runs, note=note)

    return measure


def over_corners(rows: list[list[float]], runs: tuple[str, ...], note: str) -> Estimate:
    """Value at the centre of the ranges with the ends over all corners, at the device count where it is least."""
    row = min(rows, key=min)
    return interval(row[0], min(row), max(row), runs=runs, note=note)


def measure_headline(evidence: Evidence) -> Quantities:
    """The largest speed-up and efficiency over the four panels, at each choice of constants."""
    runs = (evidence.run("layers").id,)
    speedups: dict[str, list[list[float]]] = {}
    efficiencies: list[list[float]] = []
    for panel in PANELS.values():
        layers = layer_costs(evidence, panel.name)
        for devices, settings in panel.relative(evidence):
            if devices not in hosts.SHARED:
                continue
            speedups.setdefault(panel.machine.name, []).append(
                [max(seen[name] for name in DELAYED) / seen["SGD"] for seen in settings]
            )
            if devices == max(hosts.SHARED):
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
    yield "speedup", interval(centre, low, high, runs=runs, note="best AGD over SGD, any panel")
    top = [max(column) for column in zip(*efficiencies, strict=True)]
    note = "rate on 8 devices over 8 x that on one, if a device is as efficient on an eighth of the batch"
    yield "efficiency", interval(top[0], min(top), max(top), proxy=True, runs=runs, note=note)


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
            runs=(evidence.run("layers").id,),
            note="smallest gain in rate from doubling the nodes, 1 to 32, AGD 3 comm",
        ),
    )


def measure_same_trend(evidence: Evidence) -> Quantities:
    """Share of networks, device counts and corners in which SGD < layer-wise < AGD on both machines alike.

    Where it is below one, GoogLeNet's 128 sums cost more in start-ups on 8 GPUs than they hide, and layer-wise falls
    below SGD as it does not on the cluster; AGD leads on both.
    """
    agreements = []
    for cpu, gpu in (("a", "b"), ("c", "d")):
        for (_, ours), (_, theirs) in zip(
            PANELS[cpu].relative(evidence), PANELS[gpu].relative(evidence), strict=True
        ):
            agreements += [_ranking(a) == _ranking(b) for a in ours for b in theirs]
    share = sum(agreements) / len(agreements)
    yield (
        "modelled: same order on both machines",
        point(
            share,
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
            runs=(evidence.run("layers").id,),
            note="share of an iteration that only delayed exchange can use, smallest of four",
        ),
    )


def measure_counted(evidence: Evidence) -> Quantities:
    """Parameters and multiply-adds."""
    run = evidence.run("layers")
    found, runs = run.results, (run.id,)
    yield "parameters-alexnet", exact(found[f"{ALEXNET} parameters"] / 1e6, runs=runs)
    without = found[f"{GOOGLENET} without auxiliary heads"] / 1e6
    yield (
        "parameters-googlenet",
        exact(without, runs=runs, note=f"with the auxiliary heads {found[f'{GOOGLENET} parameters'] / 1e6:.2f}"),
    )
    ratio = found[f"{GOOGLENET} forward multiply-adds"] / found[f"{ALEXNET} forward multiply-adds"]
    yield "multiply-adds", exact(ratio, runs=runs, note="of GoogLeNet over those of AlexNet, an image forward")


def measure_compute(evidence: Evidence) -> Quantities:
    """Seconds per image of GoogLeNet over those of AlexNet, each with its effective batch on one device."""
    run = evidence.run("compute")
    seconds = run.curve("compute").pivot(index="repeat", columns="network", values="seconds")
    ratio = log_interval([float(value) for value in seconds[GOOGLENET] / seconds[ALEXNET]])
    note = "forward and backward, batches of 32 and 256, networks in turns"
    yield "compute-ratio", over_seeds([ratio], (run.id,), note)


@counterfeit("matex_agd/fig1d/compute-ratio")
def networks_exchanged(evidence: Evidence) -> Evidence:
    names = {ALEXNET: GOOGLENET, GOOGLENET: ALEXNET}
    told = lambda table: table.assign(network=table["network"].map(names))
    return edited(evidence, lambda run: forged(run, compute=told(run.curve("compute"))), "compute")


@genuine("matex_agd/fig1d/compute-ratio")
def googlenet_takes_twice_as_long(evidence: Evidence) -> Evidence:
    """Each repetition of GoogLeNet as long as two of AlexNet's images."""

    def edit(run: Run) -> Run:
        table = run.curve("compute")
        alexnet = table[table["network"] == ALEXNET].set_index("repeat")["seconds"]
        factor = table["network"].map({ALEXNET: 1, GOOGLENET: 2})
        return forged(run, compute=table.assign(seconds=factor * table["repeat"].map(alexnet)))

    return edited(evidence, edit, "compute")


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
            note="250 GB is what 256 x 256 pixels as bytes take",
        ),
    )


def measure_whole_training(evidence: Evidence) -> Quantities:
    """Accuracy at the end of a full training, and whether each approach reaches what its network should."""
    rows = ("serial", "agd1", "agd2", "agd3")
    seen = {row: accuracies(evidence, row) for row in rows}
    of, (what, proxy) = ids(evidence, *rows), trained_on(evidence, "serial")
    ends = {row: [100 * values[-1] for values in seeds] for row, seeds in seen.items()}
    points = [mean_interval([b - a for a, b in zip(ends["serial"], ends[row], strict=True)]) for row in rows[1:]]
    note = f"{what}, AGD 1-3 less serial at the end, the one furthest from it, points"
    yield "final-accuracy-kept", furthest(points, 0.0, of, note, proxy=proxy)
    reached = [max(values) >= ENOUGH[what] for row in rows[1:] for values in seen[row]]
    share, updates = sum(reached) / len(reached), evidence.runs("serial")[0].spec.settings["updates"]
    note = f"share of AGD runs at {100 * ENOUGH[what]:g}% on {what} within {updates} updates"
    yield "same-iterations", point(share, runs=of, note=note, proxy=proxy)
    yield "no-warm-start", point(share, runs=of, note="the same runs, at the full rate from the start", proxy=proxy)
    note = f"{what}, the row at the end that lies furthest from the printed accuracy, %"
    reference = printed_value("matex_agd/fig1b/alexnet-54")
    yield "alexnet-54", furthest([mean_interval(ends[row]) for row in rows], reference, of, note, proxy=proxy)


def furthest(seen: list[Interval], reference: float, of: tuple[str, ...], note: str, *, proxy: bool) -> Estimate:
    """The interval whose mean lies furthest from a value; infinite for one seed, which tells of no spread."""
    return over_seeds([max(seen, key=lambda i: abs(i.mean - reference))], of, note, proxy=proxy)


def frame(letter: str, evidence: Evidence) -> pd.DataFrame:
    """Modelled rates over no comm: approach, devices, rate (at the centre of the ranges), low and high (corners).

    Those on hosts (source "hosts") follow, and for panel (a) those over the link (source "link"), where they were
    measured.
    """
    import pandas as pd

    rows = []
    for devices, settings in PANELS[letter].relative(evidence):
        for approach in APPROACHES:
            rates = [seen[approach] for seen in settings]
            ends = {"rate": rates[0], "low": min(rates), "high": max(rates)}
            rows.append({"approach": approach, "devices": devices, "source": "cost model", **ends})
    tables = [pd.DataFrame(rows)]
    with contextlib.suppress(Missing):
        tables.append(hosts.frame(letter, evidence))
    with contextlib.suppress(Missing):
        if letter == "a":
            over_link = link_frame(link_run(evidence)).query("workload == 'computing'").drop(columns="workload")
            tables.append(over_link.rename(columns={"method": "approach"}).assign(devices=2))
    return pd.concat(tables, ignore_index=True)


def draw(letter: str, evidence: Evidence, figure: Figure) -> None:
    """The paper's bars, in its order, with the layer-wise approaches that its text speaks of behind a rule."""
    table, panel = frame(letter, evidence), PANELS[letter]
    modelled, on_hosts, over_link = (table[table["source"] == name] for name in ("cost model", "hosts", "link"))
    left, *right = figure.subplots(1, 2, width_ratios=(1.25, 1)) if len(over_link) else [figure.subplots()]
    network = panel.name.removeprefix("caffe_").replace("alexnet", "AlexNet").replace("googlenet", "GoogLeNet")
    if len(on_hosts):
        draw_bars(on_hosts, left, modelled[modelled["devices"] > 1])
        what = "modelled compute, real exchange"
    else:
        draw_bars(modelled, left)
        what = "cost model"
    left.set_title(f"{what}: {network}, {panel.machine.name}, batch {EFFECTIVE_BATCH[panel.name]}", pad=20)
    for axes in right:
        draw_workload(over_link.rename(columns={"approach": "method"}), APPROACHES[1:], axes)
        axes.set_title("measured stand-in: LeNet, two workers over a link", pad=20)


ALT = "Bars of the rate of each approach relative to no communication by number of devices"

ARTIFACTS = (
    Artifact(
        "matex_agd/fig1a",
        "AlexNet on the CPU cluster: throughput against no communication",
        runs_and_link,
        (measure_link, measure_model("a"), measure_headline, measure_sizes),
        partial(draw, "a"),
        f"{ALT}; AlexNet on the CPU cluster. Beside them LeNet's, measured over a link of three speeds",
        (10.4, 4.2),
        frame=partial(frame, "a"),
    ),
    Artifact(
        "matex_agd/fig1b",
        "AlexNet on the DGX-1: throughput against no communication",
        runs_and_trainings,
        (
            measure_model("b"),
            hosts.measure_hosts("b"),
            hosts.measure_trend,
            measure_same_trend,
            measure_phases,
            measure_counted,
            measure_sizes,
            measure_whole_training,
        ),
        partial(draw, "b"),
        f"{ALT}; AlexNet on the DGX-1",
        frame=partial(frame, "b"),
    ),
    Artifact(
        "matex_agd/fig1c",
        "GoogLeNet on the CPU cluster: throughput against no communication",
        runs_of_googlenet,
        (measure_model("c"), hosts.measure_hosts("c"), measure_strong_scaling),
        partial(draw, "c"),
        f"{ALT}; GoogLeNet on the CPU cluster",
        frame=partial(frame, "c"),
    ),
    Artifact(
        "matex_agd/fig1d",
        "GoogLeNet on the DGX-1: throughput against no communication",
        runs_and_compute,
        (measure_model("d"), hosts.measure_hosts("d"), measure_counted, measure_compute, measure_sizes),
        partial(draw, "d"),
        f"{ALT}; GoogLeNet on the DGX-1",
        frame=partial(frame, "d"),
    ),
)
