"""Throughput: learners on one device measured, the paper's server modelled (Figs. 2, 12a, 13a, 14, 17)."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING, Any

from paper_figures.artifact import Artifact, Evidence, Quantities
from paper_figures.crossbow import arithmetic, settings
from paper_figures.crossbow.comparison import stand_in
from paper_figures.crossbow.printed import value
from paper_figures.crossbow.readings import epochs, ids, on_gpu, require
from paper_figures.crossbow.targets import common_target
from suite.accuracy_time import Server
from suite.clock import Link
from suite.measured import Measured, interval, point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from suite.store import Run


def fastest(run: Run) -> int:
    """The number of learners with the largest median throughput, those within 2% of it counted as the same."""
    counts = run.spec.settings["learners"]
    speed = {k: median(run.results[f"over_one_{k}"]) for k in counts}
    top = max(speed.values())
    return min(k for k in counts if speed[k] >= 0.98 * top)


def speed_up(run: Run, learners: int) -> Measured:
    """Throughput over one learner's, repeats interleaved; the interval is that of the repeats."""
    values = run.results[f"over_one_{learners}"]
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    made = "measured" if on_gpu(run) else "proxy"
    large = median(run.results[f"over_batch_{learners}"])
    together = median(run.results[f"vectorised_over_looped_{learners}"])
    note = (
        f"{run.spec.settings['model']}, {'GPU' if on_gpu(run) else 'CPU'}, {run.results[f'path_{learners}']}; "
        f"{large:.2f} times as fast as one learner with {learners} times the batch; "
        f"vectorised {together:.2f} times as fast as one after another"
    )
    return interval(median(values), low, high, kind=made, n=len(values), runs=[run.id], note=note)


def measure_speed(evidence: Evidence) -> Quantities:
    """Fig. 12a: throughput with four learners, and the best of all networks and counts."""
    require(bool(evidence.groups), "throughput runs")
    runs = {name: evidence.run(name) for name in evidence.groups}
    main = runs.get("crossbow_resnet32") or next(iter(runs.values()))
    yield "throughput", speed_up(main, 4)
    yield "intro-1p8", max((speed_up(run, fastest(run)) for run in runs.values()), key=lambda m: m.values[0])


def measure_saturation(network: str, group: str | None = None) -> Callable[[Evidence], Quantities]:
    """Fig. 14: where throughput stops rising, and where time to accuracy is least."""

    def measure(evidence: Evidence) -> Quantities:
        name = network if network in evidence.groups else next(iter(evidence.groups), "")
        require(bool(name), f"throughput runs of {network}")
        run = evidence.run(name)
        gpu = on_gpu(run) and name == network
        made = "measured" if gpu else "proxy"
        note = f"{name} on {'a GPU' if on_gpu(run) else 'a CPU'}; tuner {run.results['tuned_learners']}"
        yield "saturation", point(fastest(run), kind=made, runs=[run.id], note=note)
        if group is None:
            return
        counts = [k for k in run.spec.settings["learners"] if f"sma {k}" in evidence.groups]
        target = common_target(evidence, *(f"sma {k}" for k in counts), printed=settings.FINAL_TARGET)
        times = {}
        for k in counts:
            mean = sum(epochs(evidence, f"sma {k}", target)) / len(evidence.groups[f"sma {k}"])
            times[k] = mean / median(run.results[f"over_one_{k}"])
        require(len(times) > 1 and any(math.isfinite(t) for t in times.values()), "times to accuracy of several m")
        best = min(times, key=lambda k: times[k])
        sources = [run.id, *ids(evidence, *(f"sma {k}" for k in times))]
        yield "tta-minimum", point(best, kind=made, runs=sources, note=note)
        agree = abs(run.results["tuned_learners"] - best) <= 1
        yield "auto-tuner-picks-best", point(float(agree), kind=made, runs=sources, note=note)

    return measure


def modelled(evidence: Evidence) -> Quantities:
    """Figs. 13a and 17 by the cost model, calibrated on Fig. 12a and on Fig. 17's m = 1 row."""
    server, batch = calibrated(), settings.CROSSBOW_BATCH
    note = "cost model: a and b of a + b m from Fig. 12a, synchronisation from Fig. 17's m = 1 and m = 4"
    speed = {m: server.throughput(batch, 8, m) for m in (1, 2, 4)}
    yield "throughput", point(speed[2] / speed[1], kind="proxy", note=note)
    yield "no-more-at-4", point(speed[4] / speed[2], kind="proxy", note=note)
    gains = [
        math.log(server.throughput(batch, 8, 1, b) / server.throughput(batch, 8, 1, a))
        for a, b in ((1, 2), (2, 4), (4, None))
    ]
    yield "rises-with-tau", point(gains, kind="proxy", note=note)


