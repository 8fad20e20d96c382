"""Fig. 12: learners on one GPU: throughput rises with them, epochs fall, and time to accuracy is the product."""

from __future__ import annotations

from functools import partial
from statistics import median

from paper_figures.crossbow import plots, readings, settings
from suite.claims.intervals import Interval, contrast, pooled
from suite.papers.figure import STORED, Artifact, Figure, Frame, Groups, Missing, Quantity, Run, pd, printed_value

LEARNERS = ("sma 1", "sma 2", "sma 4")
COMPARED = ("sma 1", "sma 4")
PLAIN = "s-sgd 1"  # plain training with one learner's batches
OTHERS = ("crossbow_lenet", "crossbow_vgg16")  # further networks whose throughput is measured at the paper's scale
ONE, FOUR = "SMA, k = 1", "SMA, k = 4"


def learners(profile: str) -> Groups:
    """One to four learners, and in full plain training; two seeds of four and two of plain are a second look."""
    found = settings.resnet32(profile, *LEARNERS, target=settings.TARGET)
    if profile == "paper":
        for name, seeds in (("sma 4", range(5)), (PLAIN, range(3))):
            found |= settings.groups(profile, name, target=settings.TARGET, seeds=seeds)
    return found


A = Artifact("crossbow/fig12a", "Throughput against learners on one device", settings.throughput)
B = Artifact(
    "crossbow/fig12b",
    "Epochs to the target against learners on one device",
    learners,
    size=(8.0, 4.2),
)
C = plots.bar_panel(
    "fig12c",
    "Time to the target against learners on one device",
    lambda profile: settings.timed_groups(profile, *LEARNERS, target=settings.TARGET),
)

# ---------------------------------------------------------------- throughput


def speed_up(run: Run, learners: int) -> Interval:
    """Throughput over one learner's, repeats interleaved; the interval is the middle 80% of ten or more, or all."""
    values = sorted(run.results[f"over_one_{learners}"])
    tenth = len(values) // 10
    return Interval(median(values), values[tenth], values[-1 - tenth], len(values), None)


def best(frame: Frame) -> tuple[Run, int]:
    """The network and number of learners with the largest gain. Raises Missing where a network was not timed."""
    runs = [readings.of_gpu(frame, name) for name in (readings.THROUGHPUT, *OTHERS) if len(frame[name])]
    if frame.profile == "paper" and len(runs) <= len(OTHERS):
        raise Missing("lacks the throughput of all three networks")
    return max(((run, readings.fastest(run)) for run in runs), key=lambda each: speed_up(*each).mean)


def at_once(run: Run, learners: int) -> str:
    """The network, and what else was measured: one batch as large, and computing all learners at once."""
    large = median(run.results[f"over_batch_{learners}"])
    device = "GPU" if readings.on_gpu(run) else "CPU"
    text = (
        f"{run.spec.settings['model']}, {device}, {run.results[f'path_{learners}']}; "
        f"{large:.2f} times as fast as one learner with {learners} times the batch; "
    )
    if why := run.results.get("refused_vectorised"):
        return f"{text}not vectorised, since {why}"
    together = median(run.results[f"vectorised_over_looped_{learners}"])
    return f"{text}vectorised {together:.2f} times as fast as one after another"


@A.quantity("throughput", [readings.THROUGHPUT], note=lambda frame: at_once(frame.run(readings.THROUGHPUT), 4))
def of_four(frame: Frame) -> Interval:
    """With four learners."""
    return speed_up(readings.of_gpu(frame), 4)


@A.quantity("intro-1p8", [readings.THROUGHPUT], beside=OTHERS, note=lambda frame: at_once(*best(frame)))
def of_any(frame: Frame) -> Interval:
    """The best of all networks and numbers of learners."""
    return speed_up(*best(frame))


A.table(readings.throughput_table)


@A.drawing
def draw_throughput(frame: Frame, figure: Figure) -> None:
    """Throughput against learners, relative to one learner, with the printed value as an open marker."""
    plots.throughput(frame, figure.subplots(), {4: printed_value("crossbow/fig12a/throughput")})


# ---------------------------------------------------------------- epochs, and their product


def count(group: str, frame: Frame) -> Interval:
    """Epochs of a group to the target that runs with one and with four learners share."""
    return readings.spread(readings.epochs(frame, group, readings.common_target(frame, *COMPARED)))


def counted(group: str, frame: Frame) -> str:
    return readings.described(frame, (group,), readings.common_target(frame, *COMPARED))


for claim, group in zip(("epochs-m1", "epochs-m4"), COMPARED, strict=True):
    B.quantities[claim] = Quantity(partial(count, group), COMPARED, note=partial(counted, group))


@B.quantity("plain", [*COMPARED, PLAIN])
def saved_on_plain(frame: Frame) -> Interval:
    """Epochs of plain training less those of four learners, by the spread between seeds of all three groups.

    A run that never arrives counts as there in the epoch after its last.
    """
    found = {
        group: [min(count, settings.RESNET32_EPOCHS + 1) for count in readings.epochs(frame, group, settings.TARGET)]
        for group in (*COMPARED, PLAIN)
    }
    return contrast({PLAIN: 1.0, "sma 4": -1.0}, found, pooled(found.values()))


arrivals = B.table(partial(readings.arrival_table, printed=settings.TARGET))


@B.drawing
def draw_epochs(frame: Frame, figure: Figure) -> None:
    """Bars of the mean with a dot for each seed, and the printed values as open markers. Where our runs are compared
    at another accuracy, the markers stand in a panel beside.
    """
    table = arrivals(frame)
    printed = [printed_value(f"crossbow/fig12b/epochs-m{k}") for k in (1, 4)]
    if table["target"].iloc[0] == 100 * settings.TARGET and {ONE, FOUR} <= set(table["group"]):
        axes = figure.subplots()
        names = plots.bars(table, axes, "epochs")
        plots.printed_marks(axes, [names.index(ONE), names.index(FOUR)], printed)
        axes.set_ylim(0, 1.1 * max(*printed, table["epochs"].max()))
        plots.finish(axes, table, "epochs to {} test accuracy")
        return
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    plots.bars(table, left, "epochs")
    plots.finish(left, table, "epochs to {} test accuracy, ours", 1)
    top = max(33, left.get_ylim()[1])  # both sides are read against each other
    left.set_ylim(0, top)
    names = [f"SMA\nk = {k}" for k in (1, 4)]
    plots.printed_marks(right, names, printed)
    right.set(ylabel=f"epochs to {100 * settings.TARGET:g}% test accuracy, printed", ylim=(0, top))
    right.margins(x=0.5)
    right.grid(visible=False, axis="x")
    plots.legend_above(right, 1)


@C.table
def times(frame: Frame) -> pd.DataFrame:
    """Arrivals with ``relative``: time over the mean of one learner. Raises Missing without a run of it."""
    frame.needed(["sma 1"], STORED)
    table = readings.timed_table(frame, settings.TARGET)
    return table.assign(relative=table["time"] / table.loc[table["learners"] == 1, "time"].mean())


@C.drawing
def draw_time(frame: Frame, figure: Figure) -> None:
    axes, table = figure.subplots(), times(frame)
    names = plots.bars(table, axes, "relative")
    faster = printed_value("crossbow/fig12c/tta")
    if FOUR in names:
        plots.printed_marks(axes, [names.index(FOUR)], [1 / faster], "printed, to 80%")
    plots.say_least(axes, table)
    instead = f"ResNet-32 on a GPU, not run (printed: {faster:g} times as fast)"
    plots.finish(axes, table, "time to {} / one learner's", instead=instead)
