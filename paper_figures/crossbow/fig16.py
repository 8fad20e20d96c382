"""Figs. 16 and 17: how often replicas are synchronised.

Fig. 16: synchronising less often gains throughput and loses epochs; every iteration (tau = 1) is best. Fig. 17:
throughput on 8 GPUs rises with the synchronisation interval tau, by 20 to 27% without synchronisation. Eight hosts
that sleep to compute say how much of that is the exchange. The cost model says nothing about it, since it is solved
from the printed gains.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

from paper_figures.crossbow import plots, server, settings
from paper_figures.crossbow.readings import arrival_table, modelled_table, pair
from suite.claims.intervals import Interval, mean_interval
from suite.papers.figure import Artifact, Figure, Frame, Groups, Quantity, pd, printed_value, sns
from suite.report.style import GRID, MARKERS, PRINTED


def runs(profile: str) -> Groups:
    """As many learners, synchronised in every and in every fourth iteration."""
    k = settings.TAU_LEARNERS[profile]
    names = {"every": f"sma {k}", "fourth": f"sma {k} tau 4"}
    return settings.called(settings.groups(profile, *names.values()), names)


FIG16 = plots.bar_panel("fig16", "Epochs to the target against the synchronisation interval", runs, (8.0, 4.2))

LONGER = FIG16.quantities["tta-tau4"] = pair(
    "every",
    "fourth",
    lambda x, y: 100 * (y / x - 1),
    "epochs only, throughput left out",
    printed=settings.FINAL_TARGET,
    shown=True,
)


@FIG16.quantity("tau1-best", ["every", "fourth"], note="by epochs only", shown=True)
def best(frame: Frame) -> float:
    """The interval of the two that takes fewer epochs."""
    return 1.0 if LONGER.measured(frame).values[0] > 0 else 4.0


def implied_epochs() -> float:
    """Epochs of the rarer synchronisation over the others', as the printed time and throughput have it."""
    gain, longer = (printed_value(f"crossbow/fig16/{claim}") for claim in ("throughput-tau4", "tta-tau4"))
    return (1 + gain / 100) * (1 + longer / 100)


@FIG16.table
def table(frame: Frame) -> pd.DataFrame:
    """Arrivals with ``relative``: epochs over the mean of those synchronised in every iteration."""
    rows = arrival_table(frame, settings.FINAL_TARGET)
    interval = rows["group"].str.contains("tau").map({True: 4, False: 1})
    every = rows.loc[interval == 1, "epochs"].mean()
    return rows.assign(interval=interval, relative=rows["epochs"] / every)


@FIG16.drawing
def draw_epochs(frame: Frame, figure: Figure) -> None:
    """Epochs by the interval, beside what the printed time and throughput imply; and this throughput."""
    left, right = figure.subplots(1, 2)
    rows = table(frame)
    plots.bars(rows, left, "relative", category="interval", floor=False)
    plots.printed_marks(left, [1], [implied_epochs()], "implied by printed time and throughput")
    left.axhline(1, color=GRID, linewidth=0.8, linestyle="-")
    left.set(xlabel="synchronisation interval $\\tau$", ylim=(0, 2.3))
    plots.finish(left, rows, "epochs to {} / those at $\\tau$ = 1", 1)
    gains = [
        printed_value(f"crossbow/{claim}") for claim in ("fig16/throughput-tau4", "fig17/gain-m1", "fig17/gain-m4")
    ]
    here, *never = [1 + gain / 100 for gain in gains]
    plots.printed_marks(right, [1], [here], "printed, m = 2")
    right.plot([2, 2], never, "s", markersize=7, label="printed in Fig. 17, m = 1 and 4", **PRINTED)
    right.set_xticks(range(3), ["1", "4", "none"])
    right.set(xlim=(-0.5, 2.5), ylim=(0.95, 1.4), xlabel="synchronisation interval $\\tau$")
    right.set_ylabel("throughput / that at $\\tau$ = 1")
    right.set_title("Throughput not run: needs 8 GPUs", fontsize="small")
    plots.legend_above(right, 1)


FIG17 = Artifact("crossbow/fig17", "Throughput on 8 GPUs against the synchronisation interval", server.hosts)
FIG17.table(lambda frame: modelled_table())
NOTE = "eight hosts, links as fast as PCIe 3.0 x16; tasks take what Figs. 12(a) and 17 say"

for m in (1, 4):
    FIG17.quantities[f"gain-m{m}"] = Quantity(partial(server.gain, m=m), ("hosts",), note=NOTE)


@FIG17.quantity("rises-with-tau", ["hosts"], note=NOTE)
def rises(frame: Frame) -> list[Interval]:
    """Steps of the log of throughput between intervals at one learner a host, paired by repeat."""
    seconds = server.seconds(frame)[1].xs(False, axis="columns", level="barrier")
    steps = [seconds[shorter] / seconds[longer] for shorter, longer in pairwise(server.INTERVALS)]
    return [mean_interval(step.map(math.log).tolist()) for step in steps]


@FIG17.drawing
def draw_throughput(frame: Frame, figure: Figure) -> None:
    """Throughput against the synchronisation interval: printed values, the cost model that was solved from them, and
    eight hosts that sleep to compute and exchange over links as fast as PCIe.
    """
    axes, table = figure.subplots(), modelled_table()
    table = table.assign(series="m = " + table["learners"].astype(str) + ", cost model")
    looks = {"hue": "series", "style": "series", "markers": MARKERS[: table["series"].nunique()]}
    sns.lineplot(table, x="interval", y="images_per_second", sort=False, errorbar=None, ax=axes, **looks)
    fitted, printed = table[table["calibrated"]], table.dropna(subset="printed")
    plots.calibration_marks(axes, fitted["interval"], fitted["images_per_second"])
    plots.printed_marks(axes, printed["interval"], printed["printed"], "printed, m = 1")
    if frame.whole("hosts"):
        rows = server.images_per_second(frame).query("learners == 1 and not barrier")
        plots.of_hosts(axes, ["none" if tau == server.NEVER else str(tau) for tau in rows["tau"]], rows)
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
