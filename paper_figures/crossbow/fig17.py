"""Fig. 17: throughput on 8 GPUs rises with the synchronisation interval tau, by 20 to 27% without synchronisation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, server_model
from paper_figures.crossbow.tables import modelled_table
from suite.papers.catalogue import printed_value
from suite.papers.panel import Frame, Panel
from suite.report.style import MARKERS, PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVALS = (1, 2, 4, None)  # iterations from one synchronisation to the next; None: never
PANEL = Panel(
    "crossbow/fig17",
    "Throughput on 8 GPUs against the synchronisation interval, modelled",
    alt="Modelled throughput on 8 GPUs against the synchronisation interval with the printed values; crosses mark "
    "the points that the model was solved from.",
)
ARTIFACTS = (PANEL,)
PANEL.table(lambda frame: modelled_table())


@PANEL.quantity("rises-with-tau", note=server_model.CALIBRATION, shown=True)
def rises(frame: Frame) -> list[float]:
    """Steps of log throughput between intervals, by the cost model of the paper's server."""
    speed = [server_model.throughput(1, tau) for tau in INTERVALS]
    return [math.log(longer / shorter) for shorter, longer in pairwise(speed)]


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """The cost model's throughput by interval; crosses where it was solved from what is printed."""
    import seaborn as sns

    axes, table = figure.subplots(), modelled_table()
    table = table.assign(series="m = " + table["learners"].astype(str) + ", cost model")
    names = list(table["series"].unique())
    looks = {"hue_order": names, "style_order": names, "palette": list(PALETTE[: len(names)])}
    sns.lineplot(
        table, x="interval", y="images_per_second", hue="series", style="series", markers=list(MARKERS[: len(names)]),
        sort=False, errorbar=None, ax=axes, **looks,
    )  # fmt: skip
    fitted, printed = table[table["calibrated"]], table.dropna(subset="printed")
    plots.calibration_marks(axes, fitted["interval"], fitted["images_per_second"])
    plots.printed_marks(axes, printed["interval"], printed["printed"], "printed, m = 1")
    gains = {m: printed_value(f"crossbow/fig17/gain-m{m}") for m in (1, 4)}
    for m, gain in gains.items():
        top = table[(table["learners"] == m) & (table["interval"] == "none")]["images_per_second"].item()
        axes.annotate(
            f"printed: +{gain:g}%\n(m = {m})", ("none", top), (12, 0), textcoords="offset points", va="center"
        )
    axes.set_xlim(-0.4, 3.9)
    axes.set_ylim(0, 1.1 * table["images_per_second"].max())
    axes.set(xlabel="synchronisation interval $\\tau$", ylabel="images/s on 8 GPUs")
    axes.set_title("8 GPUs not run: a cost model, part of it solved from the paper", fontsize="small")
    axes.legend(title="", loc="lower right")
