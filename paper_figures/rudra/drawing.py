"""What tables and figures draw alike: errors over epochs, and what is printed in open marks, ours in filled ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paper_figures.rudra.errors import SHORT, WHOLE
from paper_figures.rudra.plans import label
from paper_figures.rudra.settings import Configuration
from paper_figures.rudra.times import FITTED, HELD_OUT, LEFT_OUT
from suite.papers.figure import Axes, Frame, Missing, pd, sns
from suite.report.style import GRID, INK, PALETTE, plain_numbers


def about(row: Configuration) -> dict[str, Any]:
    """A configuration as columns of a table."""
    return {"row": label(row), **dict(zip(("n", "mu", "learners"), row, strict=True))}


def evaluations(frame: Frame, named: Mapping[str, str], by: str) -> pd.DataFrame:
    """Test errors in % at all evaluations of stored groups, each ``named``. Columns: seed, epoch, ``by``, error.

    Raises Missing where none is stored.
    """
    stored = list(filter(frame.results, named))
    if not stored:
        raise Missing(f"nothing is trained at profile {frame.profile}")
    curve = frame.table("evaluations", *stored)
    return curve[["seed", "epoch"]].assign(**{by: curve["group"].map(named)}, error=100 * curve["test_error"])


def draw_evaluations(axes: Axes, rows: pd.DataFrame, by: str) -> None:
    """``evaluations`` over epochs, a line a seed, told apart ``by`` a column; before training all are at chance."""
    told: dict[str, Any] = {"hue": by, "style": by, "units": "seed", "estimator": None}
    sns.lineplot(rows[rows["epoch"] > 0], x="epoch", y="error", ax=axes, **told)


def logarithmic(axes: Axes, which: str = "x") -> None:
    """A logarithmic axis in plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    plain_numbers(axes.xaxis if which == "x" else axes.yaxis)


def dots(axes: Axes, table: pd.DataFrame, names: list[str]) -> None:
    """Values by source on a line per name: what is printed in open circles, ours in filled marks."""
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
