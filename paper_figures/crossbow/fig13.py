"""Fig. 13: learners on each of 8 GPUs: throughput, epochs, and time to accuracy, best with two.

8, 16 and 32 replicas of one run stand for 8 GPUs with 1, 2 and 4 learners; throughput is that of the cost model,
and beside it that of eight hosts which sleep to compute.
"""

from __future__ import annotations

from paper_figures.crossbow import plots, server, settings
from paper_figures.crossbow.readings import arrival_table, pair, steps
from suite.papers.figure import Artifact, Figure, Frame, Groups, pd, printed_value
from suite.report.style import PRINTED

EIGHT_GPUS = {1: "sma 8", 2: "sma 16", 4: "sma 32"}  # learners per GPU -> replicas


def runs(profile: str) -> Groups:
    return settings.groups(profile, *EIGHT_GPUS.values(), target=settings.TARGET)


A = Artifact("crossbow/fig13a", "Throughput against learners on 8 GPUs, modelled", server.hosts)
B = plots.bar_panel("fig13b", "Epochs to the target with the replicas of 8 GPUs", runs)
C = Artifact("crossbow/fig13c", "Time to the target on 8 GPUs against learners per GPU, throughput modelled", runs)

B.quantities["m2-neutral"] = pair("sma 8", "sma 16", lambda x, y: y / x)
B.quantities["m4-worse"] = pair("sma 16", "sma 32", steps)


A.table(lambda frame: server.every_iteration())


@A.drawing
def draw_throughput(frame: Frame, figure: Figure) -> None:
    """Throughput on eight GPUs against learners per GPU: by the cost model, of eight sleeping hosts, and printed."""
    axes = figure.subplots()
    plots.on_eight_gpus(axes, "relative", "throughput / one learner per GPU")
    if frame.whole("hosts"):
        rows = server.images_per_second(frame).query("tau == 1 and not barrier")
        plots.of_hosts(axes, rows["learners"], rows, rows["images_per_second"].iloc[0])
    gain = printed_value("crossbow/fig13a/throughput")
    plots.printed_marks(axes, [2], [gain])
    most = gain * printed_value("crossbow/fig13a/no-more-at-4")
    axes.plot(4, most, "v", markersize=8, label="printed: no more at m = 4", **PRINTED)
    axes.set_ylim(0.95, 1.45)
    axes.set_title(plots.EIGHT_NOT_RUN, fontsize="small")
    axes.legend(loc="lower right")


@B.table
@C.table
def arrivals(frame: Frame) -> pd.DataFrame:
    """Arrivals with ``relative``: modelled time over the mean of one learner per GPU."""
    alone = server.throughput(1)
    speed = {name: server.throughput(m) / alone for m, name in EIGHT_GPUS.items()}
    table = arrival_table(frame, settings.TARGET, speed)
    return table.assign(relative=table["time"] / table.loc[table["learners"] == 8, "time"].mean())


@B.drawing
def draw_epochs(frame: Frame, figure: Figure) -> None:
    axes, table = figure.subplots(), arrivals(frame)
    plots.bars(table, axes, "epochs")
    alike = table.loc[table["learners"] == 8, "epochs"].mean() * printed_value("crossbow/fig13b/m2-neutral")
    plots.printed_marks(axes, [1], [alike], "printed: 16 replicas need as many as 8")
    plots.finish(axes, table, "epochs to {} test accuracy", 2)


@C.drawing
def draw_time(frame: Frame, figure: Figure) -> None:
    """Time to accuracy against learners per GPU, relative to one, with the printed value."""
    axes, table = figure.subplots(), arrivals(frame)
    plots.bars(table, axes, "relative")
    plots.printed_marks(axes, [1], [1 / printed_value("crossbow/fig13c/tta")])
    axes.set_xlabel("measured epochs, throughput of 8 GPUs by the cost model")
    plots.finish(axes, table, "time to {} / one learner per GPU")
