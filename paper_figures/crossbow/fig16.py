"""Fig. 16: synchronising less often gains throughput and loses epochs; every iteration (tau = 1) is best."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import as_proxy, paired
from suite.claims.measured import exact, interval, point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
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
    yield "throughput-tau4", interval(most, 0.0, most, kind="exact", note=note)


def measure_epochs(evidence: Evidence) -> Quantities:
    """What synchronising every fourth iteration costs in epochs, before its gain in throughput."""
    every, fourth = names(evidence.profile)
    note = "epochs only, throughput left out"
    found = paired(evidence, every, fourth, lambda x, y: 100 * (y / x - 1), note, printed=settings.FINAL_TARGET)
    yield "tta-tau4", as_proxy(found)
    (longer,) = found.values
    yield "tau1-best", point(1.0 if longer > 0 else 4.0, kind="proxy", runs=found.runs, note="by epochs only")


def draw(evidence: Evidence, figure: Figure) -> None:
    plots.bars(evidence, figure, settings.FINAL_TARGET)


ARTIFACTS = (
    Artifact(
        "crossbow/fig16",
        "Epochs to the target against the synchronisation interval",
        runs,
        (measure_printed, measure_epochs),
        draw,
        plots.ALT_BARS,
    ),
)
