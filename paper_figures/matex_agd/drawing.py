"""Bars of rates relative to no communication: modelled ones by devices, measured ones by the speed of a link."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from paper_figures.matex_agd.costs import DELAYED
from paper_figures.matex_agd.exchanges import LAYER_WISE, SPEEDS
from suite.claims.intervals import log_interval
from suite.lazy import Axes, pd, sns
from suite.report.style import INK, PALETTE

IN_THE_PAPER = ("no comm", "SGD", *DELAYED)  # the bars of Fig. 1 whose labels survive
APPROACHES = (*IN_THE_PAPER, *LAYER_WISE)


def draw_bars(table: pd.DataFrame, axes: Axes, modelled: pd.DataFrame | None = None) -> None:
    """Bars by approach and number of devices, with whiskers from ``low`` to ``high``; crosses where ``modelled``."""
    approaches = [name for name in APPROACHES if name in set(table["approach"])]
    counts = sorted(table["devices"].unique().tolist())
    names = [f"{count} device{'s' * (count > 1)}" for count in counts]
    told = table.assign(devices=table["devices"].map(dict(zip(counts, names, strict=True))))
    looks: dict[str, Any] = {"hue": "devices", "hue_order": names, "palette": PALETTE[: len(names)], "saturation": 1}
    sns.barplot(told, x="approach", y="rate", order=approaches, **looks, ax=axes)
    for count, bars in zip(counts, list(axes.containers), strict=True):
        rows = table[table["devices"] == count].set_index("approach").loc[approaches]
        at = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        spread = [rows["rate"] - rows["low"], rows["high"] - rows["rate"]]
        axes.errorbar(at, rows["rate"], spread, fmt="none", ecolor=INK, elinewidth=0.8, capsize=1.5)
        if modelled is not None:
            expected = modelled[modelled["devices"] == count].set_index("approach").loc[approaches]
            label = "cost model" if count == counts[-1] else None
            axes.plot(at, expected["rate"], "x", color=INK, markersize=5, linestyle="none", label=label)
    axes.axvline(approaches.index(LAYER_WISE[0]) - 0.5, color=INK, linewidth=0.8, linestyle=":")
    labels = [name.replace("layer-wise, ", "layer-wise\n").replace("AGD ", "AGD\n") for name in approaches]
    axes.set_xticks(range(len(labels)), labels)
    axes.grid(visible=False, axis="x")
    axes.set(xlabel="", ylabel="rate relative to no comm", ylim=(0, max(1.05, 1.02 * table["high"].max())))
    axes.legend(title="", ncols=len(names) + 1, loc="lower left", bbox_to_anchor=(0, 0.99), borderaxespad=0)


def draw_link(table: pd.DataFrame, methods: Sequence[str], axes: Axes) -> None:
    """Bars of rates by method and speed with t intervals, a dot for each repetition, crosses for the cost model."""
    table = table.assign(speed=[f"{speed / 1e6:g} Mbit/s" for speed in table["speed"]])
    speeds = [f"{speed / 1e6:g} Mbit/s" for speed in SPEEDS]
    looks: dict[str, Any] = {"x": "approach", "y": "rate", "order": methods, "hue": "speed", "hue_order": speeds}
    seen, modelled = table[table["source"] == "link"], table[table["source"] == "cost model"]
    colours = PALETTE[: len(speeds)]
    sns.barplot(
        seen, **looks, palette=colours, saturation=1, estimator=geometric_mean, errorbar=ends, capsize=0.15,
        err_kws={"color": INK, "linewidth": 0.8, "linestyle": "-"}, ax=axes,
    )  # fmt: skip
    dots = {"palette": [INK] * len(speeds), "dodge": True, "jitter": False, "legend": False}
    sns.stripplot(seen, **looks, **dots, size=2, ax=axes)
    if len(modelled):
        sns.stripplot(modelled, **looks, **dots, marker="x", size=5, linewidth=1.2, ax=axes)
        axes.plot([], [], "x", color=INK, markersize=5, label="cost model")
    labels = [name.replace("layer-wise, ", "layer-wise\n").replace("PyTorch ", "PyTorch\n") for name in methods]
    axes.set_xticks(range(len(methods)), [label.replace("AGD ", "AGD\n") for label in labels])
    axes.axhline(1, color=INK, linewidth=0.8, linestyle=":")
    axes.grid(visible=False, axis="x")
    axes.set(xlabel="", ylabel="rate relative to no comm", ylim=(0, 1.05))
    axes.legend(title="", ncols=4, loc="lower left", bbox_to_anchor=(0, 0.99), borderaxespad=0)


def geometric_mean(rates: Iterable[float]) -> float:
    return log_interval(list(rates)).mean


def ends(rates: Iterable[float]) -> tuple[float, float]:
    """Of the Student t interval of their geometric mean."""
    seen = log_interval(list(rates))
    return seen.low, seen.high
