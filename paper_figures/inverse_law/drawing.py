"""Drawings: axes of batch sizes, the runs of a threshold with their fitted law, and the law across its curves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from paper_figures.inverse_law.law import TOLERANCE, exponent, law_fit
from suite.batch_size.law import FitError, Updates
from suite.claims.intervals import Interval
from suite.papers.figure import Axes, Figure, Missing, np, pd, printed_value, sns
from suite.report.style import GRID, LINES, MARKERS, PALETTE, PRINTED, named_ticks, plain_numbers

TICKS = 9  # on an axis of batch sizes, at most
TOGETHER = "all curves together"
LAW = "inverse_law/eq2/law"  # its exponent of M follows from Eq. 2
LINEAR = 10  # percent above or below the law up to which the residuals' axis is linear, and logarithmic beyond


def logarithmic(axes: Axes, sizes: Sequence[float]) -> None:
    """Both axes logarithmic and labelled with plain numbers: the batch sizes at hand, and 1, 2, 5 of each decade."""
    axes.set_yscale("log")
    shown = sorted(set(sizes))
    named_ticks(axes, shown[:: -(-len(shown) // TICKS)], 2)
    plain_decades(axes)


def plain_decades(axes: Axes) -> None:
    """Plain numbers on a logarithmic vertical axis: 1, 2, 5 of each decade, or of many decades 1 alone."""
    low, high = axes.get_ylim()
    plain_numbers(axes.yaxis, (1,) if high > 1000 * low else (1, 2, 5))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}" if value < 1 else f"{value:,.0f}")


def updates_table(found: Mapping[float, Sequence[Updates]], **named: str) -> pd.DataFrame:
    """A row per threshold (nats), batch size and seed: ``updates``, NaN for a run that ended at ``limit`` before.

    The first columns are those ``named``.
    """
    columns = ["threshold", "batch", "seed", "updates", "limit"]
    rows = [
        (threshold, u.batch, seed, math.nan if n is None else n, u.limit)
        for threshold, counted in found.items()
        for u in counted
        for seed, n in enumerate(u.seen)
    ]
    return pd.DataFrame(rows, columns=columns).assign(**named)[[*named, *columns]]


def draw_law(axes: Axes, counted: list[Updates], label: str, order: int = 0) -> None:
    """Runs as dots, their mean with a standard deviation, and the law with its 95% interval where it fits.

    Runs that ended at their limit are hollow. ``label`` stands beside the curve's end at large batches. ``order``
    chooses colour, marker and line style.
    """
    colour, marker = PALETTE[order], MARKERS[order]
    table = updates_table({0.0: counted})
    seen, lost = table.dropna(subset="updates"), table[table["updates"].isna()]
    try:
        fit = law_fit(counted) if len(seen) else None
    except FitError:
        fit = None
    axes.scatter(seen["batch"], seen["updates"], s=5, alpha=0.5, linewidth=0, color=colour)
    each = seen.groupby("batch")["updates"].agg(["mean", "std"])
    axes.plot(each["mean"], linestyle="none", marker=marker, markersize=4.5, markeredgewidth=0, color=colour)
    axes.errorbar(each.index, each["mean"], each["std"], linestyle="none", elinewidth=1, capsize=2, color=colour)
    hollow: dict[str, Any] = {"linestyle": "none", "marker": marker, "markerfacecolor": "none", "color": colour}
    axes.plot(lost["batch"], lost["limit"], markersize=5, **hollow)
    last = table[table["batch"] == table["batch"].max()]
    end = (table["batch"].max(), last["updates"].fillna(last["limit"]).median())
    axes.annotate(label, end, (7, 0), textcoords="offset points", va="center", size=8, color=colour)
    if fit is None:
        return
    grid = np.geomspace(min(fit.batches), max(fit.batches), 80)
    axes.plot(grid, [fit.predict(m) for m in grid], linestyle=LINES[order], linewidth=1, color=colour)
    bands = [fit.prediction_interval(m) for m in grid]
    low = [max(b.low, 1e-3 * fit.predict(m)) for b, m in zip(bands, grid, strict=True)]
    if all(np.isfinite(low)):
        axes.fill_between(grid, low, [b.high for b in bands], color=colour, alpha=0.2, linewidth=0)


def finish_law(axes: Axes, found: Sequence[Sequence[Updates]]) -> None:
    """Limits that the runs decide, not the intervals, with room at the right for the names of the curves; scales."""
    everyone = [u for counted in found for u in counted]
    values = [n if n is not None else u.limit or 1.0 for u in everyone for n in u.seen]
    axes.set_yscale("log")
    axes.set_ylim(min(values) / 1.4, max(values) * 1.4)
    sizes = [u.batch for u in everyone]
    logarithmic(axes, sizes)
    axes.set_xlim(min(sizes) / 1.3, max(sizes) * (max(sizes) / min(sizes)) ** 0.16)
    axes.set(xlabel="", ylabel="")


def told(found: Interval) -> str:
    """A fitted exponent beside Eq. 2's, as a line of a title; its bound alone where its interval is open."""
    printed = printed_value(LAW)
    if found.low == -math.inf and found.high < math.inf:
        return f"exponent below {found.high:.2f}, Eq. 2: {printed:g}".replace("-", "\u2212")
    return f"exponent {found.mean:.2f} [{found.low:.2f}, {found.high:.2f}], Eq. 2: {printed:g}".replace("-", "\u2212")


