"""Fig. 16: synchronising less often gains throughput and loses epochs; every iteration (tau = 1) is best."""

from __future__ import annotations

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import arrival_table, pair
from suite.papers.figure import Figure, Frame, Groups, pd, printed_value
from suite.report.style import PRINTED


def runs(profile: str) -> Groups:
    """As many learners, synchronised in every and in every fourth iteration."""
    k = settings.TAU_LEARNERS[profile]
    names = {"every": f"sma {k}", "fourth": f"sma {k} tau 4"}
    return settings.called(settings.groups(profile, *names.values()), names)


PANEL = plots.bar_panel("fig16", "Epochs to the target against the synchronisation interval", runs, (8.0, 4.2))

LONGER = PANEL.quantities["tta-tau4"] = pair(
    "every",
    "fourth",
    lambda x, y: 100 * (y / x - 1),
    "epochs only, throughput left out",
    printed=settings.FINAL_TARGET,
    shown=True,
)


@PANEL.quantity("tau1-best", ["every", "fourth"], note="by epochs only", shown=True)
def best(frame: Frame) -> float:
    """The interval of the two that takes fewer epochs."""
    return 1.0 if LONGER.measured(frame).values[0] > 0 else 4.0


def implied_epochs() -> float:
    """Epochs of the rarer synchronisation over the others', as the printed time and throughput have it."""
    gain, longer = (printed_value(f"crossbow/fig16/{claim}") for claim in ("throughput-tau4", "tta-tau4"))
    return (1 + gain / 100) * (1 + longer / 100)


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Arrivals with ``relative``: epochs over the mean of those synchronised in every iteration."""
    rows = arrival_table(frame, settings.FINAL_TARGET)
    interval = rows["group"].str.contains("tau").map({True: 4, False: 1})
    every = rows.loc[interval == 1, "epochs"].mean()
    return rows.assign(interval=interval, relative=rows["epochs"] / every)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Epochs by the interval, beside what the printed time and throughput imply; and this throughput."""
    left, right = figure.subplots(1, 2)
    rows = table(frame)
    plots.bars(rows, left, "relative", category="interval")
    plots.printed_marks(left, [1], [implied_epochs()], "implied by printed time and throughput")
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
