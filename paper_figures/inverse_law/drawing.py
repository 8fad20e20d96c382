"""Drawings of the fitted law: curves, residuals, predicted against measured time, scaling regimes, time model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.artifact import Evidence, Missing
from paper_figures.inverse_law.runs import BY_NAME
from suite.fit import FitError, InverseLawFit, Updates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_curves(evidence: Evidence, figure: Figure) -> None:
    """One panel per curve that has runs: points of every threshold, fitted law, 95% interval of the median."""
    from paper_figures.inverse_law.images import crossings, curve, stored_rows, thresholds

    panels = [(row, curve(evidence, row)) for row in stored_rows(evidence)]
    if not panels:
        raise Missing(f"no curve of Fig. 1 is complete at {evidence.profile}")
    columns = 2 if len(panels) <= 4 else 3
    for place, (row, runs) in enumerate(panels, 1):
        axes = figure.add_subplot(-(-len(panels) // columns), columns, place)
        for threshold in thresholds(row, evidence.profile):
            try:
                draw_law(axes, crossings(runs, threshold), f"loss {threshold:g}")
            except Missing:
                continue
        axes.set_title(row.name)
        axes.legend(fontsize="small")
    figure.supxlabel("mini-batch size M (examples)")
    figure.supylabel("updates to the threshold")


def draw_law(axes: Axes, counted: list[Updates], label: str) -> InverseLawFit | None:
    """Runs as points, censored ones as triangles at their limit, and the law with its interval where it fits."""
    import numpy as np

    from paper_figures.inverse_law.images import law_fit

    seen = [(u.batch, n) for u in counted for n in u.seen if n is not None]
    lost = [(u.batch, u.limit or 0.0) for u in counted for n in u.seen if n is None]
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    (points,) = axes.plot([b for b, _ in seen], [n for _, n in seen], "o", markersize=3, label=label)
    colour = points.get_color()
    if lost:
        axes.plot([b for b, _ in lost], [n for _, n in lost], "^", markersize=5, mfc="none", color=colour)
    try:
        fit = law_fit(counted)
    except FitError:
        return None
    grid = np.geomspace(min(fit.batches), max(fit.batches), 80)
    axes.plot(grid, [fit.predict(m) for m in grid], "-", linewidth=1, color=colour)
    bands = [fit.prediction_interval(m) for m in grid]
    low = [max(b.low, 1e-3 * fit.predict(m)) for b, m in zip(bands, grid, strict=True)]
    if all(np.isfinite(low)):
        axes.fill_between(grid, low, [b.high for b in bands], color=colour, alpha=0.2, linewidth=0)
    return fit


def draw_residuals(evidence: Evidence, figure: Figure) -> None:
    """Relative residual of every run about its fitted law, by batch size; a panel per curve."""
    from paper_figures.inverse_law.images import MNIST, crossings, curve, law_fit, thresholds

    axes = figure.add_subplot()
    drawn = 0
    for place, name in enumerate(MNIST):
        row = BY_NAME[name]
        try:
            runs = curve(evidence, row)
        except Missing:
            continue
        x, y = [], []
        for threshold in thresholds(row, evidence.profile):
            try:
                counted = crossings(runs, threshold)
                fit = law_fit(counted)
            except (Missing, FitError):
                continue
            for u in counted:
                seen = [n for n in u.seen if n is not None]
                x += [u.batch * 2 ** (0.12 * (place - 1.5))] * len(seen)
                y += [100 * (n / fit.predict(u.batch) - 1) for n in seen]
        axes.plot(x, y, "o", markersize=3, label=name)
        drawn += 1
    if not drawn:
        raise Missing(f"no MNIST curve is complete at {evidence.profile}")
    axes.axhline(0, linewidth=0.8, color="0.5")
    axes.set_xscale("log", base=2)
    axes.set_xlabel("mini-batch size M (examples)")
    axes.set_ylabel("updates, % above the fitted law")
    axes.legend(fontsize="small")


def draw_times(evidence: Evidence, figure: Figure) -> None:
    """Predicted and measured seconds to converge by batch size, and the batch size the method picked."""
    from paper_figures.inverse_law.seconds import mean_seconds

    run = evidence.run("loop")
    table, measured = run.curve("batches"), mean_seconds(run.curve("runs"))
    axes = figure.add_subplot()
    axes.plot(table["batch"], table["predicted_seconds"], "-", label="predicted: N(M) T(M)")
    axes.plot(list(measured), list(measured.values()), "o", label="measured")
    axes.axvline(run.results["chosen"], linewidth=0.8, linestyle="--", color="0.5", label="batch size picked")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("mini-batch size M (examples)")
    axes.set_ylabel("seconds to converge")
    axes.legend(fontsize="small")


def draw_update_time(evidence: Evidence, figure: Figure) -> None:
    """Seconds per update by batch size, every round and their median, with Eq. 4 fitted."""
    from suite.update_time import fit_knee

    table, rounds = evidence.run("loop").curve("batches"), evidence.run("loop").curve("timings")
    knee = fit_knee(dict(zip((int(b) for b in table["batch"]), table["update_seconds"], strict=True)))
    axes = figure.add_subplot()
    axes.plot(rounds["batch"], rounds["seconds"], ".", markersize=2, color="0.6", label="each round")
    axes.plot(table["batch"], table["update_seconds"], "o", label="median")
    axes.plot(table["batch"], [knee.seconds(b) for b in table["batch"]], "-", label=f"Eq. 4, knee {knee.knee:.0f}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("mini-batch size M (examples)")
    axes.set_ylabel("seconds per update")
    axes.legend(fontsize="small")


def draw_scaling(evidence: Evidence, figure: Figure) -> None:
    """Strong, weak and optimal scaling of one system by the closed forms: time to converge, and its batch size."""
    from reference_impls import inverse_law_model as forms

    law, system = forms.Law(500, 50_000), forms.System(1e-3, 8, 5e-2)
    learners = [2**k for k in range(1, 13)]
    left, right = figure.subplots(1, 2)
    left.plot(
        learners, [forms.strong_scaling_seconds(law, system, 256, p) for p in learners], label="strong, M = 256"
    )
    left.plot(learners, [forms.weak_scaling_seconds(law, system, 8, p) for p in learners], label="weak, M = 8 P")
    left.plot(learners, [forms.optimal_scaling_seconds(law, system, p) for p in learners], "--", label="optimal")
    right.plot(learners, [256] * len(learners))
    right.plot(learners, [8 * p for p in learners])
    right.plot(learners, [forms.optimal_batch(law, system, p) for p in learners], "--")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("learners P")
    left.set_ylabel("seconds to converge (model)")
    right.set_ylabel("mini-batch size M (examples)")
    left.legend(fontsize="small")
