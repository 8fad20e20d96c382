"""Fig. 16: synchronising less often gains throughput and loses epochs; every iteration (tau = 1) is best."""

from __future__ import annotations

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import arrival_table, pair
from suite.papers.figure import Figure, Frame, Groups, pd, printed_value


def runs(profile: str) -> Groups:
    """As many learners, synchronised in every and in every fourth iteration."""
    k = settings.TAU_LEARNERS[profile]
    names = {"every": f"sma {k}", "fourth": f"sma {k} tau 4"}
    return settings.called(settings.groups(profile, *names.values()), names)


PANEL = plots.bar_panel("fig16", "Epochs to the target against the synchronisation interval", runs)

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
    """Epochs by the interval, beside what the printed time and throughput imply."""
    axes, rows = figure.subplots(), table(frame)
    plots.bars(rows, axes, "relative", category="interval")
    plots.printed_marks(axes, [1], [implied_epochs()], "implied by printed time and throughput")
    axes.set(xlabel="synchronisation interval $\\tau$", ylim=(0, 2.3))
    plots.finish(axes, rows, "epochs to {} / those at $\\tau$ = 1", 1)
