"""Our own question, which no paper asks: which method helps, all on one task at equal budget and equal tuning?

Every method has the same number of trials on a tuning seed, and what served best is trained on fresh seeds
(:mod:`paper_figures.together.experiments.study`). There are four scores: gradient evaluations to the target, rounds
to it (gradients that one learner computes after another), seconds to it at three links, and test error at the end of
the budget. Each is paired with SGD's by seed, as the mean log ratio with Student's t at 95%. A training that does
not reach the target counts as if it had at the end of its budget: its ratio is a lower bound, and is marked as one.

The interval covers seeds. It does not cover the luck of the trials, of which each method had one draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from paper_figures.together.methods import Method, Trial, methods, study, trials
from paper_figures.together.seconds import LINKS, TIMES, Costs
from paper_figures.together.tasks import CIFAR10, DIGITS, MNIST, Task
from suite.claims.intervals import Interval, mean_interval
from suite.claims.measured import over_seeds
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BASE = "sgd"  # to which the others are compared
SCORES = ("gradients", "rounds", *LINKS, "test error")
PROFILES = {"together/mnist": {"smoke": DIGITS, "reduced": MNIST}, "together/cifar10": {"reduced": CIFAR10}}


class Ratio(NamedTuple):
    """A score relative to SGD's: the mean log ratio over seeds, and whether it is a lower bound."""

    log: Interval
    bound: bool

    def __str__(self) -> str:
        if math.isinf(self.log.high):
            return f"{math.exp(self.log.mean):.2f}"
        low, middle, high = (math.exp(value) for value in (self.log.low, self.log.mean, self.log.high))
        return f"{'≥ ' if self.bound else ''}{middle:.2f} [{low:.2f}, {high:.2f}]"


@dataclass(frozen=True)
class Row:
    """A method on the board."""

    method: Method
    run: Run
    trial: Trial  # the chosen one
    edge: bool  # whether its rate is the lowest or the highest that was tried
    seeds: int
    reached: int  # seeds that came to the target
    ratios: dict[str, Ratio]  # by score
    test_error: Interval  # share of test images at the end of the budget


def task_of(artifact: str, profile: str) -> Task | None:
    return PROFILES[artifact].get(profile)


def runs(artifact: str, profile: str) -> Groups:
    """A study for each method; methods that make the same updates share one."""
    task = task_of(artifact, profile)
    return {} if task is None else {method.name: (spec_of(task, method),) for method in methods(task)}


def spec_of(task: Task, method: Method) -> RunSpec:
    """The study that a method's numbers are read from."""
    found = {each.name: each for each in methods(task)}
    return RunSpec("together/study", study(task, found.get(method.shares, method)))


def scores(task: Task, method: Method, run: Run, budget: int) -> pd.DataFrame:
    """A row for each fresh seed: whether it ``reached`` the target, and its scores by name."""
    ends = run.curve("ends").set_index("seed")
    reached = ends["gradients"] <= budget
    spent = ends["gradients"].clip(upper=budget)
    rounds = spent / method.learners
    chosen = run.spec.settings["study"]["trials"][run.results["choice"]]
    table = {"reached": reached, "gradients": spent, "rounds": rounds, "test error": ends["test_error"].fillna(0.9)}
    for link in LINKS:
        costs = Costs(task, method.learners, link, chosen)
        table[link] = rounds.map(partial(TIMES[method.time], costs))
    import pandas as pd

    return pd.DataFrame(table)


def ratio(ours: pd.DataFrame, base: pd.DataFrame, score: str) -> Ratio:
    """A score over SGD's, paired by seed."""
    logs = [math.log(a / b) for a, b in zip(ours[score], base[score], strict=True)]
    return Ratio(mean_interval(logs), score != "test error" and not bool(ours["reached"].all()))


def board(evidence: Evidence, artifact: str, budget: int | None = None) -> list[Row]:
    """The rows whose studies are stored. Raises Missing without SGD's, to which all are compared."""
    task = task_of(artifact, evidence.profile)
    if task is None:
        raise Missing(f"no runs of {artifact} at {evidence.profile}")
    limit = min(budget or task.budget, task.budget)
    known = {method.name: method for method in methods(task)}
    base = scores(task, known[BASE], evidence.run(BASE), limit)
    return [row(task, method, run, base, limit) for method, run in stored(evidence, task)]


def stored(evidence: Evidence, task: Task) -> Iterator[tuple[Method, Run]]:
    for method in methods(task):
        try:
            yield method, evidence.run(method.name)
        except Missing:
            continue


