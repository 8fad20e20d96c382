"""Eqs. 15, 19 and 21: the batch size and the variance of a gradient, the time of an update, the loss that is left."""

from __future__ import annotations

import math
from itertools import pairwise

from paper_figures.isgd import settings
from paper_figures.isgd.fig8 import NAMES
from paper_figures.isgd.settings import DIGITS, MNIST, NETWORKS, train
from suite.claims.intervals import Interval, log_slope, mean_interval, paired_difference
from suite.papers.figure import Artifact, Figure, Frame, Groups, RunSpec, np, pd
from suite.report.style import plain_numbers

VARIANCE = RunSpec("isgd/variance", {**DIGITS, "batches": (4, 8, 16, 32, 64, 128), "draws": 300, "warm": 60})
BOUND = RunSpec("isgd/bound", {"d": 20, "examples": 512, "batches": (1, 4, 16, 64), "updates": 2048, "runs": 128})
SIZES = (256, 64, 16)
TIMED = [f"{kind} {processes}" for kind in ("mnist", "cifar") for processes in (2, 4)]


def eq15_runs(profile: str) -> Groups:
    """The variance at several batch sizes, and the iterations of SGD until 4% test error (12% on digits) at three."""
    base, seeds, below, limit, every = {
        "smoke": (DIGITS, 3, 0.12, 600, 5),
        "reduced": (MNIST, 10, 0.04, 3000, 20),
        "paper": (MNIST, 10, 0.04, 3000, 5),
    }[profile]
    stop = {"metric": "test_error", "below": below}
    groups: dict[str, tuple[RunSpec, ...]] = {"variance": (VARIANCE,)}
    for size in reversed(SIZES):
        groups[f"b{size}"] = tuple(
            train({**base, "batch": size}, s, algorithm={"name": "sgd"}, updates=limit, every=every, stop=stop)
            for s in range(seeds)
        )
    return groups


EQ15 = Artifact("isgd/eq15", "Expected one-step change of squared distance to the optimum", eq15_runs)
EQ19 = Artifact("isgd/eq19", "Time of one update against batch size", settings.update_times, size=(7.4, 3.4))
EQ21 = Artifact("isgd/eq21", "Loss bound after T updates at batch size nb", lambda profile: {"bound": (BOUND,)})


# ---------------------------------------------------------------- Eq. 15: gradient noise and iterations


@EQ15.quantity("variance-inverse-batch", ["variance"])
def slope(frame: Frame) -> Interval:
    """Log-log slope of the variance of the batch gradient over the batch size, standard error from the fit."""
    table = frame.table("variance", "variance")
    return log_slope(table["batch"], table["variance"])


def iterations(frame: Frame) -> dict[int, list[float]]:
    """Iterations to the target by batch size, a value per seed; not a number where a run was censored."""
    found = {}
    for size in SIZES:
        runs = frame.runs_of(f"b{size}")
        found[size] = [float(run.results["updates"]) if run.status == "finished" else math.nan for run in runs]
    return found


def mean_iterations(frame: Frame) -> str:
    means = {size: sum(values) / len(values) for size, values in iterations(frame).items()}
    if any(map(math.isnan, means.values())):
        return "a run never reached the target (censored)"
    return "mean iterations: " + ", ".join(f"batch {size} {mean:.0f}" for size, mean in means.items())


@EQ15.quantity("fewer-iterations-large-batch", [f"b{size}" for size in SIZES], note=mean_iterations)
def fewer_iterations(frame: Frame) -> list[Interval]:
    """Log ratio of the iterations to one test error at one rate, from each batch size to the next smaller one."""
    logs = [[math.log(n) for n in values] for values in iterations(frame).values()]
    if any(math.isnan(log) for values in logs for log in values):
        return [Interval(math.nan, math.nan, math.nan, 1)] * 2
    return [paired_difference(large, small) for large, small in pairwise(logs)]


@EQ15.drawing
def draw_variance(frame: Frame, figure: Figure) -> None:
    """Variance of the batch gradient against batch size on log axes, on a line of slope -1."""
    table = frame.needed(["variance"]).table("variance")
    axes, first = figure.subplots(), table.iloc[0]
    axes.plot(table["batch"], table["variance"], "o", label="measured")
    axes.plot(table["batch"], first["variance"] * first["batch"] / table["batch"], "--", label="slope \u22121")
    axes.set(xscale="log", yscale="log", xlabel="batch size (images)", ylabel="variance of the batch gradient")
    axes.set_xticks(table["batch"], map(str, table["batch"]))
    axes.xaxis.minorticks_off()
    plain_numbers(axes.yaxis)
    axes.legend()


# ---------------------------------------------------------------- Eq. 19: time of an update on several processes


