"""Algorithms 1 and 2, and what surrounds them: averaging on two levels, memory, scheduling."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from statistics import fmean
from typing import Any

from paper_figures.crossbow import plots, readings, settings
from suite.claims.intervals import Interval, over_ends
from suite.papers.figure import Artifact, Figure, Frame, Groups, Missing, Run, np, pd
from suite.report.style import PALETTE

MIB = 2**20
TRAINED = {"growing": "1, then 2, then 4 learners", "followed": "4 learners throughout"}
NETWORKS = list(settings.NETWORKS)


def many_learners(profile: str) -> Groups:
    """SMA and EA-SGD with many learners, and runs in which replicas are tested beside their average."""
    many = settings.MANY[profile]
    names = {"sma": f"sma {many}", "ea-sgd": f"ea-sgd {many}"}
    trained = settings.called(settings.groups(profile, *names.values()), names)
    return {**settings.ALGEBRA, **trained, "followed": settings.followed(profile)["followed"]}


def tuned(profile: str) -> Groups:
    return {
        "tuner": (settings.TUNER,),
        **settings.throughput(profile),
        **settings.followed(profile),
        **settings.apart(profile),
    }


def two_level(profile: str) -> Groups:
    """Learners averaged flat, and as many on several devices with a reference model each."""
    learners, devices = settings.TWO_LEVEL[profile]
    return settings.groups(profile, f"sma {learners}", f"sma {learners} devices {devices}")


ALG1 = Artifact("crossbow/alg1", "Synchronous model averaging", many_learners)
ALG2 = Artifact("crossbow/alg2", "Choosing the number of learners per GPU from throughput", tuned, size=(8.6, 4.0))
HIERARCHICAL = Artifact(
    "crossbow/alg-hierarchical",
    "Two-level synchronisation: inside a GPU, then between GPUs",
    two_level,
    alt="Test accuracy against epochs, averaged flat and with a reference model for each device.",
    size=(7.4, 3.8),
)
MEMORY = Artifact(
    "crossbow/alg-memory",
    "Output-buffer reuse with reference counts",
    lambda profile: {"sizes": (settings.SIZES,), **settings.memory(profile)},
)
SCHEDULER = Artifact(
    "crossbow/alg-scheduler",
    "First-come first-served assignment of batches to free replicas",
    lambda profile: settings.TASKS,
)

# ---------------------------------------------------------------- what follows from the algorithms alone

readings.told(
    ALG1,
    one_learner_unstable="one_learner_limits",
    k_learners_stable="many_learner_limits",
    synchronous="batches_per_learner",
    distinct_batches="shared_in_epoch",
)


@SCHEDULER.quantity("beats-round-robin", ["tasks"], note="virtual time; 100 iterations")
def saved_idleness(frame: Frame) -> Interval:
    """Idle stream-seconds that first come, first served saves, over schedules whose tasks differ in length."""
    found = frame.one("tasks")
    return readings.spread(
        slow - fast for fast, slow in zip(found["idle_first_come"], found["idle_round_robin"], strict=True)
    )


# ---------------------------------------------------------------- Algorithm 1 trained


def ahead(frame: Frame) -> str:
    """How many epochs SMA is ahead of EA-SGD on average, at every rung that all their runs reach."""
    leads = []
    for rung in readings.rungs([curve for name in ("sma", "ea-sgd") for curve in readings.accuracies(frame, name)]):
        lead = fmean(readings.epochs(frame, "ea-sgd", rung)) - fmean(readings.epochs(frame, "sma", rung))
        leads.append(f"{100 * rung:g}%: {lead:+.1f}")
    return "epochs ahead at each rung, " + ", ".join(leads[-6:]) if leads else ""


MOMENTUM = readings.pair("sma", "ea-sgd", readings.steps, printed=settings.FINAL_TARGET)
ALG1.quantities["momentum-helps-many"] = replace(MOMENTUM, note=ahead)


@ALG1.quantity("average-better", ["followed"], note="points of test error, at the end and over the run")
def average_better(frame: Frame) -> list[Interval]:
    """By how much the average model errs less than the mean replica of its run: at the end, and over the run."""
    table = frame.table("models", "followed")
    gaps = (100 * (table["replica_error"] - table["centre_error"])).groupby(table["seed"])
    return [readings.spread(gaps.last().tolist()), readings.spread(gaps.mean().tolist())]


@ALG1.drawing
def draw_limits(frame: Frame, figure: Figure) -> None:
    """Largest stable rate for one, two and four learners, with the values of theory."""
    axes = figure.subplots()
    found = frame.run("algebra").results
    labels = ("k = 1, alpha = 1,\nno momentum", "k = 1, alpha = 1,\nmomentum 0.9", "k = 2", "k = 4")
    axes.bar(labels, [*found["one_learner_limits"], *found["many_learner_limits"]])
    axes.plot(labels, [0, 9 / 14, 1, 1.5], "D", color="C1", label="theory")
    axes.set_ylabel("largest stable rate x curvature")
    axes.legend()


# ---------------------------------------------------------------- Algorithm 2 measured


def about_change(frame: Frame) -> str:
    run = frame.run(readings.THROUGHPUT)
    share, device = run.results["resize_over_iteration"], "a GPU" if readings.on_gpu(run) else "a CPU"
    return f"{run.spec.settings['model']}: {share:.2f} of one learner's iteration, on {device}"


@ALG2.quantity("milliseconds", [readings.THROUGHPUT], note=about_change, shown=True)
def milliseconds(frame: Frame) -> float:
    """The longest change of the number of learners."""
    return 1000 * float(frame.one(readings.THROUGHPUT)["resize_seconds"])


def settled(run: Run) -> pd.DataFrame:
    """The number of learners at which each device's tuner ended, by repeat (rows) and device (columns)."""
    ends = run.curve("readings").drop_duplicates(["device", "repeat"])
    return ends.pivot(index="repeat", columns="device", values="settled")


