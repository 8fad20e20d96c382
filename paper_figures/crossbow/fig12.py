"""Fig. 12: learners on one GPU: throughput rises with them, epochs fall, and time to accuracy is the product."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import (
    common_target,
    described,
    epochs,
    fastest,
    ids,
    on_gpu,
    require,
    short,
    spread,
)
from paper_figures.crossbow.tables import arrival_table, throughput_table, timed_table, titled
from suite.claims.estimate import Estimate, exact, interval
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed_value
from suite.report.style import GRID

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from suite.runs.store import Run

LEARNERS = ("sma 1", "sma 2", "sma 4")


def runs_throughput(profile: str) -> settings.Groups:
    return settings.throughput(profile)


def runs_epochs(profile: str) -> settings.Groups:
    return settings.resnet32(profile, *LEARNERS, target=settings.TARGET)


def runs_time(profile: str) -> settings.Groups:
    return settings.timed_groups(profile, *LEARNERS, target=settings.TARGET)


def at_once(run: Run, learners: int) -> str:
    """What computing all learners at once would give, or that the network does not allow it."""
    if why := run.results.get("refused_vectorised"):
        return f"not vectorised, since {why}"
    together = median(run.results[f"vectorised_over_looped_{learners}"])
    return f"vectorised {together:.2f} times as fast as one after another"


def speed_up(run: Run, learners: int) -> Estimate:
    """Throughput over one learner's, repeats interleaved; the interval is that of the repeats."""
    values = run.results[f"over_one_{learners}"]
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    large = median(run.results[f"over_batch_{learners}"])
    note = (
        f"{run.spec.settings['model']}, {'GPU' if on_gpu(run) else 'CPU'}, {run.results[f'path_{learners}']}; "
        f"{large:.2f} times as fast as one learner with {learners} times the batch; {at_once(run, learners)}"
    )
    return interval(median(values), low, high, n=len(values), runs=[run.id], note=note, proxy=not on_gpu(run))


def measure_throughput(evidence: Evidence) -> Quantities:
    """Throughput with four learners, and the best of all networks and counts."""
    require(bool(evidence.groups), "throughput runs")
    runs = {name: evidence.run(name) for name in evidence.groups}
    main = runs.get("crossbow_resnet32") or next(iter(runs.values()))
    yield "throughput", speed_up(main, 4)
    yield "intro-1p8", max((speed_up(run, fastest(run)) for run in runs.values()), key=lambda m: m.values[0])


def printed_epoch_ratio() -> float:
    """Epochs with one learner over those with four."""
    return printed_value("crossbow/fig12b/epochs-m1") / printed_value("crossbow/fig12b/epochs-m4")


def measure_printed_epochs(_: Evidence) -> Quantities:
    yield "epoch-ratio", exact(printed_epoch_ratio())
    yield "intro-1p6", exact(printed_epoch_ratio(), note="the largest gain in epochs that the evaluation prints")


def measure_epochs(evidence: Evidence) -> Quantities:
    """Epochs with one and with four learners."""
    target = common_target(evidence, "sma 1", "sma 4")
    note = described(evidence, "sma 1", target)
    for claim, group in (("epochs-m1", "sma 1"), ("epochs-m4", "sma 4")):
        yield claim, spread(epochs(evidence, group, target), ids(evidence, group), note, proxy=short(evidence))


def measure_printed_time(_: Evidence) -> Quantities:
    """Time to accuracy is the product of the two factors printed beside it."""
    ratio = printed_epoch_ratio()
    throughput = printed_value("crossbow/fig12a/throughput")
    yield "product", exact((throughput * ratio, (throughput + 0.05) * ratio))
    low, middle, high = ((throughput + half) * ratio for half in (-0.05, 0.0, 0.05))
    yield "tta", interval(middle, low, high, note="ends: 1.4 unrounded")


def draw_throughput(evidence: Evidence, figure: Figure) -> None:
    plots.throughput(evidence, figure.subplots(), {4: printed_value("crossbow/fig12a/throughput")})


def frame_epochs(evidence: Evidence) -> pd.DataFrame:
    return arrival_table(evidence, settings.TARGET)


def draw_epochs(evidence: Evidence, figure: Figure) -> None:
    """Epochs by learners: ours to the target that they reach, and beside it the printed ones to the paper's."""
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    table = frame_epochs(evidence)
    plots.bars(table, left, "epochs")
    left.set_ylabel(f"epochs to {table['target'].iloc[0]:g}% test accuracy, ours")
    plots.say_stand_in(left, table["stand_in"].iloc[0])
    plots.legend_above(left, 1)
    names = [titled(f"sma {k}").replace(", ", "\n") for k in (1, 4)]
    plots.printed_marks(right, names, [printed_value(f"crossbow/fig12b/epochs-m{k}") for k in (1, 4)])
    right.set(ylabel=f"epochs to {100 * settings.TARGET:g}% test accuracy, printed", ylim=(0, 33))
    right.margins(x=0.5)
    right.grid(visible=False, axis="x")
    plots.legend_above(right, 1)


def frame_time(evidence: Evidence) -> pd.DataFrame:
    """Arrivals with ``relative``: time over the mean of one learner."""
    table = timed_table(evidence, settings.TARGET)
    return table.assign(relative=table["time"] / table.loc[table["learners"] == 1, "time"].mean())


def draw_time(evidence: Evidence, figure: Figure) -> None:
    axes, table = figure.subplots(), frame_time(evidence)
    names = plots.bars(table, axes, "relative", floor=False)
    saved = 1 / printed_value("crossbow/fig12c/tta")
    plots.printed_marks(axes, [names.index(titled("sma 4"))], [saved], "printed, to 80%")
    axes.axhline(1, color=GRID, linewidth=0.8, linestyle="-")
    plots.say_least(axes, table)
    axes.set_ylabel(f"time to {table['target'].iloc[0]:g}% / one learner's")
    plots.say_stand_in(axes, table["stand_in"].iloc[0])
    plots.legend_above(axes)


ARTIFACTS = (
    Artifact(
        "crossbow/fig12a",
        "Throughput against learners on one device",
        runs_throughput,
        (measure_throughput,),
        draw_throughput,
        plots.ALT_THROUGHPUT,
        frame=throughput_table,
    ),
    Artifact(
        "crossbow/fig12b",
        "Epochs to the target against learners on one device",
        runs_epochs,
        (measure_printed_epochs, measure_epochs),
        draw_epochs,
        "Left: bars of our epochs with a dot for each seed. Right: the printed epochs, to another accuracy.",
        (8.0, 4.2),
        frame_epochs,
    ),
    Artifact(
        "crossbow/fig12c",
        "Time to the target against learners on one device",
        runs_time,
        (measure_printed_time,),
        draw_time,
        plots.ALT_BARS,
        frame=frame_time,
    ),
)
