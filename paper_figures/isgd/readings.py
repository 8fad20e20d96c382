"""What stored runs say, where several artifacts ask the same of them.

First the pairs of SGD and ISGD (Fig. 5, Algorithm 1), then ISGD watched update by update (Fig. 2, Algorithms 1 and
2, Eq. 10 to 12), on several workers (Fig. 4, Algorithm 1), and times of gradients (Figs. 7 and 8, Eq. 19).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from paper_figures.isgd.settings import MARGINS
from suite.claims.estimate import Estimate, exact, interval, over_seeds
from suite.claims.intervals import at_least, mean_interval
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Evidence, Missing, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged, genuine, replaced
from suite.runs.store import Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

# accuracies marked on the axes of Figs. 5a and 5b, and what serves for other data
TICKS = {"mnist": (0.97, 0.975, 0.98, 0.985, 0.99), "cifar10": (0.60, 0.65, 0.70, 0.72, 0.73, 0.74, 0.75)}
COARSE_TICKS = (0.8, 0.85, 0.9, 0.95)


def embedded(data: str) -> bool:
    """Whether a data set is one of ours, whose numbers are no quantities of the paper's."""
    return DATASETS[data].embedded


def extremes(values: Iterable[float], *, runs: Iterable[str] = (), note: str = "") -> Estimate:
    """The middle of many values with the smallest and the largest."""
    ranked = sorted(map(float, values))
    return interval(ranked[len(ranked) // 2], ranked[0], ranked[-1], n=len(ranked), runs=runs, note=note)


class Pairs(NamedTuple):
    """SGD and ISGD runs of the same seeds, the data's name, and all run ids."""

    sgd: tuple[Run, ...]
    isgd: tuple[Run, ...]
    data: str
    ids: list[str]


def pairs(evidence: Evidence) -> Pairs:
    sgd, isgd = evidence.runs("sgd"), evidence.runs("isgd")
    assert [r.spec.seed for r in sgd] == [r.spec.seed for r in isgd]
    return Pairs(sgd, isgd, sgd[0].spec.settings["data"]["name"], [r.id for r in (*sgd, *isgd)])


def evaluations(run: Run, name: str) -> np.ndarray:
    """One column of a run's tests."""
    column: np.ndarray = run.curve("evaluations")[name].to_numpy()
    return column


def first_below(run: Run, error: float, column: str = "update") -> float:
    """Gradient evaluations (or seconds) at the first test with at most this error; infinite if there is none."""
    table = run.curve("evaluations")
    reached = table.loc[at_least(-table["test_error"], -error), column]
    return float(reached.iloc[0]) if len(reached) else float("inf")


def log_speed(sgd: Sequence[Run], isgd: Sequence[Run], error: float, column: str = "update") -> list[float]:
    """Per seed: log(updates of SGD / updates of ISGD), or of seconds, to the first test at ``error``.

    Raises Missing when a run never got there: a censored pair would bias the mean.
    """
    times = [[first_below(run, error, column) for run in pair] for pair in zip(sgd, isgd, strict=True)]
    steps = [math.log(plain / treated) for plain, treated in times]
    if not all(math.isfinite(step) for step in steps):
        raise Missing(f"a run that reaches {error:.0%} test error in every seed")
    return steps


def common_error(runs: Sequence[Run], data: str) -> float:
    """Test error at the highest tick of the figure's accuracy axis that every run reaches.

    In the first epoch the methods are the same by construction, so a low accuracy cannot tell them apart.
    """
    reached = 1 - max(float(evaluations(run, "test_error").min()) for run in runs)
    ticks = [tick for tick in TICKS.get(data, COARSE_TICKS) if at_least(reached, tick)]
    if not ticks:
        raise Missing("an accuracy on the figure's axis that every run reaches")
    return 1 - max(ticks)


def speed(evidence: Evidence) -> Quantities:
    """Figs. 5a, 5b and the headline: who reaches an accuracy first, in gradient evaluations."""
    sgd, isgd, data, ids = pairs(evidence)
    error = common_error((*sgd, *isgd), data)
    steps = log_speed(sgd, isgd, error)
    note = f"until {1 - error:.1%} test accuracy, {len(steps)} paired seeds"
    yield "slightly-faster", over_seeds(mean_interval(steps), ids, note, proxy=embedded(data))


def error_leads(sgd: Sequence[Run], isgd: Sequence[Run]) -> list[float]:
    """Per seed: SGD's training error minus ISGD's, averaged over the tests of the second half of the run."""
    leads = []
    for a, b in zip(sgd, isgd, strict=True):
        lead = evaluations(a, "train_error") - evaluations(b, "train_error")
        leads.append(float(lead[len(lead) // 2 :].mean()))
    return leads


SPEED = ("isgd/fig5a/slightly-faster",)
LEVELS = ("isgd/fig5a/isgd-at-least-sgd", "isgd/fig5b/isgd-above-sgd")
TRAINING_ERRORS = ("isgd/fig5d/isgd-lower", "isgd/fig5e/isgd-lower")
HALF = 0.5  # of SGD's error: a difference that no spread between seeds hides


def shifted(evidence: Evidence, group: str, share: float) -> Evidence:
    """The errors of ISGD's runs moved below SGD's by a share of them, on average; each seed keeps its own course."""
    sgd, isgd = evidence.runs("sgd"), evidence.runs(group)
    means = {
        name: [sum(evaluations(run, name) for run in runs) / len(runs) for runs in (sgd, isgd)]
        for name in ("test_error", "train_error")
    }
    moved = {}
    for run in isgd:
        table = run.curve("evaluations")
        columns = {name: table[name] - ours + (1 - share) * plain for name, (plain, ours) in means.items()}
        moved[run.id] = forged(run, evaluations=table.assign(**{n: c.clip(0.0, 1.0) for n, c in columns.items()}))
    return replaced(evidence, moved)


@counterfeit(*SPEED, *LEVELS, *TRAINING_ERRORS)
def isgd_behind(evidence: Evidence) -> Evidence:
    """ISGD's errors are above SGD's throughout."""
    return shifted(evidence, "isgd", -HALF)


@genuine(*SPEED, *LEVELS, *TRAINING_ERRORS)
def isgd_ahead(evidence: Evidence) -> Evidence:
    """ISGD's errors are below SGD's throughout."""
    return shifted(evidence, "isgd", HALF)


def smoothed(evidence: Evidence, group: str) -> Evidence:
    """A group whose test error never rises."""

    def steady(run: Run) -> Run:
        table = run.curve("evaluations")
        return forged(run, evaluations=table.assign(test_error=table["test_error"].cummin()))

    return edited(evidence, steady, group)


@counterfeit("isgd/fig5a/sgd-dent")
def sgd_steady(evidence: Evidence) -> Evidence:
    return smoothed(evidence, "sgd")


@genuine("isgd/fig5a/sgd-dent")
def isgd_steady(evidence: Evidence) -> Evidence:
    return smoothed(evidence, "isgd")


def every_margin(evidence: Evidence) -> list[Run]:
    return [run for margin in MARGINS for run in evidence.runs(f"margin {margin:g}")]


def run_ids(runs: Iterable[Run]) -> list[str]:
    return [run.id for run in runs]


def iterations(run: Run) -> pd.DataFrame:
    """One row per iteration of Algorithm 1, with ``chased``, its steps of Algorithm 2."""
    table = run.curve("updates")
    rows = table[~table["chasing"]].copy()
    rows["chased"] = table["chasing"].groupby(table["iteration"]).sum().reindex(rows["iteration"]).to_numpy()
    return rows


def windows(losses: np.ndarray, n: int) -> np.ndarray:
    """Losses [T - n + 1, n] of the last n iterations, for iterations n - 1, n, ..."""
    import numpy as np

    return np.lib.stride_tricks.sliding_window_view(losses, n)


def limit_statistics(evidence: Evidence) -> Quantities:
    """The stored limit in terms of the stored losses: how many deviations above the mean, and with which divisor."""
    runs = evidence.runs("margin 3")
    scores: list[float] = []
    freedom: list[float] = []
    for run in runs:
        rows, n = iterations(run), run.results["batches"]
        window = windows(rows["loss"].to_numpy(), n)[1:]
        above = rows["limit"].to_numpy()[n:] - window.mean(1)
        scores += list(above / window.std(1))
        squares = ((window - window.mean(1, keepdims=True)) ** 2).sum(1)
        freedom += list(n - squares / (above / 3) ** 2)
    note = f"{len(scores)} limits"
    ends = interval(float(scores[0]), min(scores), max(scores), n=len(scores), runs=run_ids(runs), note=note)
    yield "three-sigma", ends
    worst = max(freedom, key=abs)
    yield "population-sd", exact(worst, runs=run_ids(runs), note=f"largest of {len(freedom)}")


def small_steps(evidence: Evidence) -> Quantities:
    """Eq. 11 and 12 against automatic differentiation, and five small steps down Eq. 11."""
    run = evidence.run("subproblem")
    results = run.results
    decrease, closer = results["decrease"], results["closer"]
    note = f"{len(closer)} undertrained batches, {len(decrease)} steps"
    yield "lowers-loss", extremes(decrease, runs=[run.id], note=note)
    yield "small-move", extremes(closer, runs=[run.id], note=note)
    yield "zero-at-limit", exact((results["at_solution"], results["elsewhere"]), runs=[run.id])
    yield "matches-autodiff", exact(results["derivative"], runs=[run.id], note=note)


def data_parallelism(evidence: Evidence) -> Quantities:
    """Claims of section 4, over all worker counts of the stored run."""
    run = evidence.run("parallel")
    results = run.results
    several = f"on {', '.join(map(str, results['workers']))} workers"
    yield "equal-split", exact(max(results["uneven"]), runs=[run.id], note=several)
    worst = (max(results["gradient"]), max(results["loss"]))
    yield "sum-equivalence", exact(worst, runs=[run.id], note=several)
    yield "tree-steps", exact(results["rounds"], runs=[run.id], note=several)
    note = f"{several}, after each of {run.spec.settings['updates']} updates"
    yield "replicas-equal", exact(max(results["replicas"]), runs=[run.id], note=note)
    note = f"{note}, {results['chases'][-1]} of which were steps of Algorithm 2"
    yield "data-parallel-equals-serial", exact(max(results["iterates"]), runs=[run.id], note=note)


@counterfeit(
    "isgd/fig4/equal-split",
    "isgd/fig4/sum-equivalence",
    "isgd/fig4/replicas-equal",
    "isgd/alg1/data-parallel-equals-serial",
)
def last_worker_astray(evidence: Evidence) -> Evidence:
    """With the most workers one has an image too few, sums that lack it, and weights of its own."""
    amounts = {"uneven": 1, "gradient": 1e-9, "loss": 1e-9, "replicas": 1e-12, "iterates": 1e-9}

    def astray(run: Run) -> Run:
        results = {name: run.results[name] for name in amounts}
        return forged(run, {name: [*values[:-1], values[-1] + amounts[name]] for name, values in results.items()})

    return edited(evidence, astray, "parallel")


class Latency(NamedTuple):
    """Times of one network's gradients."""

    batches: Any  # [s] images
    seconds: Any  # [s] median per gradient
    run: str  # id

    @property
    def per_image(self) -> Any:
        """Seconds [s]."""
        return self.seconds / self.batches


def latency(evidence: Evidence, kind: str) -> Latency:
    """The times of a network, named as in ``settings.NETWORKS``. Raises Missing where it was not timed."""
    run = evidence.run(kind)
    frame = run.curve("latency").groupby("batch")["seconds"]
    median = frame.median()
    return Latency(median.index.to_numpy(), median.to_numpy(), run.id)
