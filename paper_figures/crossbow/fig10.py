"""Fig. 10: time to accuracy of the four networks, Crossbow with one and with several learners against TensorFlow.

Plain synchronous SGD of the same code stands for TensorFlow, so the paper's factors, which hold TensorFlow's overhead
too, are shown beside ours and not decided by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import arrival_table, less_time, pair, timed_table
from suite.papers.figure import Artifact, Figure, Frame, Groups, pd, printed_value
from suite.report.style import GRID

ONE_DEVICE = ("s-sgd 1", "sma 1", "sma 4")
ONE, FOUR = "SMA, k = 1", "SMA, k = 4"


def runs(profile: str) -> Groups:
    return settings.timed_groups(profile, *ONE_DEVICE)


TITLE = "Time to accuracy of {}: plain training, one learner, four learners"
A = plots.bar_panel("fig10a", TITLE.format("ResNet-32"), runs, (7.0, 4.2))
B = plots.bar_panel("fig10b", "Time to accuracy of VGG-16", settings.vgg16)
C = Artifact("crossbow/fig10c", "Time to accuracy of ResNet-50, from the printed numbers alone")
# Below the paper's scale LeNet stands in for ResNet-32.
D = plots.bar_panel(
    "fig10d", TITLE.format("LeNet"), lambda profile: {} if profile == "paper" else runs(profile), (6.4, 4.2)
)

A.quantities["m4-1gpu"] = pair("sma 4", "s-sgd 1", less_time, printed=settings.FINAL_TARGET, timed=4)
D.quantities["m1-1gpu"] = pair("sma 1", "s-sgd 1", less_time, shown=True)
D.quantities["best-1gpu"] = pair("sma 4", "s-sgd 1", less_time, timed=4, shown=True)


def reduction(claim: str) -> float:
    """Per cent of TensorFlow's time that the paper says it saves: ``a/m4-1gpu`` of Fig. 10(a)."""
    return printed_value(f"crossbow/fig10{claim}")


def implied_hours() -> tuple[float, float]:
    """Hours of TensorFlow and of Crossbow on ResNet-50, from a difference and a share in print."""
    saved = reduction("c/hours-saved")
    slow = saved / (reduction("c/m2-8gpu") / 100)
    return slow, slow - saved


def against_plain(target: float, frame: Frame) -> pd.DataFrame:
    """Arrivals with ``relative``: time over that of plain training with the same seed."""
    table = timed_table(frame, target)
    plain = table[table["method"] == "S-SGD"].set_index("seed")["time"]
    return table.assign(relative=table["time"] / table["seed"].map(plain))


def draw_relative(
    network: str, target: float, marks: Sequence[tuple[str, str]], said: str, frame: Frame, figure: Figure
) -> None:
    """Bars of one device, the printed savings as open markers, those of 8 GPUs in categories without a bar.

    ``marks``: category, claim of a saving in per cent.
    """
    axes, table = figure.subplots(), against_plain(target, frame)
    names = plots.bars(table, axes, "relative")
    elsewhere = [name for name, _ in marks if name not in names]
    places = [*names, *elsewhere]
    values = [1 - reduction(claim) / 100 for _, claim in marks]
    plots.printed_marks(axes, [places.index(name) for name, _ in marks], values, said)
    axes.set_xticks(range(len(places)), [name.replace(", ", "\n") for name in places])
    axes.set_xlim(-0.6, len(places) - 0.4)
    if elsewhere:
        axes.axvline(len(names) - 0.5, color=GRID, linewidth=1, linestyle=":")
        axes.text(len(places) - 1 - len(elsewhere) / 2 + 0.5, 0.05, "not run: needs 8 GPUs", ha="center", fontsize=8)
    plots.say_least(axes, table)
    plots.finish(axes, table, "time to {} / plain training's", instead=network)


MARKS_A = ((FOUR, "a/m4-1gpu"), ("8 GPUs, m = 1", "a/m1-8gpu"), ("8 GPUs, m = 2", "a/m2-8gpu"))
MARKS_D = ((ONE, "d/m1-1gpu"), (FOUR, "d/best-1gpu"))
for panel, network, target, marks, said in (
    (A, "ResNet-32", settings.FINAL_TARGET, MARKS_A, "printed, over TensorFlow"),
    (D, "LeNet", settings.LENET_TARGET, MARKS_D, "printed, over TensorFlow (at 4: m = 2)"),
):
    panel.table(partial(against_plain, target))
    panel.drawing(partial(draw_relative, network, target, marks, said))


arrivals = B.table(partial(arrival_table, printed=settings.VGG_TARGET))


@B.drawing
def draw_vgg16(frame: Frame, figure: Figure) -> None:
    axes, table = figure.subplots(), arrivals(frame)
    plots.bars(table, axes, "epochs")
    plots.finish(axes, table, "epochs to {} test accuracy")


@C.table
def hours(frame: Frame) -> pd.DataFrame:
    """Hours to 53% that the printed saving implies."""
    return pd.DataFrame({"system": ["TensorFlow", "Crossbow, m = 2"], "hours": implied_hours()})


@C.drawing
def draw_implied_hours(frame: Frame, figure: Figure) -> None:
    """The hours that 33% and five hours imply for TensorFlow and Crossbow."""
    axes, table = figure.subplots(), hours(frame)
    plots.printed_marks(axes, table["system"], table["hours"], "implied by the printed 33% and 5 h")
    axes.vlines(table["system"], 0, table["hours"], color=GRID, linewidth=1, linestyle=":")
    axes.margins(x=0.6)
    axes.grid(visible=False, axis="x")
    axes.set(ylim=(0, 18), ylabel="hours to 53% on 8 GPUs")
    axes.set_title("ResNet-50, the paper's numbers alone; not run: needs 8 GPUs and ImageNet", fontsize="small")
    plots.legend_above(axes, 1)