def row(task: Task, method: Method, run: Run, base: pd.DataFrame, budget: int) -> Row:
    """One method's row."""
    ours, drawn = scores(task, method, run, budget), trials(task, method)
    chosen = drawn[run.results["choice"]]
    rates = sorted(trial.rate / (1 if method.adaptive else 1 - trial.momentum) for trial in drawn)
    mine = chosen.rate / (1 if method.adaptive else 1 - chosen.momentum)
    return Row(
        method,
        run,
        chosen,
        mine in (rates[0], rates[-1]),
        len(ours),
        int(ours["reached"].sum()),
        {score: ratio(ours, base, score) for score in SCORES},
        mean_interval(list(ours["test error"])),
    )


def measure(artifact: str, evidence: Evidence) -> Quantities:
    """Every method's log ratio to SGD, score by score."""
    for each in board(evidence, artifact):
        if each.method.name == BASE:
            continue
        for score, found in each.ratios.items():
            note = f"{each.reached} of {each.seeds} seeds reached the target"
            name = f"{each.method.name} {score}".replace(" ", "-").replace("/", "p")
            yield name, over_seeds(found.log, [each.run.id, evidence.run(BASE).id], note)


def frame(artifact: str, evidence: Evidence, budget: int | None = None) -> pd.DataFrame:
    """The board as a table: a row per method."""
    import pandas as pd

    return pd.DataFrame([cells(each) for each in board(evidence, artifact, budget)])


def cells(each: Row) -> dict[str, Any]:
    """A row in words."""
    method, trial = each.method, each.trial
    own = "" if method.own[0] == "none" else f", {method.own[0]} {trial.own:g}"
    one = method.name == BASE
    said = {score: "1" if one else str(each.ratios[score]) for score in SCORES if score != "test error"}
    error = each.test_error
    return {
        "method": method.label,
        "learners": method.learners,
        "reached": f"{each.reached} of {each.seeds}",
        **said,
        "test error %": f"{100 * error.mean:.2f} [{100 * error.low:.2f}, {100 * error.high:.2f}]",
        "chosen": f"rate {trial.rate:g}{'*' if each.edge else ''}, momentum {trial.momentum:g}{own}",
    }


def draw(artifact: str, evidence: Evidence, figure: Figure) -> None:
    """Rounds against gradients to the target, both over SGD's, with intervals; equal rounds lie on a level line."""
    from suite.report.style import INK, MARKERS, PALETTE

    axes = figure.subplots()
    found = [each for each in board(evidence, artifact) if not each.method.shares]
    looks = {k: (MARKERS[i], PALETTE[i]) for i, k in enumerate(sorted({each.method.learners for each in found}))}
    for each in found:
        x, y = each.ratios["gradients"], each.ratios["rounds"]
        marker, colour = looks[each.method.learners]
        at = math.exp(x.log.mean), math.exp(y.log.mean)
        if each.method.name != BASE:
            xerr, yerr = (
                [[v - math.exp(r.log.low)], [math.exp(r.log.high) - v]] for v, r in zip(at, (x, y), strict=True)
            )
            axes.errorbar(*at, xerr=xerr, yerr=yerr, color=colour, linestyle="none", linewidth=1, capsize=2)
        axes.plot(*at, marker=marker, color=colour, linestyle="none", fillstyle="none" if x.bound else "full")
        axes.annotate(label_of(each), at, xytext=(6, 4), textcoords="offset points", fontsize=7.5, color=INK)
    for k, (marker, colour) in looks.items():
        axes.plot([], [], marker=marker, color=colour, linestyle="none", label=f"{k} learner{'s' if k > 1 else ''}")
    axes.axhline(1, color=INK, linewidth=0.8, linestyle="-")
    axes.axvline(1, color=INK, linewidth=0.8, linestyle="-")
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("gradient evaluations to the target / SGD's (fewer: less work)")
    axes.set_ylabel("rounds to the target / SGD's (fewer: sooner)")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(loc="upper left")


def label_of(each: Row) -> str:
    """A method's name, and how many seeds reached the target where some did not."""
    return each.method.label + ("" if each.reached == each.seeds else f" ({each.reached} of {each.seeds})")


def artifact_of(name: str, title: str) -> Artifact:
    return Artifact(
        name,
        title,
        partial(runs, name),
        (partial(measure, name),),
        partial(draw, name),
        "Rounds against gradient evaluations to the target, both relative to SGD with one learner, a point with two "
        "intervals for each method.",
        (7.0, 4.8),
        partial(frame, name),
    )


ARTIFACTS = (
    artifact_of("together/mnist", "Our own question: all methods on LeNet and MNIST at equal budget"),
    artifact_of("together/cifar10", "Our own question: all methods on CIFAR-10 quick at equal budget"),
)
