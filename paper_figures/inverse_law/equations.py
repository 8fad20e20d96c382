"""Equations 1 to 5 and 8, the time to converge and its factors on one machine; and the translation network, Eq. 17.

Eq. 1: the time is updates times seconds per update. Eq. 2, the inverse law: N(M) = N_inf + alpha / M updates,
whatever the number of learners that share M. Eq. 3: seconds per update are computation plus communication, which for
an all-reduce is about constant in the learners. Eq. 4: computing takes constant time up to a knee M_T, and time in
proportion to M above it. Eq. 5 multiplies Eq. 2 by these, and Eq. 8 has one learner train fastest at the knee.
"""

from __future__ import annotations

import math
from functools import partial
from statistics import fmean
from typing import Any

from paper_figures.inverse_law import law
from paper_figures.inverse_law.drawing import logarithmic
from paper_figures.inverse_law.settings import BY_NAME, LOOP, Row, law_runs, loop_runs
from suite.batch_size.chosen import Knee, fit_knee
from suite.claims.intervals import Interval, log_interval, log_slope, mean_interval, over_ends
from suite.papers.figure import Artifact, Figure, Frame, Missing, np, pd, printed, sns
from suite.report.style import GRID, LINES, PALETTE

MNIST = tuple(
    BY_NAME[f"mnist_{name}"] for name in ("small-lr0p01", "medium-lr0p01", "medium-lr0p05", "evenodd-lr0p05")
)
LATENCIES = (0.0, 1e-6, 1e-5)  # seconds per message, from switched InfiniBand to a slow network stack
FLAT = 0.05  # exponent of seconds below the knee that counts as none, as for eq4/flat-below
BYTES, BANDWIDTH = 4 * 671_802, 1e9  # gradients of the large LeNet over a 1 GB/s link

EQ1 = Artifact("inverse_law/eq1", "Time to converge: updates times seconds per update", loop_runs)
EQ2 = Artifact("inverse_law/eq2", "The inverse law between updates and batch size", law_runs)
EQ3 = Artifact("inverse_law/eq3", "Seconds per update: computation plus communication")
EQ4 = Artifact("inverse_law/eq4", "Compute time with a knee", loop_runs)
EQ5 = Artifact("inverse_law/eq5", "Time to converge on P learners", loop_runs, size=(6.4, 5.0))
EQ8 = Artifact("inverse_law/eq8", "Best batch size of one learner", loop_runs)
EQ17 = Artifact("inverse_law/eq17", "The attentional translation network")


# ---------------------------------------------------------------- Eqs. 1 and 2


@EQ1.quantity("product", ["loop"])
def product(frame: Frame) -> Interval:
    """Mean seconds to converge over (mean updates x mean seconds per update), minus one, worst batch size."""
    errors = []
    for _, group in frame.run("loop").curve("runs").groupby("batch"):
        expected = group["updates"].mean() * (group["seconds"] / group["updates"]).mean()
        errors.append(group["seconds"].mean() / expected - 1)
    worst = max(errors, key=abs)
    return Interval(worst, worst, worst, len(errors))


def exponent(frame: Frame, *rows: Row) -> Interval:
    """One exponent over these curves."""
    return law.exponent(*(law.families(frame, row).values() for row in rows))


def told(frame: Frame, *rows: Row) -> str:
    return f"four of the five MNIST curves; {law.power_told(law.power(exponent(frame, *rows), law.TOLERANCE))}"


law.counted(EQ2, "law", MNIST, exponent, told, law.family_groups)
law.counted(EQ2, "floor", MNIST, law.floors, groups=law.family_groups)


@EQ2.quantity("variance", ["noise"])
def noise_slope(frame: Frame) -> Interval:
    """Exponent of the batch size in the variance of the gradient with its 95% interval from the fit."""
    table = frame.table("variance", "noise")
    return log_slope(table["batch"], table["variance"])


@EQ2.quantity("hardware-independent", ["learners"])
def between_learners(frame: Frame) -> float:
    """Largest difference in updates when one batch is split over P learners (float64, same batches)."""
    counts = [found[0] for found in frame["learners"]["crossed_training"]]
    if min(counts) < 1:
        raise ValueError(f"the split runs were censored: {counts} updates")
    return float(max(counts) - min(counts))


# ---------------------------------------------------------------- Eq. 3


