"""Fig. 17: throughput on 8 GPUs rises with the synchronisation interval tau, by 20 to 27% without synchronisation.

Eight hosts that sleep to compute say how much of that is the exchange. The cost model says nothing about it, since it
is solved from the printed gains.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

from paper_figures.crossbow import plots, server
from suite.claims.intervals import Interval, mean_interval
from suite.papers.figure import Artifact, Figure, Frame, Quantity, printed_value, sns
from suite.report.style import MARKERS

PANEL = Artifact("crossbow/fig17", "Throughput on 8 GPUs against the synchronisation interval", server.hosts)
PANEL.table(lambda frame: server.modelled_table())
NOTE = "eight hosts, links as fast as PCIe 3.0 x16; tasks take what Figs. 12(a) and 17 say"

for m in (1, 4):
    PANEL.quantities[f"gain-m{m}"] = Quantity(partial(server.gain, m=m), ("hosts",), note=NOTE)


@PANEL.quantity("rises-with-tau", ["hosts"], note=NOTE)
def rises(frame: Frame) -> list[Interval]:
    """Steps of the log of throughput between intervals at one learner a host, paired by repeat."""
    seconds = server.seconds(frame)[1].xs(False, axis="columns", level="barrier")
    steps = [seconds[shorter] / seconds[longer] for shorter, longer in pairwise(server.INTERVALS)]
    return [mean_interval(step.map(math.log).tolist()) for step in steps]


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Throughput against the synchronisation interval: printed values, the cost model that was solved from them, and
    eight hosts that sleep to compute and exchange over links as fast as PCIe.
    """
    axes, table = figure.subplots(), server.modelled_table()
    table = table.assign(series="m = " + table["learners"].astype(str) + ", cost model")
    looks = {"hue": "series", "style": "series", "markers": MARKERS[: table["series"].nunique()]}
    sns.lineplot(table, x="interval", y="images_per_second", sort=False, errorbar=None, ax=axes, **looks)
    fitted, printed = table[table["calibrated"]], table.dropna(subset="printed")
    plots.calibration_marks(axes, fitted["interval"], fitted["images_per_second"])
    plots.printed_marks(axes, printed["interval"], printed["printed"], "printed, m = 1")
    if frame.whole("hosts"):
        rows = server.images_per_second(frame).query("learners == 1 and not barrier")
        taus = list(map(server.interval, rows["tau"]))
        plots.of_hosts(axes, taus, rows, which="m = 1, ")
    gains = {m: printed_value(f"crossbow/fig17/gain-m{m}") for m in (1, 4)}
    for m, gain in gains.items():
        top = table[(table["learners"] == m) & (table["interval"] == "none")]["images_per_second"].item()
        axes.annotate(
            f"printed: +{gain:g}%\n(m = {m})", ("none", top), (12, 0), textcoords="offset points", va="center"
        )
    axes.set(xlim=(-0.4, 3.9), ylim=(0, 1.1 * table["images_per_second"].max()))
    axes.set(xlabel="synchronisation interval $\\tau$", ylabel="images/s on 8 GPUs")
    axes.set_title(plots.EIGHT_NOT_RUN, fontsize="small")
    axes.legend(title="", loc="lower right", fontsize="small")