def calibrated() -> Server:
    """The paper's server as a :class:`suite.accuracy_time.Server`, from printed throughputs alone.

    One GPU: m learners take a + b m, with a + b = 1 and 4 / (a + 4 b) = 1.4 (Fig. 12a), in units of the iteration
    without synchronisation of Fig. 17 (512 images at 18,500 images/s). Synchronisation: what remains at m = 1 and,
    from the 27% at m = 4, its growth with m.
    """
    images = 8 * settings.CROSSBOW_BATCH
    alone = images / value("fig17/nosync")
    per_learner = (4 / value("fig12a/throughput") - 1) / 3
    task = {m: alone * (1 - per_learner + per_learner * m) for m in (1, 2, 4)}
    at_one = images / value("fig17/tau1") - alone
    at_four = task[4] * value("fig17/gain-m4") / 100
    growth = max(0.0, (at_four - at_one) / 3)
    fixed = max(0.0, at_one - growth)
    size = 4 * 469_114
    link = Link(0.0, 2 * 7 / 8 * size / fixed if fixed else math.inf)
    return Server(task, size, link, growth)


def label(network: str) -> str:
    return settings.NETWORKS.get(network, "a small LeNet")


def measured_on(evidence: Evidence) -> list[str]:
    """The groups of throughput runs, which bear the names of networks."""
    names = [name for name in evidence.groups if not name[-1].isdigit() or name in settings.NETWORKS]
    require(bool(names), f"throughput runs at {evidence.profile}")
    return names


def draw_throughput(evidence: Evidence, figure: Figure) -> None:
    """Throughput over one learner against learners: in one step, and as one batch k times as large."""
    _throughput_into(figure.subplots(), evidence)


