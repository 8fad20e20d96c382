"""What Fig. 1 says of the law across its curves: residuals, exponents, and the misfit of a rival."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.inverse_law.readings import TOLERANCE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOGETHER = "all curves together"
SHOWN = 60  # percent above or below the law that the residuals' axis reaches


def draw_laws(table: pd.DataFrame, figure: Figure) -> None:
    """Residuals of every run about its law; each curve's exponent beside the printed one, and its rival's misfit."""
    above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
    draw_residuals(above.subplots(), table[table["quantity"] == "residual"])
    left, right = below.subplots(1, 2, width_ratios=(3, 2))
    draw_exponents(left, table[table["quantity"] == "exponent"])
    draw_preferences(right, table[table["quantity"] == "preference"])


def draw_residuals(axes: Axes, table: pd.DataFrame) -> None:
    """Mean over thresholds and seeds with a standard deviation; curves side by side at each batch size."""
    import seaborn as sns

    from suite.report.style import GRID, MARKERS, PALETTE

    names = list(table["curve"].unique())
    shift = table["curve"].map({name: 0.6 * (i / len(names) - 0.5) for i, name in enumerate(names)})
    beside = table.assign(batch=table["batch"] * 2**shift)
    looks: dict[str, Any] = {"hue_order": names, "style_order": names, "palette": list(PALETTE[: len(names)])}
    sns.lineplot(
        beside, x="batch", y="value", hue="curve", style="curve", markers=list(MARKERS[: len(names)]), dashes=False,
        errorbar="sd", err_style="bars", err_kws={"elinewidth": 1, "capsize": 2}, linestyle="none", ax=axes, **looks,
    )  # fmt: skip
    axes.axhline(0, linewidth=0.8, color=GRID, linestyle="-")
    sizes = sorted(table["batch"].unique())
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.minorticks_off()
    axes.set(xlabel="mini-batch size M (examples)", ylabel="updates, % above the law")
    axes.set_title("residuals of all thresholds and seeds: mean \u00b1 1 standard deviation")
    spread = table.groupby(["curve", "batch"])["value"].std()
    axes.set_ylim(-SHOWN, SHOWN)
    if spread.max() > SHOWN:
        axes.set_title(f"{axes.get_title(loc='left')}; bars of up to \u00b1{spread.max():.0f}% are cut", loc="left")
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))


def draw_exponents(axes: Axes, table: pd.DataFrame) -> None:
    """The exponent of M in N - N_inf with its 95% interval, and the printed one as an open marker.

    An interval that is open below ends at an arrow, the end of the range searched.
    """
    import numpy as np

    from suite.report.style import GRID, PALETTE, PRINTED

    places = range(len(table))
    beyond = np.isneginf(table["low"]) & np.isfinite(table["high"])
    spread = [table["value"] - table["low"].where(~beyond, table["value"]), table["high"] - table["value"]]
    printed = table["printed"]
    axes.axvspan(printed.min() - TOLERANCE, printed.max() + TOLERANCE, color=GRID, alpha=0.2, linewidth=0)
    axes.errorbar(table["value"], places, xerr=spread, fmt="o", color=PALETTE[0], capsize=2.5, label="ours, 95%")
    if beyond.any():
        axes.plot(
            table["value"][beyond], np.flatnonzero(beyond), "<", color=PALETTE[0], markersize=9, label="or less"
        )
    axes.plot(printed, places, "D", markersize=7, label="printed", **PRINTED)
    axes.set_yticks(places, table["curve"])
    axes.set_ylim(len(table) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set(ylabel="", xlabel="exponent of M in $N - N_\\infty$\n(grey: the claim's tolerance)")
    axes.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)


def draw_preferences(axes: Axes, table: pd.DataFrame) -> None:
    """How much worse ISGD's Eq. 22 fits each curve; the curves are those of the panel beside."""
    import seaborn as sns

    from suite.report.style import GRID, PALETTE

    names = [*table["curve"], TOGETHER]  # the last row, of all curves together, has exponents alone
    sns.barplot(
        table, x="value", y="curve", order=names, color=PALETTE[1], saturation=1, errorbar=None, width=0.5, ax=axes
    )
    axes.axvline(0, linewidth=0.8, color=GRID, linestyle="-")
    axes.set_yticks(range(len(names)), [""] * len(names))
    axes.grid(visible=False, axis="y")
    axes.set(ylabel="", xlabel="log10 of the squared misfit of\nISGD's Eq. 22 over this law's")