def key(found: Iterable[Sequence[Updates]]) -> list[Any]:
    """What the marks of ``draw_law`` mean, for one legend of all panels of these curves."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks: list[Any] = [
        Line2D([], [], linestyle="none", marker="o", markersize=2.5, alpha=0.5, color=GRID, label="a run"),
        Line2D([], [], linestyle="none", marker="o", color=GRID, label="mean \u00b1 1 standard deviation"),
        Line2D([], [], linestyle="-", linewidth=1, color=GRID, label="$N_\\infty + \\alpha/M$ fitted"),
        Patch(color=GRID, alpha=0.3, linewidth=0, label="its 95% interval"),
    ]
    if any(u.censored for counted in found for u in counted):
        hollow = Line2D([], [], linestyle="none", marker="o", color=GRID, markerfacecolor="none")
        hollow.set_label("not reached within its limit")
        marks.append(hollow)
    return marks


# ---------------------------------------------------------------- Fig. 1b: residuals and exponents


def residuals(title: str, threshold: float, updates: list[Updates]) -> list[dict[str, Any]]:
    """Updates of every run in % above or below the law fitted to a threshold."""
    fit = law_fit(updates)
    named = {"curve": title, "quantity": "residual", "threshold": threshold}
    return [
        named | {"batch": u.batch, "seed": seed, "value": 100 * (n / fit.predict(u.batch) - 1)}
        for u in updates
        for seed, n in enumerate(u.seen)
        if n is not None
    ]


def exponent_row(title: str, curves: Sequence[Sequence[Sequence[Updates]]]) -> dict[str, Any]:
    """The row of an exponent beside Eq. 2's; its value is NaN where the runs determine none."""
    named = {"curve": title, "quantity": "exponent", "follows": printed_value(LAW)}
    try:
        found = exponent(*curves)
    except Missing:
        return named | {"value": math.nan}
    return named | {"value": found.mean, "low": found.low, "high": found.high}


def draw_laws(table: pd.DataFrame, figure: Figure) -> None:
    """Residuals of every run about its law, a panel for each data set; each curve's exponent beside Eq. 2's."""
    residual = table[table["quantity"] == "residual"]
    of_data = residual.groupby(residual["curve"].str.extract(r"^([\w-]+)", expand=False), sort=False)
    above, below = figure.subfigures(2, 1, height_ratios=(of_data.ngroups, 1.6), squeeze=False)[:, 0]
    panels = above.subplots(of_data.ngroups, 1, sharex=True, squeeze=False)[:, 0]
    for axes, (data, part) in zip(panels, of_data, strict=True):
        draw_residuals(axes, part.assign(curve=part["curve"].str.removeprefix(data).str.lstrip(", ")))
        axes.set_title(data)
    named_ticks(axes, sorted(residual["batch"].unique()), 2)
    axes.set_xlabel("mini-batch size M (examples)")
    said = "updates, % above the law (mean \u00b1 1 standard deviation over thresholds and seeds)"
    above.supylabel(said, size="small")
    draw_exponents(below.subplots(), table[table["quantity"] == "exponent"])


def draw_residuals(axes: Axes, table: pd.DataFrame) -> None:
    """Mean over thresholds and seeds with a standard deviation; curves side by side at each batch size."""
    names = list(table["curve"].unique())
    shift = table["curve"].map({name: 0.8 * ((i + 0.5) / len(names) - 0.5) for i, name in enumerate(names)})
    sns.lineplot(
        table.assign(batch=table["batch"] * 2**shift), x="batch", y="value", hue="curve", style="curve", dashes=False,
        markers=MARKERS[: len(names)], errorbar="sd", err_style="bars", err_kws={"elinewidth": 1, "capsize": 2},
        linestyle="none", ax=axes,
    )  # fmt: skip
    axes.axhline(0, linewidth=0.8, color=GRID, linestyle="-")
    axes.set(ylabel="")
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=2)
    ticks = [0, *(sign * level for sign in (-1, 1) for level in (5, 10, 30, 100, 300))]
    low, high = axes.get_ylim()
    shown = [tick for tick in ticks if low <= tick <= high]
    axes.set_yticks(shown, [f"{tick:+d}".replace("-", "\u2212") if tick else "0" for tick in shown])
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0)


def draw_exponents(axes: Axes, table: pd.DataFrame) -> None:
    """The exponent of M in N - N_inf with its 95% interval, and the one that follows from Eq. 2 as an open marker.

    The last row pools the curves above it, the claim on Eq. 2 four of them. An interval that is open below ends at an
    arrow, the end of the range searched.
    """
    places = range(len(table))
    beyond = np.isneginf(table["low"]) & np.isfinite(table["high"])
    spread = [table["value"] - table["low"].where(~beyond, table["value"]), table["high"] - table["value"]]
    follows = table["follows"]
    axes.axvspan(follows.min() - TOLERANCE, follows.max() + TOLERANCE, color=GRID, alpha=0.2, linewidth=0)
    axes.errorbar(table["value"], places, xerr=spread, fmt="o", color=PALETTE[0], capsize=2.5, label="ours, 95%")
    if beyond.any():
        axes.plot(
            table["value"][beyond], np.flatnonzero(beyond), "<", color=PALETTE[0], markersize=9, label="or less"
        )
    axes.plot(follows, places, "D", markersize=7, label="follows from Eq. 2", **PRINTED)
    pooled = f"all {len(table) - 1} together (claim on Eq. 2: four)"
    axes.set_yticks(places, table["curve"].replace(TOGETHER, pooled))
    axes.set_ylim(len(table) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set(ylabel="", xlabel="exponent of M in $N - N_\\infty$\n(grey: within the tolerance)")
    axes.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