@EQ3.quantity("allreduce-constant")
def growth(frame: Frame) -> Interval:
    """Log-log slope of an all-reduce's time over the learners; the interval covers the latencies."""
    many = [2**k for k in range(1, 9)]
    times = [[allreduce_seconds(learners, latency) for learners in many] for latency in LATENCIES]
    slopes = [float(np.polyfit(np.log(many), np.log(seconds), 1)[0]) for seconds in times]
    return over_ends(slopes[1], slopes)


def allreduce_seconds(learners: int, latency: float = 0.0) -> float:
    """Recursive halving and doubling among a power of two of learners.

    In log2(P) steps each learner halves what it is responsible for, sending the other half, and in as many the sums
    come back: 2 log2(P) messages, and 2 (P - 1) / P of the gradients over every link.
    """
    return 2 * math.log2(learners) * latency + 2 * (learners - 1) / learners * BYTES / BANDWIDTH


# ---------------------------------------------------------------- Eqs. 4, 5 and 8 on the closed loop


def around_knee(below: bool, frame: Frame) -> tuple[list[float], str]:
    """Log-log slopes of seconds per update over all batch sizes on one side of the fitted knee, by round."""
    wide = (
        frame.run("loop").curve("timings").pivot_table(index=["repeat", "round"], columns="batch", values="seconds")
    )
    sizes = [int(batch) for batch in wide.columns]
    knee = fit_knee({batch: float(wide[batch].median()) for batch in sizes}).knee
    part = [batch for batch in sizes if (batch <= knee if below else batch >= knee)]
    if len(part) < 2:
        raise Missing(f"lacks two batch sizes on either side of the knee at {knee:.0f}")
    slopes = np.polyfit(np.log(part), np.log(wide[part].to_numpy().T), 1)[0]
    return slopes.tolist(), f"M = {part[0]} to {part[-1]}, knee at {knee:.0f}"


def slope_around_knee(below: bool, frame: Frame) -> Interval:
    return mean_interval(around_knee(below, frame)[0])


for name, below in (("flat-below", True), ("linear-above", False)):
    add = EQ4.quantity(name, ["loop"], note=lambda frame, below=below: around_knee(below, frame)[1])
    add(partial(slope_around_knee, below))


def seed_seconds(frame: Frame) -> pd.Series:
    """Seconds to converge of every batch size and seed, medians over the repeats."""
    return frame.run("loop").curve("runs").groupby(["batch", "seed"])["seconds"].median()


def predicted_seconds(frame: Frame) -> dict[int, float]:
    batches = frame.run("loop").curve("batches")
    return dict(zip(batches["batch"], batches["predicted_seconds"], strict=True))


def held_out(frame: Frame) -> list[int]:
    """The batch sizes that the law was not fitted to."""
    return [int(b) for b in dict.fromkeys(seed_seconds(frame).index.get_level_values("batch")) if b not in COUNTED]


COUNTED = LOOP.settings["converge"]


@EQ5.quantity("accurate", ["loop"], note=lambda frame: f"M = {', '.join(map(str, held_out(frame)))}")
def accuracy(frame: Frame) -> list[Interval]:
    """Predicted over measured seconds to converge at every batch size that the law was not fitted to.

    Each batch size has its interval from its seeds; batch sizes are no repetitions of each other.
    """
    seconds, predicted = seed_seconds(frame), predicted_seconds(frame)
    return [log_interval([predicted[batch] / s for s in seconds[batch]]) for batch in held_out(frame)]


def mean_seconds(frame: Frame) -> dict[int, float]:
    """Seconds to converge by batch size, means over the seeds."""
    return {int(batch): fmean(part) for batch, part in seed_seconds(frame).groupby("batch")}


# Eq. 8 rests on Eq. 4, which does not describe a machine whose seconds grow below the knee.
@EQ8.quantity("measured", ["loop"], shown=lambda frame: slope_around_knee(True, frame).mean > FLAT)
def fastest_over_knee(frame: Frame) -> Interval:
    """The batch size that trained fastest over the fitted knee.

    Times within a tenth of the best cannot be told from it here; of those batch sizes the one nearest the knee
    counts.
    """
    seconds, knee = mean_seconds(frame), frame.one("loop")["closed_form"]
    best = min(seconds.values())
    ties = [batch for batch, each in seconds.items() if each <= 1.1 * best]
    found = min(ties, key=lambda batch: abs(math.log(batch / knee))) / knee
    return Interval(found, found, found, len(LOOP.settings["seeds"]))


