"""Drawings of the fitted law: curves, residuals, predicted against measured time, scaling regimes, time model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from suite.batch_size.law import FitError, InverseLawFit, Updates
from suite.papers.artifact import Evidence, Missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TICKS = 9  # on an axis of batch sizes, at most


def logarithmic(axes: Axes, sizes: Sequence[float]) -> None:
    """Both axes logarithmic and labelled with plain numbers: the batch sizes at hand, and 1, 2, 5 of each decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    shown = sorted(set(sizes))
    shown = shown[:: -(-len(shown) // TICKS)]
    axes.set_xticks(shown, [f"{size:g}" for size in shown])
    axes.minorticks_off()
    low, high = axes.get_ylim()
    decades = math.log10(high / low)
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0,) if decades > 3 else (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if value < 1 else f"{value:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_curves(evidence: Evidence, figure: Figure) -> None:
    """One panel per curve that has runs: points of every threshold, fitted law, 95% interval of the median."""
    from paper_figures.inverse_law.images import crossings, curve, stored_rows, thresholds

    panels = [(row, curve(evidence, row)) for row in stored_rows(evidence)]
    if not panels:
        raise Missing(f"no curve of Fig. 1 is complete at {evidence.profile}")
    columns = 2 if len(panels) <= 4 else 3
    for place, (row, runs) in enumerate(panels, 1):
        axes = figure.add_subplot(-(-len(panels) // columns), columns, place)
        found = []
        for order, threshold in enumerate(thresholds(row, evidence.profile)):
            try:
                found.append(crossings(runs, threshold))
            except Missing:
                continue
            draw_law(axes, found[-1], f"loss {threshold:.3g}", order)
        finish_law(axes, found)
        axes.set_title(row.title)
    figure.supxlabel("mini-batch size M (examples)", fontsize="medium")
    figure.supylabel("updates to the threshold", fontsize="medium")


def draw_law(axes: Axes, counted: list[Updates], label: str, order: int = 0) -> InverseLawFit | None:
    """Runs as points, censored ones hollow at their limit, and the law with its interval where it fits.

    The law stands in the legend. ``order`` chooses colour, marker and line style.
    """
    import numpy as np

    from paper_figures.inverse_law.images import law_fit
    from suite.report.style import LINES, MARKERS, PALETTE

    colour, marker = PALETTE[order], MARKERS[order]
    seen = [(u.batch, n) for u in counted for n in u.seen if n is not None]
    lost = [(u.batch, u.limit or 0.0) for u in counted for n in u.seen if n is None]
    try:
        fit = law_fit(counted)
    except FitError:
        fit = None
    said = f"{label}: {fit.floor:,.0f} + {fit.sensitivity:,.0f}/M" if fit else f"{label}: no fit"
    style: dict[str, Any] = {"linestyle": "none", "marker": marker, "color": colour}
    axes.plot([b for b, _ in seen], [n for _, n in seen], markersize=3.5, label=said, **style)
    axes.plot([b for b, _ in lost], [n for _, n in lost], markersize=5, markerfacecolor="none", **style)
    if fit is None:
        return None
    grid = np.geomspace(min(fit.batches), max(fit.batches), 80)
    axes.plot(grid, [fit.predict(m) for m in grid], linestyle=LINES[order], linewidth=1, color=colour)
    bands = [fit.prediction_interval(m) for m in grid]
    low = [max(b.low, 1e-3 * fit.predict(m)) for b, m in zip(bands, grid, strict=True)]
    if all(np.isfinite(low)):
        axes.fill_between(grid, low, [b.high for b in bands], color=colour, alpha=0.2, linewidth=0)
    return fit


def finish_law(axes: Axes, found: Sequence[Sequence[Updates]]) -> None:
    """Limits that the runs decide, not the intervals; scales and legend."""
    everyone = [u for counted in found for u in counted]
    values = [n if n is not None else u.limit or 1.0 for u in everyone for n in u.seen]
    axes.set_yscale("log")
    axes.set_ylim(min(values) / 1.4, max(values) * 2.2 ** len(found) ** 0.5)  # room for the legend
    logarithmic(axes, [u.batch for u in everyone])
    if any(u.censored for u in everyone):
        axes.plot(
            [], [], linestyle="none", marker="o", color="0.5", markerfacecolor="none", label="not reached (limit)"
        )
    axes.legend(fontsize="small")


def draw_residuals(evidence: Evidence, figure: Figure) -> None:
    """Residuals of every run about its fitted law, and each curve's misfit beside that of ISGD's Eq. 22."""
    from paper_figures.inverse_law.images import crossings, curve, law_fit, reached, stored_rows, thresholds
    from paper_figures.inverse_law.rival import compare
    from suite.report.style import MARKERS, PALETTE

    rows = stored_rows(evidence)
    if not rows:
        raise Missing(f"no curve of Fig. 1 is complete at {evidence.profile}")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    sizes: set[int] = set()
    shift = 0.5 / len(rows)
    for place, row in enumerate(rows):
        runs, x, y = curve(evidence, row), [], []
        for threshold in thresholds(row, evidence.profile):
            try:
                counted = crossings(runs, threshold)
                fit = law_fit(counted)
            except (Missing, FitError):
                continue
            for u in counted:
                seen = [n for n in u.seen if n is not None]
                x += [u.batch * 2 ** (shift * (place - (len(rows) - 1) / 2))] * len(seen)
                y += [100 * (n / fit.predict(u.batch) - 1) for n in seen]
                sizes.add(u.batch)
        marker, colour = MARKERS[place % len(MARKERS)], PALETTE[place % len(PALETTE)]
        left.plot(x, y, linestyle="none", marker=marker, color=colour, markersize=3, label=row.title)
    left.axhline(0, linewidth=0.8, color="0.5", linestyle="-")
    left.set_xscale("log", base=2)
    left.set_xticks(sorted(sizes), [str(size) for size in sorted(sizes)])
    left.minorticks_off()
    left.set_xlabel("mini-batch size M (examples)")
    left.set_ylabel("updates, % above the fitted law")
    left.set_title("residuals, all thresholds")
    figure.legend(fontsize="x-small", loc="outside lower left", ncols=3)
    preferences = [compare(reached(evidence, row)).preference for row in rows]
    right.barh(range(len(rows)), preferences, color=[PALETTE[i % len(PALETTE)] for i in range(len(rows))], height=0.6)
    right.axvline(0, linewidth=0.8, color="0.5", linestyle="-")
    right.set_yticks([])
    right.invert_yaxis()
    right.set_xlabel("log10 of the ratio of squared misfits\n(right of 0: this law fits better)")
    right.set_title("against ISGD's Eq. 22")


def draw_times(evidence: Evidence, figure: Figure) -> None:
    """Predicted and measured seconds to converge by batch size, the batch size picked, and its regret."""
    from paper_figures.inverse_law.seconds import mean_seconds, seed_seconds
    from suite.report.style import PALETTE

    run = evidence.run("loop")
    table, measured = run.curve("batches"), mean_seconds(run.curve("runs"))
    fitted, chosen = run.spec.settings["converge"], run.results["chosen"]
    best = min(measured, key=lambda batch: measured[batch])
    axes = figure.add_subplot()
    each = seed_seconds(run.curve("runs"))
    axes.plot([b for b, _ in each], [s for _, s in each], ".", markersize=3, color="0.6", label="measured, each seed")
    axes.plot(list(measured), list(measured.values()), "o", color=PALETTE[1], label="measured, mean")
    axes.plot(
        fitted,
        [measured[b] for b in fitted],
        "o",
        markersize=9,
        markerfacecolor="none",
        color=PALETTE[1],
        label="updates of these were counted",
    )
    axes.plot(table["batch"], table["predicted_seconds"], "-", color=PALETTE[0], label="predicted: N(M) T(M)")
    axes.axvline(chosen, linewidth=0.8, linestyle="--", color="0.5", label=f"picked: {chosen}")
    logarithmic(axes, list(table["batch"]))
    axes.set_xlabel("mini-batch size M (examples)")
    axes.set_ylabel("seconds to converge")
    axes.set_title(
        f"picked {chosen}, fastest {best}: time at the choice over the best {measured[chosen] / measured[best]:.2f}"
    )
    axes.legend(fontsize="small")


def draw_update_time(evidence: Evidence, figure: Figure) -> None:
    """Seconds per update by batch size, every round and their median, with Eq. 4 fitted."""
    import numpy as np

    from suite.batch_size.knee import fit_knee
    from suite.report.style import PALETTE

    table, rounds = evidence.run("loop").curve("batches"), evidence.run("loop").curve("timings")
    knee = fit_knee(dict(zip((int(b) for b in table["batch"]), table["update_seconds"], strict=True)))
    grid = sorted({*np.geomspace(table["batch"].min(), table["batch"].max(), 60), knee.knee})
    axes = figure.add_subplot()
    axes.plot(rounds["batch"], rounds["seconds"], ".", markersize=2, color="0.6", label="each round")
    axes.plot(table["batch"], table["update_seconds"], "o", color=PALETTE[1], label="median")
    axes.plot(grid, [knee.seconds(b) for b in grid], "-", color=PALETTE[0], label=f"Eq. 4, knee at {knee.knee:.0f}")
    logarithmic(axes, list(table["batch"]))
    axes.set_xlabel("mini-batch size M (examples)")
    axes.set_ylabel("seconds per update")
    axes.legend(fontsize="small")


def draw_scaling(evidence: Evidence, figure: Figure) -> None:
    """Strong, weak and optimal scaling of one system by the closed forms: time to converge, and its batch size."""
    from reference_impls import inverse_law_model as forms

    law, system, strong, knee = forms.Law(500, 50_000), forms.System(1e-3, 8, 5e-2), 256, 8
    learners = [2**k for k in range(1, 13)]
    lines = (
        (f"strong, M = {strong}", "-", forms.strong_scaling_seconds, strong, lambda p: strong),
        (f"weak, M = {knee} P", "--", forms.weak_scaling_seconds, knee, lambda p: knee * p),
    )
    left, right = figure.subplots(1, 2)
    for label, style, seconds, size, batch in lines:
        left.plot(learners, [seconds(law, system, size, p) for p in learners], style, label=label)
        right.plot(learners, [batch(p) for p in learners], style)
    best = [forms.optimal_scaling_seconds(law, system, p) for p in learners]
    left.plot(learners, best, linestyle=":", linewidth=2.2, label="optimal")
    right.plot(learners, [forms.optimal_batch(law, system, p) for p in learners], linestyle=":", linewidth=2.2)
    turns = (
        (strong / knee, "strong scaling ends"),
        (
            law.sensitivity * system.exchange_seconds / (law.floor * system.seconds_per_example * knee**2),
            "weak is optimal",
        ),
    )
    for at, label in turns:
        for axes in (left, right):
            axes.axvline(at, linewidth=0.8, linestyle="--", color="0.5")
        left.annotate(
            label,
            (at, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(2, 0),
            textcoords="offset points",
            rotation=90,
            verticalalignment="top",
            fontsize="x-small",
        )
    for axes in (left, right):
        logarithmic(axes, learners)
        axes.set_xlabel("learners P")
    left.set_ylabel("seconds to converge (model)")
    right.set_ylabel("mini-batch size M (examples)")
    left.legend(fontsize="small")