def line(batches: pd.Series, seconds: pd.Series) -> tuple[float, float, float]:
    """Slope in seconds per image, intercept in seconds, and share of the variance explained, of a fitted line."""
    across, both, _, along = np.cov(batches, seconds, bias=True).flat
    slope = float(both / across)
    return slope, float(np.mean(seconds) - slope * np.mean(batches)), float(both**2 / (across * along))


def medians(frame: Frame, group: str) -> pd.DataFrame:
    """Seconds of an update and of its sum by batch size, medians over the repetitions."""
    return frame.table("updates", group).groupby("batch")[["seconds", "communicated"]].median()


def fitted(frame: Frame) -> str:
    """The constants of Eq. 19 of each network and number of processes."""
    told = []
    for group in TIMED:
        middle, (kind, processes) = medians(frame, group), group.split()
        per_image, constant, _ = line(middle.index, middle["seconds"])
        told.append(
            f"{NETWORKS[kind]} on {processes} processes: C1 {1 / per_image:.3g} images/s, C2 {1e3 * constant:.2g} ms "
            f"(the sum alone {1e3 * middle['communicated'].median():.2g} ms)"
        )
    return "; ".join(told)


@EQ19.quantity("linear", TIMED, note=fitted)
def linear(frame: Frame) -> Interval:
    """How much of the time of an update a line explains in each repetition: the case where it is least."""
    found = []
    for group in TIMED:
        repeats = [rows for _, rows in frame.table("updates", group).groupby("repeat")]
        found.append(mean_interval([line(rows["batch"], rows["seconds"])[2] for rows in repeats]))
    return min(found, key=lambda interval: interval.mean)


@EQ19.drawing
def draw_times(frame: Frame, figure: Figure) -> None:
    """Time of one update of several processes against batch size, with a fitted line, for two networks."""
    groups = list(frame.groups)
    part, kinds = frame.needed(groups), dict.fromkeys(group.split()[0] for group in groups)
    every = np.ravel(figure.subplots(1, len(kinds)))
    for axes, kind in zip(every, kinds, strict=True):
        for position, group in enumerate(each for each in groups if each.startswith(kind)):
            middle, color = medians(part, group), f"C{position}"
            slope, constant, _ = line(middle.index, middle["seconds"])
            label = f"{group.split()[1]} processes"
            axes.plot(middle.index, 1e3 * middle["seconds"], "o", color=color, markersize=3, label=label)
            axes.plot(middle.index, 1e3 * (slope * middle.index + constant), color=color, linewidth=0.9)
            axes.plot(middle.index, 1e3 * middle["communicated"], ":", color=color, linewidth=0.9)
        axes.set(title=NAMES[kind], xlabel="batch size (images)")
        axes.legend(title="line: Eq. 19 fitted; dotted: exchange alone")
        axes.set_ylim(bottom=0)
    every[0].set_ylabel("time of an update (ms), on a CPU")


# ---------------------------------------------------------------- Eq. 21: the loss after T updates


def with_bound(frame: Frame) -> pd.DataFrame:
    """Excess loss by batch and updates, with 1/sqrt(b T) + 1/T and the ratio of the two."""
    table = frame.table("bound", "bound")
    bound = 1 / (table["batch"] * table["updates"]) ** 0.5 + 1 / table["updates"]
    return table.assign(bound=bound, relative=table["excess"] / bound)


@EQ21.quantity("bound", ["bound"], note="rate 1/sqrt(T) averaged SGD on a noisy quadratic")
def outgrown(frame: Frame) -> list[float]:
    """By how much the excess outgrows one constant times the bound: with the updates, and with the batch size."""
    found = with_bound(frame).pivot(index="updates", columns="batch", values="relative")
    earlier, later = found.iloc[: len(found) // 2], found.iloc[len(found) // 2 :]
    return [later.max().max() / earlier.max().max(), found.iloc[:, 1:].max().max() / found.iloc[:, 0].max()]


@EQ21.drawing
def draw_bound(frame: Frame, figure: Figure) -> None:
    """Excess loss against updates for four batch sizes, below the scaled bound."""
    axes = figure.subplots()
    for position, (batch, rows) in enumerate(with_bound(frame.needed(["bound"])).groupby("batch")):
        axes.plot(rows["updates"], rows["excess"], "o-", markersize=3, color=f"C{position}", label=f"batch {batch}")
        scaled = rows["relative"].max() * rows["bound"]
        axes.plot(rows["updates"], scaled, "--", linewidth=0.8, color=f"C{position}")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="updates T", ylabel="excess loss (dashed: bound of Eq. 21, scaled)")
    axes.legend(fontsize="small")
