"""The picture that Algorithms 1 and 2 share: a run watched update by update on its control chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def control_chart(run: Run, figure: Figure, title: str) -> None:
    """Losses with mean, limit and the steps of Algorithm 2, over all epochs and over the last two."""
    table, n = run.curve("updates"), run.results["batches"]
    whole, detail = figure.subplots(2, 1)
    _panel(whole, table, n)
    last = table[table["iteration"] >= table["iteration"].max() - 2 * n]
    _panel(detail, last, n)
    whole.set_title(title)
    whole.legend(fontsize="small")
    detail.set_xlabel("update (gradient evaluation)")


def _panel(axes: Axes, table: pd.DataFrame, n: int) -> None:
    plain, chased = table[~table["chasing"]], table[table["chasing"]]
    for _, rows in plain[plain["iteration"] % n == 0].iterrows():
        axes.axvline(rows["update"], color="0.9", linewidth=0.8, zorder=0)
    axes.plot(plain["update"], plain["loss"], ".", markersize=3, color="C0", label="loss of the batch")
    axes.plot(chased["update"], chased["loss"], "x", markersize=4, color="C3", label="step of Algorithm 2")
    axes.plot(table["update"], table["mean"], color="C1", label="mean of the last epoch")
    axes.plot(table["update"], table["limit"], color="C2", label="limit")
    axes.set_ylabel("loss (nats)")
    axes.set_ylim(bottom=0)
