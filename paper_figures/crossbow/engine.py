"""Table 1 and the system: tasks on streams, the auto-tuner, memory, throughput (Figs. 2, 7, 8, 12a, 13a, 14, 17)."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

from paper_figures.artifact import Artifact, Evidence, Quantities
from paper_figures.crossbow import arithmetic, settings
from paper_figures.crossbow.printed import value
from paper_figures.crossbow.readings import always, epochs, ids, on_gpu, require, results, spread
from suite.accuracy_time import Server
from suite.clock import Link
from suite.measured import Measured, exact, interval, point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from suite.store import Run

TASKS = always("tasks", settings.TASKS)
TUNER = always("tuner", settings.TUNER)
SIZES = always("sizes", settings.SIZES)
CLAIM_OF = {"crossbow_lenet": "lenet", "crossbow_resnet32": "resnet-32", "crossbow_vgg16": "vgg-16"}
CLAIM_OF["crossbow_resnet50"] = "resnet-50"


def measure_sizes(evidence: Evidence) -> Quantities:
    """Table 1: parameters and operators of the networks that the run built."""
    run = evidence.run("sizes")
    for network, claim in CLAIM_OF.items():
        size = run.results[f"{network}_parameters"] * arithmetic.FLOAT / arithmetic.MIB
        yield f"{claim}-model-mb", exact(size, runs=[run.id])
        yield f"{claim}-ops", exact(run.results[f"{network}_operators"], runs=[run.id])
    resnet = [run.results[f"crossbow_resnet50_{what}"] for what in ("parameters", "operators", "bytes")]
    text = (resnet[0] * arithmetic.FLOAT / arithmetic.MIB, resnet[1], resnet[2] / 2**30)
    batch = run.spec.settings["batch"]
    note = f"outputs of forward and gradient operators at batch {batch}, each in its own buffer"
    yield "resnet50-text", point(text, kind="proxy", runs=[run.id], note=note)


def measure_plans(evidence: Evidence) -> Quantities:
    run = evidence.run("sizes")
    found = run.results
    saved = [100 * (1 - found[f"{name}_planned"] / found[f"{name}_bytes"]) for name in settings.NETWORKS]
    yield "half", exact(saved, runs=[run.id], note="LeNet, ResNet-32, VGG-16, ResNet-50")
    yield "no-live-overwrite", exact([found[f"{name}_overwrites"] for name in settings.NETWORKS], runs=[run.id])


def measure_buffer(evidence: Evidence) -> Quantities:
    """Batches in use at one time in the recorded and virtual schedules, per learner."""
    run = evidence.run("tasks")
    table = run.curve("virtual")
    learn = table[table["kind"] == "learn"]
    held = [learn[learn["iteration"] == i]["batch"].nunique() for i in learn["iteration"].unique()]
    yield "buffer-size", exact(min(held) / learn["learner"].nunique(), runs=[run.id])


def measure_memory(evidence: Evidence) -> Quantities:
    """Exponents of bytes against batch and against learners, what a lone parameter vector takes left in."""
    import numpy as np

    run = evidence.run("memory")
    table = run.curve("memory")
    table = table[~table["shared"]]
    one, smallest = table[table["learners"] == 1], table[table["batch"] == table["batch"].min()]
    slopes = [
        float(np.polyfit(np.log(rows[axis]), np.log(rows["bytes"]), 1)[0])
        for rows, axis in ((one, "batch"), (smallest, "learners"))
    ]
    device = "a GPU" if on_gpu(run) else "a CPU, where saved tensors and state are counted"
    made = "measured" if on_gpu(run) else "proxy"
    yield (
        "linear",
        point(slopes, kind=made, spread=0.05, runs=[run.id], note=f"{run.spec.settings['model']} on {device}"),
    )


def measure_idle(evidence: Evidence) -> Quantities:
    run = evidence.run("tasks")
    pairs = zip(run.results["idle_first_come"], run.results["idle_round_robin"], strict=True)
    steps = [slow - fast for fast, slow in pairs]
    yield "beats-round-robin", spread(steps, "simulated", [run.id], "virtual time; 100 iterations")


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
    note = f"{run.spec.settings['model']}, {'GPU' if on_gpu(run) else 'CPU'}, {run.results[f'path_{learners}']}"
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
        target = settings.FINAL_TARGET[evidence.profile]
        times = {}
        for k in run.spec.settings["learners"]:
            if f"sma {k}" in evidence.groups:
                mean = sum(epochs(evidence, f"sma {k}", target)) / len(evidence.groups[f"sma {k}"])
                times[k] = mean / median(run.results[f"over_one_{k}"])
        require(len(times) > 1 and any(math.isfinite(t) for t in times.values()), "times to accuracy of several m")
        best = min(times, key=lambda k: times[k])
        sources = [run.id, *ids(evidence, *(f"sma {k}" for k in times))]
        yield "tta-minimum", point(best, kind=made, runs=sources, note=note)
        agree = abs(run.results["tuned_learners"] - best) <= 1
        yield "auto-tuner-picks-best", point(float(agree), kind=made, runs=sources, note=note)

    return measure


def measure_milliseconds(evidence: Evidence) -> Quantities:
    """The longest change of the number of learners, in iterations of one learner here; on a GPU in milliseconds."""
    for name in evidence.groups:
        if name in settings.NETWORKS or name == "digits_lenet":
            run = evidence.run(name)
            share = run.results["resize_over_iteration"]
            note = f"{name}: {share:.2f} of one learner's iteration, on {'a GPU' if on_gpu(run) else 'a CPU'}"
            one = run.curve("seconds")
            one = one[(one["side"] == "looped") & (one["learners"] == 1)]["seconds"].median()
            yield "milliseconds", point(1000 * share * float(one), kind="proxy", runs=[run.id], note=note)


def measure_few_first(evidence: Evidence) -> Quantities:
    """Growing from 1 to 4 learners against 4 throughout: difference of mean test error, a proxy of epochs."""
    steps = []
    for grown, fixed in zip(evidence.runs("growing"), evidence.runs("followed"), strict=True):
        errors = [run.curve("models")["centre_error"].mean() for run in (fixed, grown)]
        steps.append(100 * float(errors[0] - errors[1]))
    note = "points of mean test error over five epochs, in place of epochs"
    yield (
        "few-first",
        Measured(*_bounds(steps), "proxy", len(steps), tuple(ids(evidence, "growing", "followed")), note),
    )


def _bounds(steps: list[float]) -> tuple[tuple[float], tuple[float], tuple[float]]:
    mean = sum(steps) / len(steps)
    return (mean,), (min(steps),), (max(steps),)


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


def draw_tasks(evidence: Evidence, figure: Figure) -> None:
    """Figs. 7 and 8: a recorded run of two learners on threads, and 2 GPUs with 2 learners in virtual time."""
    upper, lower = figure.subplots(2, 1)
    run = evidence.run("tasks")
    colours = {"learn": "C0", "local": "C1", "global": "C2"}
    for axes, name, scale, unit in ((upper, "recorded", 1000, "ms"), (lower, "virtual", 1, "task units")):
        table = run.curve(name)
        table = table[table["iteration"] < 4]
        streams = sorted(table["stream"].unique())
        seen: set[str] = set()
        for row in table.itertuples():
            width = max(scale * (row.end - row.start), 0.02 if name == "recorded" else 0.0)
            label = str(row.kind) if row.kind not in seen else None
            seen.add(str(row.kind))
            axes.barh(
                streams.index(row.stream), width, left=scale * row.start, color=colours[str(row.kind)], label=label
            )
            if row.kind == "learn":
                axes.text(scale * row.start, streams.index(row.stream), f" B{row.batch}", va="center", fontsize=6)
        axes.set_yticks(range(len(streams)), streams)
        axes.set_xlabel(f"{name} ({unit})")
        axes.grid(visible=False)
    upper.legend(ncols=3)


def draw_tuner(evidence: Evidence, figure: Figure) -> None:
    """Learners after each reading, Algorithm 2 and the settling rule, with a peak at 4."""
    axes = figure.subplots()
    table = evidence.run("tuner").curve("walks")
    for rule, rows in table[table["peak"] == 4].groupby("rule"):
        axes.step(rows["reading"], rows["learners"], where="post", label=str(rule))
    axes.axhline(4, color="0.5", linewidth=0.8, linestyle=":")
    axes.set_xlabel("reading of the throughput")
    axes.set_ylabel("learners")
    axes.legend()


def draw_idle(evidence: Evidence, figure: Figure) -> None:
    axes = figure.subplots()
    found = evidence.run("tasks").results
    axes.boxplot([found["idle_first_come"], found["idle_round_robin"]], tick_labels=["first come", "round robin"])
    axes.set_ylabel("idle stream-seconds (virtual)")


def draw_plans(evidence: Evidence, figure: Figure) -> None:
    axes = figure.subplots()
    found = evidence.run("sizes").results
    for position, (name, label) in enumerate(settings.NETWORKS.items()):
        whole = found[f"{name}_bytes"]
        four = [shared / (4 * found[f"{name}_planned"]) for shared in found[f"{name}_shared"]]
        axes.bar(
            position - 0.25,
            found[f"{name}_planned"] / whole,
            0.2,
            color="C0",
            label="" if position else "offline plan",
        )
        axes.bar(position, four[0], 0.2, color="C1", label="" if position else "4 learners in step, shared pool")
        axes.bar(position + 0.25, four[1], 0.2, color="C2", label="" if position else "4 learners a quarter apart")
        axes.annotate(label, (position, 0.02), ha="center", rotation=90, fontsize=7)
    axes.set_xticks([])
    axes.set_ylabel("bytes / without sharing")
    axes.legend()


def draw_throughput(evidence: Evidence, figure: Figure) -> None:
    """Throughput over one learner against learners: in one step, and as one batch k times as large."""
    names = [name for name in evidence.groups if not name.startswith("sma")]
    require(bool(names), f"throughput runs at {evidence.profile}")
    axes = figure.subplots()
    for position, name in enumerate(names):
        run = evidence.run(name)
        counts = run.spec.settings["learners"]
        learners = [median(run.results[f"over_one_{k}"]) for k in counts]
        large = [median(run.results[f"over_one_{k}"]) / median(run.results[f"over_batch_{k}"]) for k in counts]
        place = "GPU" if on_gpu(run) else "CPU"
        axes.plot(
            counts, learners, marker="o", color=f"C{position}", linestyle="-", label=f"{name}, k learners ({place})"
        )
        axes.plot(counts, large, marker="s", color=f"C{position}", linestyle="--", label=f"{name}, k-times batch")
    axes.axhline(1, color="0.5", linewidth=0.8)
    axes.set_xlabel("learners k")
    axes.set_ylabel("throughput / one learner's")
    axes.legend()


def draw_modelled(evidence: Evidence, figure: Figure) -> None:
    """Figs. 2, 13a and 17 by the cost model of the paper's server, with the printed points."""
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
    """Figs. 13c, 14b: throughput on 8 GPUs against learners per GPU, by the cost model of the paper's server."""
    axes = figure.subplots()
    server, batch = calibrated(), settings.CROSSBOW_BATCH
    for gpus in (1, 8):
        speed = [server.throughput(batch, gpus, m) for m in (1, 2, 4)]
        axes.plot((1, 2, 4), [s / speed[0] for s in speed], marker="o", label=f"{gpus} GPUs, modelled")
    axes.plot([2], [value("fig13a/throughput")], "D", color="C6", label="printed, 8 GPUs")
    axes.set_xlabel("learners per GPU")
    axes.set_ylabel("throughput / one learner per GPU")
    axes.legend()


