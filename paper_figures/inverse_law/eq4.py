"""Equation 4: computing an update takes constant time up to a knee M_T, and time in proportion to M above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from paper_figures.inverse_law.plots import logarithmic
from paper_figures.inverse_law.settings import BATCHES, loop_runs
from suite.batch_size.knee import Knee, fit_knee
from suite.claims.estimate import exact, over_seeds
from suite.claims.intervals import mean_interval
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged, genuine
from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def measure_single_core(evidence: Evidence) -> Quantities:
    """The knee fitted to a core that takes one example after another, 1 ms each."""

    def seconds(batch: int, cores: int) -> float:
        loads = [0] * cores
        for example in range(batch):
            loads[example % cores] += 1
        return 1e-3 * max(loads)

    yield "single-core-knee", exact(fit_knee({batch: seconds(batch, 1) for batch in BATCHES}).knee)


def measure_knee(evidence: Evidence) -> Quantities:
    """Log-log slopes of seconds per update over all batch sizes below the fitted knee and all above, by round."""
    import numpy as np

    run = evidence.run("loop")
    table = run.curve("timings")
    wide = table.pivot_table(index=["repeat", "round"], columns="batch", values="seconds")
    sizes = [int(b) for b in wide.columns]
    knee = fit_knee({b: float(wide[b].median()) for b in sizes}).knee
    parts = {"flat-below": [b for b in sizes if b <= knee], "linear-above": [b for b in sizes if b >= knee]}
    for name, part in parts.items():
        if len(part) < 2:
            raise Missing(f"two batch sizes on either side of the knee at {knee:.0f}")
        slopes = np.polyfit(np.log(part), np.log(wide[part].to_numpy().T), 1)[0]
        found, note = mean_interval(slopes.tolist()), f"M = {part[0]} to {part[-1]}, knee at {knee:.0f}"
        yield name, over_seeds(found, [run.id], note)


@counterfeit("inverse_law/eq4/flat-below", "inverse_law/eq4/linear-above")
def root_of_the_batch(evidence: Evidence) -> Evidence:
    """Seconds grow as the square root of the batch size, with no knee."""
    return edited(evidence, lambda run: timed(run, lambda batch: batch**0.5), "loop")


@genuine("inverse_law/eq4/flat-below", "inverse_law/eq4/linear-above")
def a_knee(evidence: Evidence) -> Evidence:
    """Seconds are constant up to 32 examples and proportional to the batch above."""
    return edited(evidence, lambda run: timed(run, lambda batch: max(batch, 32)), "loop")


def timed(run: Run, seconds: Callable[[int], float]) -> Run:
    """The rounds of a run scattered about other seconds as they were about their medians."""
    table = run.curve("timings")
    usual = table.groupby("batch")["seconds"].transform("median")
    return forged(run, timings=table.assign(seconds=table["seconds"] / usual * table["batch"].map(seconds)))


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per batch size, repeat and round: seconds of an update, and those of Eq. 4 fitted to the medians."""
    run = evidence.run("loop")
    knee = fitted(run)
    table = run.curve("timings")[["batch", "repeat", "round", "seconds"]]
    return table.assign(fitted=[knee.seconds(batch) for batch in table["batch"]])


def fitted(run: Run) -> Knee:
    """Eq. 4 by the median seconds of each batch size."""
    table = run.curve("batches")
    return fit_knee(dict(zip((int(b) for b in table["batch"]), table["update_seconds"], strict=True)))


def draw(evidence: Evidence, figure: Figure) -> None:
    """Seconds per update by batch size: median and spread of the rounds, with Eq. 4 fitted."""
    import numpy as np
    import seaborn as sns

    from suite.report.style import GRID, LINES, PALETTE

    table, knee = frame(evidence), fitted(evidence.run("loop"))
    sizes = sorted(table["batch"].unique())
    grid = sorted({*np.geomspace(sizes[0], sizes[-1], 60), knee.knee})
    axes = figure.add_subplot()
    sns.lineplot(
        table, x="batch", y="seconds", estimator="median", errorbar=("pi", 90), marker="o", color=PALETTE[1],
        linestyle=LINES[1], label="measured on this CPU: median, 90% of rounds", ax=axes,
    )  # fmt: skip
    axes.plot(grid, [knee.seconds(b) for b in grid], "-", color=PALETTE[0], label=f"Eq. 4, knee at {knee.knee:.0f}")
    axes.axvline(knee.knee, linewidth=0.8, linestyle=":", color=GRID)
    logarithmic(axes, sizes)
    axes.set_xlabel("mini-batch size M (examples)")
    axes.set_ylabel("seconds per update")
    axes.legend(fontsize="small", loc="upper left")


ARTIFACTS = (
    Artifact(
        "inverse_law/eq4",
        "Compute time with a knee",
        loop_runs,
        (measure_single_core, measure_knee),
        draw=draw,
        frame=frame,
        alt="Seconds per update against batch size with the fitted knee.",
    ),
)