def about_apart(frame: Frame) -> str:
    """Where the tuners ended, and how often two tunings of one device come to within one learner of each other."""
    said = []
    for run in frame.runs_of("apart"):
        ends = settled(run)
        counts = ends.stack().value_counts().sort_index()
        where = ", ".join(f"{learners} ({times})" for learners, times in counts.items())
        pairs = [abs(a - b) <= 1 for device in ends for a, b in combinations(ends[device], 2)]
        said.append(
            f"{run.spec.settings['model']}: ended at {where} learners (tunings); two tunings of one device agree as "
            f"closely in {100 * fmean(pairs):.0f}%"
        )
    return "; ".join(said) + "; cores of one processor in place of GPUs"


@ALG2.quantity("one-gpu-enough", ["apart"], note=about_apart)
def one_is_enough(frame: Frame) -> list[float]:
    """Share of tunings that end within one learner of the first device's, network by network."""
    frame.refuse_skipped("apart")
    ends = map(settled, frame.runs_of("apart"))
    return [float((each.drop(columns=0).sub(each[0], axis="index").abs() <= 1).to_numpy().mean()) for each in ends]


def errors(frame: Frame, group: str) -> list[list[float]]:
    """Test errors of the average model by seed and epoch."""
    return [run.curve("models")["centre_error"].tolist() for run in frame.runs_of(group)]


def arrivals(frame: Frame) -> list[tuple[float, float]]:
    """Epochs of the average model to 99%, growing and throughout, by seed; below the paper's scale its mean error in
    points in their place.
    """
    late = lambda curve: readings.late_arrival([1 - error for error in curve])
    arrival = late if frame.profile == "paper" else lambda curve: 100 * fmean(curve)
    grown, fixed = (map(arrival, errors(frame, group)) for group in ("growing", "followed"))
    return list(zip(grown, fixed, strict=True))


def about_growing(frame: Frame) -> str:
    what = "epochs" if frame.profile == "paper" else "points of mean test error"
    said = (f"{grown:.3g} growing, {fixed:.3g} throughout" for grown, fixed in arrivals(frame))
    return f"{what} by seed: " + "; ".join(said)


@ALG2.quantity("few-first", ["growing", "followed"], note=about_growing)
def few_first(frame: Frame) -> Interval:
    """What growing from 1 to 4 learners saves against 4 throughout, paired by seed."""
    return readings.spread(fixed - grown for grown, fixed in arrivals(frame))


@ALG2.table
def walks(frame: Frame) -> pd.DataFrame:
    """Rows of the walks of both rules with a peak at 4 learners, then accuracies (%) of the trainings by epoch."""
    parts = [frame.run("tuner").curve("walks").query("peak == 4")]
    if all(map(frame.whole, TRAINED)):
        models = frame.table("models", *TRAINED)
        named = models.assign(group=models["group"].map(TRAINED), test=100 * (1 - models["centre_error"]))
        parts.append(named[["group", "seed", "epoch", "test"]])
    return pd.concat(parts, ignore_index=True)