def draw_memory(evidence: Evidence, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    draw_plans_into(left, evidence)
    table = evidence.run("memory").curve("memory")
    table = table[table["batch"] == table["batch"].max()]
    for shared, rows in table.groupby("shared"):
        label = "activations shared" if shared else "activations of their own"
        right.plot(rows["learners"], rows["bytes"] / rows["bytes"].iloc[0], marker="o", label=label)
    right.set_xlabel("learners")
    right.set_ylabel("bytes / one learner's")
    right.legend()


def draw_plans_into(axes: object, evidence: Evidence) -> None:
    found = evidence.run("sizes").results
    saved = [100 * (1 - found[f"{name}_planned"] / found[f"{name}_bytes"]) for name in settings.NETWORKS]
    axes.bar(list(settings.NETWORKS.values()), saved)  # type: ignore[attr-defined]
    axes.axhline(50, color="C1", linestyle="--")  # type: ignore[attr-defined]
    axes.set_ylabel("saved by the offline plan (%)")  # type: ignore[attr-defined]
    axes.tick_params(axis="x", rotation=30)  # type: ignore[attr-defined]


def fig14_runs(profile: str) -> settings.Groups:
    name = {"smoke": "digits_lenet", "reduced": "crossbow_lenet", "paper": "crossbow_resnet32"}[profile]
    return {name: settings.throughput(profile)[name], **settings.groups(profile, "sma 1", "sma 2", "sma 4")}


def fig14c_runs(profile: str) -> settings.Groups:
    return {"crossbow_vgg16": settings.throughput(profile)["crossbow_vgg16"]} if profile == "paper" else {}


def tuner_runs(profile: str) -> settings.Groups:
    return {
        **TUNER(profile),
        "algebra": (settings.ALGEBRA,),
        **settings.throughput(profile),
        **settings.followed(profile),
    }


BOTH = ("virtual", "recorded")
ALT_SPEED = "Throughput against learners, relative to one learner."
ALT_MODEL = "Modelled throughput on 8 GPUs against the synchronisation interval with the two printed values."

ARTIFACTS = {
    "table1": Artifact(
        "crossbow/table1", "Benchmark models and data sets", SIZES, (arithmetic.table1_inputs, measure_sizes)
    ),
    "fig2": Artifact(
        "crossbow/fig2", "Throughput on 8 GPUs", measures=(arithmetic.fig2,), draw=draw_modelled, alt=ALT_MODEL
    ),
    "fig7": Artifact(
        "crossbow/fig7",
        "Learners, streams and batches of a run",
        TASKS,
        (results("tasks", {"pools": tuple(f"{name}_learn_after_return" for name in BOTH)}),),
        draw_tasks,
        "Timelines of learning, local and global synchronisation tasks on their streams.",
        (6.4, 5.0),
    ),
    "fig8": Artifact(
        "crossbow/fig8",
        "Learning and synchronisation tasks on streams: a recorded run and 2 GPUs with 2 learners each",
        TASKS,
        (
            results(
                "tasks",
                {
                    "one-local-per-replica": (
                        *(f"{name}_local_per_replica" for name in BOTH),
                        *(f"{name}_local_on_stream_of_learning" for name in BOTH),
                    ),
                    "overlap": tuple(f"{name}_iterations_overlapping" for name in BOTH),
                    "dependency": tuple(f"{name}_local_after_average" for name in BOTH),
                },
            ),
            arithmetic.fig8,
        ),
        draw_tasks,
        "Timelines of learning, local and global synchronisation tasks on their streams.",
        (6.4, 5.0),
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
        draw=draw_modelled,
        alt=ALT_MODEL,
    ),
    "fig13c": Artifact(
        "crossbow/fig13c",
        "Throughput on 8 GPUs against learners, the modelled factor of time to accuracy",
        draw=draw_learners_modelled,
        alt="Modelled throughput against learners on one and on eight GPUs.",
    ),
    "fig14a": Artifact(
        "crossbow/fig14a",
        "Throughput of ResNet-32 on one device against learners",
        fig14_runs,
        (measure_saturation("crossbow_resnet32", "sma"),),
        draw_throughput,
        ALT_SPEED,
    ),
    "fig14b": Artifact(
        "crossbow/fig14b",
        "Throughput of ResNet-32 on 8 GPUs against learners, modelled",
        draw=draw_learners_modelled,
        alt="Modelled throughput against learners on one and on eight GPUs.",
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
    "alg2": Artifact(
        "crossbow/alg2",
        "Choosing the number of learners per GPU from throughput",
        tuner_runs,
        (
            results(
                "tuner",
                {
                    "starts-at-one": "starts_at",
                    "adds-first": "after_first",
                    "adds-on-rise": "on_rise",
                    "removes-on-fall": "on_fall",
                    "holds-on-plateau": "on_plateau",
                    "finds-peak": "literal_distance",
                },
            ),
            results("algebra", {"new-replica-from-average": "newcomer"}),
            measure_milliseconds,
            measure_few_first,
        ),
        draw_tuner,
        "Algorithm 2 cycles around a peak at four learners; the settling rule stops there.",
    ),
    "alg-memory": Artifact(
        "crossbow/alg-memory",
        "Output-buffer reuse with reference counts",
        lambda profile: {**SIZES(profile), **TASKS(profile), **settings.memory(profile)},
        (measure_plans, measure_buffer, measure_memory),
        draw_memory,
        "Share of memory saved by the offline plan for four networks, and bytes against learners.",
    ),
    "alg-scheduler": Artifact(
        "crossbow/alg-scheduler",
        "First-come first-served assignment of batches to free replicas",
        TASKS,
        (
            measure_idle,
            results("tasks", {"one-task-per-replica": tuple(f"{name}_learn_per_replica" for name in BOTH)}),
        ),
        draw_idle,
        "Idle time under both ways to assign batches.",
    ),
}
