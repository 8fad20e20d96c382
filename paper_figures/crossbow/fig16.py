"""Fig. 16: synchronising less often gains throughput and loses epochs; every iteration (tau = 1) is best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import as_proxy, paired
from paper_figures.crossbow.tables import arrival_table
from suite.claims.estimate import exact, interval, point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed_value
from suite.report.style import GRID, PRINTED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def names(profile: str) -> tuple[str, str]:
    """As many learners, synchronised in every and in every fourth iteration."""
    k = settings.TAU_LEARNERS[profile]
    return f"sma {k}", f"sma {k} tau 4"


def runs(profile: str) -> settings.Groups:
    return settings.groups(profile, *names(profile))


def measure_printed(_: Evidence) -> Quantities:
    """What Fig. 17 leaves for this figure: synchronising sometimes cannot beat never synchronising."""
    gain, longer = (printed_value(f"crossbow/fig16/{claim}") for claim in ("throughput-tau4", "tta-tau4"))
    yield "implied-epochs", exact((1 + gain / 100) * (1 + longer / 100))
    most = max(printed_value(f"crossbow/fig17/{claim}") for claim in ("gain-m1", "gain-m4"))
    note = "at most the gain of no synchronisation at all at m = 1 and m = 4"
    yield "throughput-tau4", interval(most, 0.0, most, note=note)


def measure_epochs(evidence: Evidence) -> Quantities:
    """What synchronising every fourth iteration costs in epochs, before its gain in throughput."""
    every, fourth = names(evidence.profile)
    note = "epochs only, throughput left out"
    found = paired(evidence, every, fourth, lambda x, y: 100 * (y / x - 1), note, printed=settings.FINAL_TARGET)
    yield "tta-tau4", as_proxy(found)
    (longer,) = found.values
    yield "tau1-best", point(1.0 if longer > 0 else 4.0, proxy=True, runs=found.runs, note="by epochs only")


def frame(evidence: Evidence) -> pd.DataFrame:
    """Arrivals with ``relative``: epochs over the mean of those synchronised in every iteration."""
    table = arrival_table(evidence, settings.FINAL_TARGET)
    interval = table["group"].str.contains("tau").map({True: 4, False: 1})
    every = table.loc[interval == 1, "epochs"].mean()
    return table.assign(interval=interval, relative=table["epochs"] / every)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Epochs by the interval, beside what the printed time and throughput imply; and this throughput."""
    left, right = figure.subplots(1, 2)
    table = frame(evidence)
    plots.bars(table, left, "relative", category="interval", floor=False)
    implied = printed_value("crossbow/fig16/implied-epochs")
    plots.printed_marks(left, [1], [implied], "implied by printed time and throughput")
    left.axhline(1, color=GRID, linewidth=0.8, linestyle="-")
    left.set(xlabel="synchronisation interval $\\tau$", ylim=(0, 2.3))
    left.set_ylabel(f"epochs to {table['target'].iloc[0]:g}% / those at $\\tau$ = 1")
    plots.say_stand_in(left, table["stand_in"].iloc[0])
    plots.legend_above(left, 1)
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


ARTIFACTS = (
    Artifact(
        "crossbow/fig16",
        "Epochs to the target against the synchronisation interval",
        runs,
        (measure_printed, measure_epochs),
        draw,
        plots.ALT_BARS,
        (8.0, 4.2),
        frame,
    ),
)