@ALG2.drawing
def draw_walks(frame: Frame, figure: Figure) -> None:
    """Algorithm 2 cycles around a peak at four learners; the settling rule stops there. Where LeNet was trained with
    one learner that becomes four, and with four throughout: test accuracy against epochs of both.
    """
    table = walks(frame)
    trained = table.dropna(subset="epoch") if "epoch" in table else table[:0]
    axes, *beside = figure.subplots(1, 1 if trained.empty else 2, squeeze=False)[0]
    for rule, rows in table.groupby("rule"):
        axes.step(rows["reading"], rows["learners"], where="post", label=str(rule))
    axes.axhline(4, color="0.5", linewidth=0.8, linestyle=":")
    axes.locator_params(axis="y", integer=True)
    axes.set(xlabel="reading of the throughput", ylabel="learners")
    axes.legend()
    for panel in beside:
        plots.by_epoch(trained, panel)
        target = 100 * settings.LENET_TARGET
        panel.axhline(target, color=PALETTE[2], linewidth=1, linestyle=(0, (4, 2)), label=f"target: {target:g}%")
        panel.set_ylabel("test accuracy of the average model (%)")
        panel.legend(loc="lower right")


HIERARCHICAL.table(readings.accuracy_table)


HIERARCHICAL.drawing(lambda frame, figure: plots.curves(frame, figure.subplots(), settings.FINAL_TARGET))


# ---------------------------------------------------------------- memory and scheduling


@MEMORY.quantity("half", ["sizes"], note=", ".join(settings.NETWORKS.values()))
def saved(frame: Frame) -> list[float]:
    """Per cent of the output buffers' bytes that the offline plan saves, network by network."""
    found = frame.run("sizes").results
    return [100 * (1 - found[f"{name}_planned"] / found[f"{name}_bytes"]) for name in NETWORKS]


def about_memory(frame: Frame) -> str:
    run = frame.run("memory")
    own, shared = (run.results[f"extra_{how}"][-1] / MIB for how in ("own", "shared"))
    batch = run.spec.settings["batches"][-1]
    return (
        f"{readings.on_device(run)}; one learner more takes {own:.3g} MiB with activations of its own and "
        f"{shared:.3g} MiB sharing them, at batch {batch}; the ranges are a band of 0.05 of our choice"
    )


@MEMORY.quantity("linear", ["memory"], note=about_memory)
def exponents(frame: Frame) -> list[Interval]:
    """Exponents of bytes against batch and against learners, with a band of 0.05."""
    table = frame.table("memory", "memory")
    if "extra_own" not in frame.run("memory").results:
        raise Missing("lacks a memory run that keeps the bytes of one learner more")
    table = table[~table["shared"]]
    one, smallest = table[table["learners"] == 1], table[table["batch"] == table["batch"].min()]
    found = []
    for rows, axis in ((one, "batch"), (smallest, "learners")):
        slope = float(np.polyfit(np.log(rows[axis]), np.log(rows["bytes"]), 1)[0])
        found.append(over_ends(slope, (slope - 0.05, slope + 0.05)))
    return found


@MEMORY.drawing
def draw_memory(frame: Frame, figure: Figure) -> None:
    """Share of memory saved by the offline plan for four networks, and bytes against learners."""
    left, right = figure.subplots(1, 2)
    left.bar(list(settings.NETWORKS.values()), saved(frame))
    left.axhline(50, color="C1", linestyle="--")
    left.annotate("printed limit", (-0.4, 50.5), va="bottom")
    left.grid(visible=False, axis="x")
    left.set(ylim=(0, 56), ylabel="saved by the offline plan (%)")
    left.tick_params(axis="x", rotation=30)
    table = frame.run("memory").curve("memory")
    table = table[table["batch"] == table["batch"].max()]
    for shared, rows in table.groupby("shared"):
        label = "activations shared" if shared else "activations of their own"
        right.plot(rows["learners"], rows["bytes"] / rows["bytes"].iloc[0], marker="o", label=label)
    right.set_xticks(sorted(table["learners"].unique()))
    right.set(xlabel="learners", ylabel="bytes / one learner's")
    right.legend()


@SCHEDULER.drawing
def draw_scheduler(frame: Frame, figure: Figure) -> None:
    """Idle time under both ways to assign batches."""
    axes: Any = figure.subplots()
    found = frame.run("tasks").results
    axes.boxplot([found["idle_first_come"], found["idle_round_robin"]], tick_labels=["first come", "round robin"])
    axes.set_ylabel("idle stream-seconds (virtual)")
