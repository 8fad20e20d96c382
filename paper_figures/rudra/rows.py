"""Tables 2 to 4 as frames and drawings: printed errors and times beside ours, calibration rows marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from paper_figures.rudra.groups import label
from paper_figures.rudra.readings import CifarTimes, final_error, left_out, runs_of
from paper_figures.rudra.settings import EPOCHS, Configuration
from paper_figures.rudra.simulations import BASELINE, CALIBRATED, TABLE2, TABLE3
from suite.claims.measured import Measured
from suite.papers.artifact import Evidence, Missing
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRINTED = {
    **{row: f"rudra/table3/r{at:02d}" for at, row in enumerate(TABLE3, 1)},
    **{row: f"rudra/table2/r{at:02d}" for at, row in enumerate(TABLE2, 1)},
}
"""Where the error and time of a configuration are printed; the baseline's claims are named apart."""

HELD_OUT, FITTED, LEFT_OUT = "predicted", "calibrated on", "calibrated on the others"
WHOLE, SHORT = "ours", "ours, shortened"


def printed_error(row: Configuration) -> float:
    return printed_value("rudra/table3/baseline-error" if row == BASELINE else f"{PRINTED[row]}-test-error")


def printed_seconds(row: Configuration) -> float:
    return printed_value("rudra/table3/baseline-time" if row == BASELINE else f"{PRINTED[row]}-training-time")


def cifar_rows(evidence: Evidence, rows: Iterable[Configuration]) -> pd.DataFrame:
    """Errors in % and seconds of configurations, a row per value.

    Columns: row (the paper's label), n, mu, learners, quantity ("test error" or "time"), source ("printed", WHOLE,
    SHORT, HELD_OUT, FITTED, LEFT_OUT), seed, epochs, value, low, high. Errors of ours stand where runs are stored;
    ``low`` and ``high`` are the 95% interval of their claim, that of the mean over a row's seeds.
    """
    import pandas as pd

    times, others = CifarTimes(evidence), left_out_if_stored(evidence)
    found: list[dict[str, Any]] = []
    for row in rows:
        base = {"row": label(row), **dict(zip(("n", "mu", "learners"), row, strict=True))}
        found.append(base | {"quantity": "test error", "source": "printed", "value": printed_error(row)})
        found += [base | {"quantity": "test error", **error} for error in trained(evidence, label(row))]
        found.append(base | {"quantity": "time", "source": "printed", "value": printed_seconds(row)})
        source = FITTED if row in CALIBRATED else HELD_OUT
        found.append(base | {"quantity": "time", "source": source, "value": times[row]})
        if row in others:
            found.append(base | {"quantity": "time", **told(others[row])})
    return pd.DataFrame(found)


def trained(evidence: Evidence, group: str) -> list[dict[str, Any]]:
    """Seed, epochs and final error in % of a group's stored runs, of any length; the interval of whole ones."""
    try:
        runs = runs_of(evidence, group)
    except Missing:
        return []
    ((_, low, high),) = final_error(evidence, group).spans
    found: list[dict[str, Any]] = []
    for run in runs:
        whole = round(run.results["epoch"]) == EPOCHS
        about = {"source": WHOLE, "low": low, "high": high} if whole else {"source": SHORT}
        epochs, error = run.results["epoch"], 100 * run.results["test_error"]
        found.append(about | {"seed": run.spec.seed, "epochs": epochs, "value": error})
    return found


def left_out_if_stored(evidence: Evidence) -> Mapping[tuple[Any, ...], Measured]:
    """The calibration rows as the others predict them, or none where that was not computed."""
    try:
        return left_out(evidence)
    except Missing:
        return {}


def told(found: Measured) -> dict[str, Any]:
    """A row that was left out, for a frame."""
    ((value, low, high),) = found.spans
    return {"source": LEFT_OUT, "value": value, "low": low, "high": high}


def draw_cifar(table: pd.DataFrame, figure: Figure) -> None:
    """Errors on the left, times on the right, a line of the table each."""
    from suite.report.style import PALETTE

    left, right = figure.subplots(1, 2, sharey=True)
    names = list(dict.fromkeys(table["row"]))
    dots(left, table[table["quantity"] == "test error"], names)
    if not (table["source"] == WHOLE).any():
        left.scatter([], [], color=PALETTE[0], s=20, label="ours: none of 140 epochs")
    left.set(xlabel="test error (%)", ylabel="(n, mu, lambda)")
    dots(right, table[table["quantity"] == "time"], names)
    right.set(xlabel="time of 140 epochs (s)")
    logarithmic(right)
    for axes in (left, right):
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def logarithmic(axes: Axes, which: str = "x") -> None:
    """A logarithmic axis of seconds or minutes in plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def dots(axes: Axes, table: pd.DataFrame, names: list[str]) -> None:
    """Values by source on a line per name: what is printed in open circles, ours in filled marks."""
    from suite.report.style import GRID, INK, PALETTE

    looks: dict[str, dict[str, Any]] = {
        "printed": {"marker": "o", "facecolors": "none", "edgecolors": INK, "s": 42},
        HELD_OUT: {"marker": "o", "color": PALETTE[0], "s": 20},
        FITTED: {"marker": "x", "color": GRID, "s": 26},
        LEFT_OUT: {"marker": "D", "color": PALETTE[1], "s": 18},
        WHOLE: {"marker": "o", "color": PALETTE[0], "s": 20},
        SHORT: {"marker": "v", "color": PALETTE[1], "s": 22},
    }
    for source, look in looks.items():
        part = table[table["source"] == source]
        if part.empty:
            continue
        at = [names.index(name) for name in part["row"]]
        axes.scatter(part["value"], at, label=source, zorder=3, linewidths=1.2, **look)
        if source in (LEFT_OUT, WHOLE):
            axes.hlines(at, part["low"], part["high"], color=look["color"], linewidth=1.2)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