def _throughput_into(axes: Any, evidence: Evidence) -> None:
    every: set[int] = set()
    for position, name in enumerate(measured_on(evidence)):
        run = evidence.run(name)
        counts = run.spec.settings["learners"]
        every |= set(counts)
        middle, large, below, above = [], [], [], []
        for k in counts:
            ordered = sorted(run.results[f"over_one_{k}"])
            middle.append(median(ordered))
            below.append(middle[-1] - ordered[len(ordered) // 10])
            above.append(ordered[-1 - len(ordered) // 10] - middle[-1])
            large.append(middle[-1] / median(run.results[f"over_batch_{k}"]))
        place = "GPU" if on_gpu(run) else "CPU"
        colour = f"C{position}"
        axes.errorbar(
            counts,
            middle,
            [below, above],
            marker="o",
            color=colour,
            linestyle="-",
            capsize=2,
            label=f"{label(name)}, k learners ({place})",
        )
        axes.plot(counts, large, marker="s", color=colour, linestyle="--", label=f"{label(name)}, k times the batch")
    axes.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
    axes.set_xticks(sorted(every))
    axes.set_xlabel("learners k")
    axes.set_ylabel("throughput / one learner's")
    axes.legend()


def draw_saturation(evidence: Evidence, figure: Figure) -> None:
    """Fig. 14: throughput against learners, and the time to accuracy that follows where epochs were measured."""
    (name,) = measured_on(evidence)
    run = evidence.run(name)
    counts = [k for k in run.spec.settings["learners"] if f"sma {k}" in evidence.groups]
    if not counts:
        draw_throughput(evidence, figure)
        return
    left, right = figure.subplots(1, 2)
    _throughput_into(left, evidence)
    target = common_target(evidence, *(f"sma {k}" for k in counts), printed=settings.FINAL_TARGET)
    for k in counts:
        times = [value / median(run.results[f"over_one_{k}"]) for value in epochs(evidence, f"sma {k}", target)]
        right.plot([k] * len(times), times, "o", color="C0")
    right.set_xticks(counts)
    right.set_xlim(counts[0] - 0.5, counts[-1] + 0.5)
    right.set_ylim(bottom=0)
    right.set_xlabel("learners k")
    right.set_ylabel(f"time to {100 * target:g}%, in epochs of one learner")
    if place := stand_in(evidence, f"sma {counts[0]}"):
        right.set_title(f"Stand-in: {place}", fontsize="small")


def draw_split(evidence: Evidence, figure: Figure) -> None:
    """Fig. 2: one batch cut over devices like this one, from measured times and with exchange left out."""
    require(bool(evidence.groups), f"throughput runs at {evidence.profile}")
    axes, most = figure.subplots(), 1
    for position, name in enumerate(evidence.groups):
        run = evidence.run(name)
        table = run.curve("seconds")
        seconds = table[table["side"] == "batch"].groupby("learners")["seconds"].median()
        for whole in (2, 4, 8):
            devices = [g for g in (1, 2, 4, 8) if whole % g == 0 and whole // g in seconds.index]
            if whole in seconds.index:
                speed = [float(seconds[whole] / seconds[whole // g]) for g in devices]
                title = f"{label(name)}, batch {whole * run.spec.settings['batch']}"
                axes.plot(devices, speed, marker="os^D"[position % 4], label=title)
                most = max(most, *devices)
    axes.plot([1, most], [1, most], color="0.5", linewidth=0.8, linestyle=":", label="linear")
    axes.set_xticks([g for g in (1, 2, 4, 8) if g <= most])
    axes.set_xlabel("devices")
    axes.set_ylabel("throughput / one device's, exchange left out")
    axes.legend()


def draw_modelled(evidence: Evidence, figure: Figure) -> None:
    """Figs. 13a and 17 by the cost model of the paper's server, with the printed points."""
    axes = figure.subplots()
    server, batch = calibrated(), settings.CROSSBOW_BATCH
    taus: list[int | None] = [1, 2, 4, None]
    for m in (1, 2, 4):
        axes.plot(
            range(4), [server.throughput(batch, 8, m, tau) for tau in taus], marker="o", label=f"m = {m}, modelled"
        )
    axes.plot([0, 3], [value("fig17/tau1"), value("fig17/nosync")], "D", color="C6", label="printed, m = 1")
    axes.set_xticks(range(4), ["1", "2", "4", "none"])
    axes.set_xlabel("synchronisation interval tau")
    axes.set_ylabel("images/s on 8 GPUs")
    axes.legend()


def draw_learners_modelled(evidence: Evidence, figure: Figure) -> None:
    """Figs. 13a, 14b: throughput on 8 GPUs against learners per GPU, by the cost model of the paper's server."""
    axes = figure.subplots()
    server, batch = calibrated(), settings.CROSSBOW_BATCH
    speed = [server.throughput(batch, 8, m) for m in (1, 2, 4)]
    axes.plot((1, 2, 4), [s / speed[0] for s in speed], marker="o", label="8 GPUs, modelled")
    axes.plot([2], [value("fig13a/throughput")], "D", color="C6", label="8 GPUs, printed")
    axes.set_xticks((1, 2, 4))
    axes.set_xlabel("learners per GPU")
    axes.set_ylabel("throughput / one learner per GPU")
    axes.legend()


EIGHT_GPUS = {1: "sma 8", 2: "sma 16", 4: "sma 32"}  # learners per GPU -> replicas


def modelled_time(evidence: Evidence, target: float) -> dict[int, float]:
    """Time to accuracy on 8 GPUs over that of one learner each: measured epochs by modelled throughput."""
    present = {m: name for m, name in EIGHT_GPUS.items() if name in evidence.groups}
    require(len(present) > 1, f"runs with 8 and 16 replicas at {evidence.profile}")
    server, batch = calibrated(), settings.CROSSBOW_BATCH
    times = {}
    for m, name in present.items():
        found = epochs(evidence, name, target)
        times[m] = sum(found) / len(found) / server.throughput(batch, 8, m)
    return {m: time / times[1] for m, time in times.items()}


def eight_target(evidence: Evidence) -> float:
    return common_target(evidence, *(name for name in EIGHT_GPUS.values() if name in evidence.groups))


def measure_modelled_time(evidence: Evidence) -> Quantities:
    """Fig. 13c: the gain of two learners per GPU, and the best number of those that were trained."""
    target = eight_target(evidence)
    times = modelled_time(evidence, target)
    runs = ids(evidence, *(EIGHT_GPUS[m] for m in times))
    note = f"epochs to {100 * target:g}% of {stand_in(evidence, 'sma 8') or 'ResNet-32'}, throughput modelled"
    require(all(math.isfinite(time) for time in times.values()), f"runs that reach {100 * target:g}%")
    yield "tta", point(1 / times[2], kind="proxy", runs=runs, note=note)
    yield "m2-best", point(min(times, key=lambda m: times[m]), kind="proxy", runs=runs, note=note)


def draw_modelled_time(evidence: Evidence, figure: Figure) -> None:
    """Fig. 13c: time to accuracy on 8 GPUs against learners per GPU."""
    target = eight_target(evidence)
    times = modelled_time(evidence, target)
    axes = figure.subplots()
    axes.plot(list(times), list(times.values()), marker="o", label="measured epochs, modelled throughput")
    axes.plot([2], [1 / value("fig13c/tta")], "D", color="C6", label="printed")
    axes.set_xticks(list(times))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("learners on each of 8 GPUs")
    axes.set_ylabel(f"time to {100 * target:g}% / one learner per GPU")
    axes.legend()
    if place := stand_in(evidence, "sma 8"):
        axes.set_title(f"Stand-in: {place}", fontsize="small")


def fig14_runs(profile: str) -> settings.Groups:
    name = {"smoke": "digits_lenet", "reduced": "crossbow_lenet", "paper": "crossbow_resnet32"}[profile]
    return {name: settings.throughput(profile)[name], **settings.groups(profile, "sma 1", "sma 2", "sma 4")}


def fig14c_runs(profile: str) -> settings.Groups:
    return {"crossbow_vgg16": settings.throughput(profile)["crossbow_vgg16"]} if profile == "paper" else {}


ALT_SPEED = "Throughput against learners, relative to one learner."
ALT_MODEL = "Modelled throughput on 8 GPUs against the synchronisation interval with the two printed values."

ARTIFACTS = {
    "fig2": Artifact(
        "crossbow/fig2",
        "Throughput of one batch cut over devices",
        settings.throughput,
        (arithmetic.fig2,),
        draw_split,
        "Speed-up against devices for several batch sizes, below the line of linear growth.",
    ),
    "fig12a": Artifact(
        "crossbow/fig12a",
        "Throughput against learners on one device",
        settings.throughput,
        (measure_speed,),
        draw_throughput,
        ALT_SPEED,
    ),
    "fig13a": Artifact(
        "crossbow/fig13a",
        "Throughput against learners on 8 GPUs, modelled",
        measures=(arithmetic.fig13a, modelled),
        draw=draw_learners_modelled,
        alt="Modelled throughput on eight GPUs against learners per GPU, with the printed value.",
    ),
    "fig13c": Artifact(
        "crossbow/fig13c",
        "Time to the target on 8 GPUs against learners per GPU, throughput modelled",
        lambda profile: settings.groups(profile, *EIGHT_GPUS.values()),
        (measure_modelled_time,),
        draw_modelled_time,
        "Time to accuracy against learners per GPU, relative to one, with the printed value.",
    ),
    "fig14a": Artifact(
        "crossbow/fig14a",
        "Throughput of ResNet-32 on one device against learners",
        fig14_runs,
        (measure_saturation("crossbow_resnet32", "sma"),),
        draw_saturation,
        "Throughput against learners, relative to one, and time to accuracy against learners.",
        (8.0, 4.0),
    ),
    "fig14b": Artifact(
        "crossbow/fig14b",
        "Throughput of ResNet-32 on 8 GPUs against learners, modelled",
        draw=draw_learners_modelled,
        alt="Modelled throughput on eight GPUs against learners per GPU, with the printed value.",
    ),
    "fig14c": Artifact(
        "crossbow/fig14c",
        "Throughput of VGG-16 on one device against learners",
        fig14c_runs,
        (measure_saturation("crossbow_vgg16"),),
        draw_throughput,
        ALT_SPEED,
    ),
    "fig14d": Artifact("crossbow/fig14d", "Time to accuracy and throughput of VGG-16 on 8 GPUs"),
    "fig17": Artifact(
        "crossbow/fig17",
        "Throughput on 8 GPUs against the synchronisation interval, modelled",
        measures=(arithmetic.fig17, modelled),
        draw=draw_modelled,
        alt=ALT_MODEL,
    ),
}
