"""Fig. 13: learners on each of 8 GPUs: throughput, epochs, and time to accuracy, best with two.

8, 16 and 32 replicas of one run stand for 8 GPUs with 1, 2 and 4 learners; throughput is that of the cost model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, server_model, settings
from paper_figures.crossbow.readings import paired, require
from paper_figures.crossbow.tables import eight_gpus_table, modelled_table
from suite.claims.estimate import exact, point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed_value
from suite.report.style import GRID, PRINTED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EIGHT_GPUS = {1: "sma 8", 2: "sma 16", 4: "sma 32"}  # learners per GPU -> replicas


def runs(profile: str) -> settings.Groups:
    return settings.groups(profile, *EIGHT_GPUS.values(), target=settings.TARGET)


def measure_learners(_: Evidence) -> Quantities:
    yield "learners-32", exact(8 * 4)


def measure_throughput(_: Evidence) -> Quantities:
    """By the cost model of the paper's server."""
    speed = {m: server_model.throughput(m) for m in (1, 2, 4)}
    yield "throughput", point(speed[2] / speed[1], proxy=True, note=server_model.CALIBRATION)
    yield "no-more-at-4", point(speed[4] / speed[2], proxy=True, note=server_model.CALIBRATION)


def measure_epochs(evidence: Evidence) -> Quantities:
    require("sma 16" in evidence.groups, f"16 replicas at {evidence.profile}")
    yield "m2-neutral", paired(evidence, "sma 8", "sma 16", lambda x, y: y / x)
    require("sma 32" in evidence.groups, f"32 replicas at {evidence.profile}")
    yield "m4-worse", paired(evidence, "sma 16", "sma 32", lambda x, y: y - x)


def frame_throughput(_: Evidence) -> pd.DataFrame:
    """Modelled throughput with synchronisation in every iteration."""
    table = modelled_table()
    return table[table["interval"] == "1"]


def draw_throughput(evidence: Evidence, figure: Figure) -> None:
    """Relative to one learner per GPU; at m = 4 the paper says that throughput does not improve on m = 2."""
    axes = figure.subplots()
    plots.on_eight_gpus(axes, "relative", "throughput / one learner per GPU")
    gain = printed_value("crossbow/fig13a/throughput")
    plots.printed_marks(axes, [2], [gain])
    most = gain * printed_value("crossbow/fig13a/no-more-at-4")
    axes.plot(4, most, "v", markersize=8, label="printed: no more at m = 4", **PRINTED)
    axes.set_ylim(0.95, 1.4)
    axes.set_title("8 GPUs not run: a cost model, part of it solved from the paper", fontsize="small")
    axes.legend(loc="lower right")


def frame_epochs(evidence: Evidence) -> pd.DataFrame:
    """Arrivals with ``relative``: modelled time over the mean of one learner per GPU."""
    table = eight_gpus_table(evidence, settings.TARGET, EIGHT_GPUS)
    return table.assign(relative=table["time"] / table.loc[table["learners"] == 8, "time"].mean())


def draw_epochs(evidence: Evidence, figure: Figure) -> None:
    axes, table = figure.subplots(), frame_epochs(evidence)
    plots.bars(table, axes, "epochs")
    alike = table.loc[table["learners"] == 8, "epochs"].mean() * printed_value("crossbow/fig13b/m2-neutral")
    plots.printed_marks(axes, [1], [alike], "printed: 16 replicas need as many as 8")
    axes.set_ylabel(f"epochs to {table['target'].iloc[0]:g}% test accuracy")
    plots.say_stand_in(axes, table["stand_in"].iloc[0])
    plots.legend_above(axes, 2)


def draw_time(evidence: Evidence, figure: Figure) -> None:
    axes, table = figure.subplots(), frame_epochs(evidence)
    plots.bars(table, axes, "relative", floor=False)
    plots.printed_marks(axes, [1], [1 / printed_value("crossbow/fig13c/tta")])
    axes.axhline(1, color=GRID, linewidth=0.8, linestyle="-")
    axes.set_ylabel(f"time to {table['target'].iloc[0]:g}% / one learner per GPU")
    axes.set_xlabel("measured epochs, throughput of 8 GPUs by the cost model")
    plots.say_stand_in(axes, table["stand_in"].iloc[0])
    plots.legend_above(axes)


ARTIFACTS = (
    Artifact(
        "crossbow/fig13a",
        "Throughput against learners on 8 GPUs, modelled",
        measures=(measure_learners, measure_throughput),
        draw=draw_throughput,
        alt=plots.ALT_EIGHT_GPUS,
        frame=frame_throughput,
    ),
    Artifact(
        "crossbow/fig13b",
        "Epochs to the target with the replicas of 8 GPUs",
        runs,
        (measure_epochs,),
        draw_epochs,
        plots.ALT_BARS,
        frame=frame_epochs,
    ),
    Artifact(
        "crossbow/fig13c",
        "Time to the target on 8 GPUs against learners per GPU, throughput modelled",
        runs,
        (),
        draw_time,
        "Time to accuracy against learners per GPU, relative to one, with the printed value.",
        frame=frame_epochs,
    ),
)