# ---------------------------------------------------------------- drawing


def fitted_knee(frame: Frame) -> Knee:
    """Eq. 4 by the median seconds of each batch size."""
    table = frame.run("loop").curve("batches")
    return fit_knee(dict(zip((int(b) for b in table["batch"]), table["update_seconds"], strict=True)))


@EQ4.table
def table_of_updates(frame: Frame) -> pd.DataFrame:
    """A row per batch size, repeat and round: seconds of an update, and those of Eq. 4 fitted to the medians."""
    table = frame.run("loop").curve("timings")[["batch", "repeat", "round", "seconds"]]
    knee = fitted_knee(frame)
    return table.assign(fitted=[knee.seconds(batch) for batch in table["batch"]])


@EQ4.drawing
def draw_knee(frame: Frame, figure: Figure) -> None:
    """Seconds per update against batch size with the fitted knee."""
    table, knee = table_of_updates(frame), fitted_knee(frame)
    sizes = sorted(table["batch"].unique())
    grid = sorted({*np.geomspace(sizes[0], sizes[-1], 60), knee.knee})
    axes = figure.add_subplot()
    sns.lineplot(
        table, x="batch", y="seconds", estimator="median", errorbar=("pi", 90), marker="o", color=PALETTE[1],
        linestyle=LINES[1], label="measured on a CPU: median and middle 90% of the rounds", ax=axes,
    )  # fmt: skip
    axes.plot(grid, [knee.seconds(b) for b in grid], "-", color=PALETTE[0], label=f"Eq. 4, knee at {knee.knee:.0f}")
    axes.axvline(knee.knee, linewidth=0.8, linestyle=":", color=GRID)
    logarithmic(axes, sizes)
    axes.set(xlabel="mini-batch size M (examples)", ylabel="seconds per update")
    axes.legend(fontsize="small", loc="upper left")


@EQ5.table
def table_of_times(frame: Frame) -> pd.DataFrame:
    """A row per batch size and seed: measured seconds to converge (median of the repeats), predicted ones.

    ``counted`` is whether the law was fitted to the updates of this batch size.
    """
    rows = seed_seconds(frame).reset_index().drop(columns="seed")
    return rows.assign(predicted=rows["batch"].map(predicted_seconds(frame)), counted=rows["batch"].isin(COUNTED))


@EQ5.drawing
def draw_times(frame: Frame, figure: Figure) -> None:
    """Predicted and measured seconds to converge against batch size, and their ratio beside 1."""
    table, mean, chosen = table_of_times(frame), mean_seconds(frame), int(frame.one("loop")["chosen"])
    best = min(mean, key=lambda batch: mean[batch])
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    looks: dict[str, Any] = {"marker": "o", "color": PALETTE[1], "linestyle": LINES[1], "errorbar": ("pi", 100)}
    sns.lineplot(table, x="batch", y="seconds", label="measured: mean and range of the seeds", ax=axes, **looks)
    fitted_to = table[table["counted"]].groupby("batch")["seconds"].mean()
    circle: dict[str, Any] = {"markersize": 9, "markerfacecolor": "none", "color": PALETTE[1]}
    axes.plot(fitted_to.index, fitted_to, "o", label="updates of these were counted", **circle)
    sns.lineplot(
        table, x="batch", y="predicted", errorbar=None, color=PALETTE[0], label="predicted: N(M) T(M)", ax=axes
    )
    for panel in (axes, below):
        panel.axvline(chosen, linewidth=0.8, linestyle=":", color=GRID, label=f"picked: {chosen}")
    logarithmic(axes, sorted(mean))
    title = f"picked {chosen}, fastest {best}: {mean[chosen] / mean[best]:.2f} times the least time"
    axes.set(ylabel="seconds to converge", title=title)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(0.33, 1))
    sns.lineplot(table.assign(ratio=table["predicted"] / table["seconds"]), x="batch", y="ratio", ax=below, **looks)
    low, high = printed("inverse_law/eq5/accurate")
    below.axhspan(low, high, color=GRID, alpha=0.3, linewidth=0, label=f"rule: {low:g} to {high:g}")
    below.set(xlabel="mini-batch size M (examples)", ylabel="predicted /\nmeasured", ylim=(0, 2))
    handles, names = below.get_legend_handles_labels()
    below.legend(handles[-1:], names[-1:], fontsize="small", loc="lower right")
