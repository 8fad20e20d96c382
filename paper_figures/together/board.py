"""Our own question, which no paper asks: which method helps, all on one task at equal budget and equal tuning?

Every method has the same number of trials on a tuning seed, and what served best is trained on fresh seeds
(:mod:`paper_figures.together.experiments.study`). There are four scores: gradient evaluations to the target, rounds
to it (gradients that one learner computes after another), seconds to it at three links, and test error at the end of
the budget. Each is paired with SGD's by seed, as the mean log ratio with Student's t at 95%. A training that does
not reach the target counts as if it had at the end of its budget: its ratio is a lower bound, and is marked as one.

The interval covers seeds. It does not cover the luck of the trials, of which each method had one draw. A method is
said to take less or more than SGD where the difference stands at 5% after Holm over the studies. A lower bound can
only take more, and where seeds of both missed the target nothing is said: what cannot be said has a p value of 1.
Where no seed arrived, the ratio is the budget over SGD's arrivals, and is shown without the spread of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

from paper_figures.together.methods import Method, Trial, methods, study, trials
from paper_figures.together.seconds import LINKS, MIDDLE, TIMES, Costs
from paper_figures.together.tasks import CIFAR10, CIFAR100, DIGITS, MNIST, MULTI30K, Task
from suite.claims.intervals import Interval, holm, mean_interval, quantile, tail
from suite.papers.figure import Artifact, Axes, Figure, Frame, Groups, Missing, Quantity, RunSpec, pd
from suite.report.style import INK, MARKERS, PALETTE, plain_numbers

BASE = "sgd"  # to which the others are compared
LEVEL = 0.05  # of saying that any method differs where none does
# By whether all seeds of SGD reached the target, and all of the method's.
BOUNDS = {(True, True): "", (True, False): ">=", (False, True): "<=", (False, False): "<>"}
SCORES = ("gradients", "rounds", *LINKS, "test error")
PROFILES = {
    "together/mnist": {"smoke": DIGITS, "reduced": MNIST},
    "together/cifar10": {"reduced": CIFAR10},
    "together/cifar100": {"reduced": CIFAR100},
    "together/multi30k": {"reduced": MULTI30K},
}


class Ratio(NamedTuple):
    """A score relative to SGD's.

    Attributes:
        log: mean log ratio over seeds, with its interval.
        value: mean of the score itself.
        bound: ">=" where a seed missed the target, "<=" where one of SGD's did, "<>" where seeds of both did, so that
            the ratio could be any, "" elsewhere.
        says: "less" or "more" where the difference stands after Holm's correction over the methods, "" elsewhere.
        missed: whether no seed reached the target.
    """

    log: Interval
    value: float
    bound: str
    says: str = ""
    missed: bool = False

    @property
    def shown(self) -> Interval:
        """The mean log ratio with its interval, or alone where the interval is that of SGD's seeds."""
        return replace(self.log, low=self.log.mean, high=self.log.mean) if self.missed else self.log


@dataclass(frozen=True)
class Row:
    """A method on the board."""

    method: Method
    run: str  # the id of its study
    trial: Trial  # the chosen one
    edge: bool  # whether its rate is the lowest or the highest that was tried
    seeds: int
    reached: int  # seeds that came to the target
    ratios: dict[str, Ratio]  # by score


def runs(artifact: str, profile: str) -> Groups:
    """A study for each method; methods that make the same updates share one."""
    task = PROFILES[artifact].get(profile)
    return {} if task is None else {method.name: (spec_of(task, method),) for method in methods(task)}


def spec_of(task: Task, method: Method) -> RunSpec:
    """The study that a method's numbers are read from."""
    found = {each.name: each for each in methods(task)}
    return RunSpec("together/study", study(task, found.get(method.shares, method)))


def scores(task: Task, method: Method, frame: Frame, budget: int) -> pd.DataFrame:
    """A row for each fresh seed: whether it ``reached`` the target, and its scores by name.

    Raises Missing where the method's study is not stored.
    """
    run = frame.run(method.name)
    ends = run.curve("ends").set_index("seed")
    spent = ends["gradients"].clip(upper=budget)
    rounds = spent / method.learners
    table = {
        "reached": ends["gradients"] <= budget,
        "gradients": spent,
        "rounds": rounds,
        "test error": ends["test_error"].fillna(0.9),
    }
    chosen = run.spec.settings["study"]["trials"][run.results["choice"]]
    for link in LINKS:
        table[link] = rounds.map(partial(TIMES[method.time], Costs(task, method.learners, link, chosen)))
    return pd.DataFrame(table)


def ratio(ours: pd.DataFrame, base: pd.DataFrame, score: str) -> Ratio:
    """A score over SGD's, paired by seed."""
    logs = [math.log(a / b) for a, b in zip(ours[score], base[score], strict=True)]
    log, value = mean_interval(logs), float(ours[score].mean())
    if score == "test error":
        return Ratio(log, value, "")
    bound = BOUNDS[bool(base["reached"].all()), bool(ours["reached"].all())]
    return Ratio(log, value, bound, missed=not ours["reached"].any())


def board(artifact: str, frame: Frame, budget: int | None = None) -> list[Row]:
    """The rows whose studies are stored, at the task's budget or a smaller one.

    Raises Missing without SGD's study, to which all are compared.
    """
    task = PROFILES[artifact].get(frame.profile)
    if task is None:
        raise Missing(f"no runs of {artifact} at {frame.profile}")
    limit = min(budget or task.budget, task.budget)
    known = {method.name: method for method in methods(task)}
    base = scores(task, known[BASE], frame, limit)
    rows = [row(task, method, frame, base, limit) for method in known.values() if frame.whole(method.name)]
    for score in SCORES:
        decide(rows, score)
    return rows


def row(task: Task, method: Method, frame: Frame, base: pd.DataFrame, budget: int) -> Row:
    """One method's row, before anything is decided."""
    ours, drawn, run = scores(task, method, frame, budget), trials(task, method), frame.run(method.name)
    rates = [trial.rate / (1 if method.adaptive else 1 - trial.momentum) for trial in drawn]
    choice = run.results["choice"]
    ratios = {score: ratio(ours, base, score) for score in SCORES}
    edge = rates[choice] in (min(rates), max(rates))
    return Row(method, run.id, drawn[choice], edge, len(ours), int(ours["reached"].sum()), ratios)


def decide(rows: list[Row], score: str) -> None:
    """Say of a score where a method differs from SGD, at 5% after Holm over the studies of the board.

    Methods that share a study are in the family once: each is judged in the place of the other.
    """
    rivals = [each for each in rows if each.method.name != BASE]
    family = {each.run: p_value(each.ratios[score]) for each in rivals if not each.method.shares}
    for each in rivals:
        found = each.ratios[score]
        p_values = {**family, each.run: p_value(found)}
        stands = dict(zip(p_values, holm(list(p_values.values()), LEVEL), strict=True))
        if stands[each.run]:
            each.ratios[score] = found._replace(says="less" if found.log.mean < 0 else "more")


def p_value(found: Ratio) -> float:
    """Of no difference, by Student's t; 1 where the ratio is a bound that leaves its side open."""
    log = found.log
    if found.bound not in ("", "<=" if log.mean < 0 else ">="):
        return 1.0
    half = (log.high - log.low) / 2
    if not half:
        return float(not log.mean)
    return tail(log.freedom, abs(log.mean) / half * quantile(log.freedom, LEVEL))


def quantities(artifact: str, frame: Frame) -> dict[str, Quantity]:
    """Every method's log ratio to SGD, score by score."""
    task = PROFILES[artifact].get(frame.profile)
    if task is None:
        return {}
    base, *rivals = sorted(methods(task), key=lambda method: method.name != BASE)
    scored = cache(lambda method: scores(task, method, frame, task.budget))
    found = {}
    for method in rivals:
        groups, note = (method.name, base.name), partial(arrived, scored, method)
        for score in SCORES:
            value = lambda frame, method=method, score=score: ratio(scored(method), scored(base), score).shown
            found[f"{method.name} {score}".replace(" ", "-").replace("/", "p")] = Quantity(value, groups, note=note)
    return found


def arrived(scored: Callable[[Method], pd.DataFrame], method: Method, frame: Frame) -> str:
    reached = scored(method)["reached"]
    return f"log of the ratio to SGD's; {reached.sum()} of {len(reached)} seeds reached the target"


def table(artifact: str, frame: Frame, budget: int | None = None) -> pd.DataFrame:
    """The board as a table: a row per method and score.

    ``ratio``, ``low`` and ``high`` are to SGD, all three equal where no seed arrived; ``value`` is the mean of the
    score itself. ``bound`` is as in :class:`Ratio`, and ``says`` marks what stands after Holm's correction.
    """
    return pd.DataFrame(
        {
            "method": each.method.label,
            "learners": each.method.learners,
            "seeds": each.seeds,
            "reached": each.reached,
            "score": score,
            "value": found.value,
            "ratio": math.exp(found.log.mean),
            "low": math.exp(found.shown.low),
            "high": math.exp(found.shown.high),
            "bound": found.bound,
            "says": found.says,
            **each.trial._asdict(),
            "own parameter": each.method.own[0],
            "edge": each.edge,
        }
        for each in board(artifact, frame, budget)
        for score, found in each.ratios.items()
    )


STEM = 1.15  # of an arrow without an interval: the factor from the mark to its head
PANELS = {  # score -> what the panel says
    "gradients": "gradient evaluations",
    "rounds": "rounds",
    MIDDLE: f"seconds at {MIDDLE}, modelled",
}


def draw(artifact: str, frame: Frame, figure: Figure) -> None:
    """A line for each method and a panel for each score, all relative to SGD; filled where the difference stands."""
    found = board(artifact, frame)
    learners = sorted({each.method.learners for each in found})
    looks = {k: (PALETTE[i], MARKERS[i]) for i, k in enumerate(learners)}
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (score, said) in zip(panels, PANELS.items(), strict=True):
        axes.axvline(1, color=INK, linewidth=0.8, linestyle="-")
        for place, each in enumerate(found):
            draw_ratio(axes, place, each.ratios[score], *looks[each.method.learners])
        axes.set(xscale="log", xlabel=said)
        low, high = axes.get_xlim()  # ticks nearer to each other in a panel that spans less than a decade
        plain_numbers(axes.xaxis, (1, 2, 5) if high >= 10 * low else (0.7, 1, 1.5, 2, 3, 5), "{x:g}")
    some = ["" if each.reached == each.seeds else f" ({each.reached} of {each.seeds})" for each in found]
    panels[0].set_yticks(range(len(found)), [each.method.label + few for each, few in zip(found, some, strict=True)])
    panels[0].invert_yaxis()
    for k, (colour, marker) in looks.items():
        panels[0].plot([], [], marker, color=colour, label=f"{k} learner{'s' if k > 1 else ''}")
    said = (
        "relative to SGD with one learner; 95% over seeds; filled: stands after Holm\n"
        "(m of n): seeds that reach the target; arrow: a lower bound, since some do not; no interval where none does"
    )
    figure.legend(loc="outside upper center", ncols=len(looks), title=said)


def draw_ratio(axes: Axes, place: int, ratio: Ratio, colour: str, marker: str) -> None:
    """One ratio with its interval; an arrow to the side on which it has no bound."""
    at, low, high = (math.exp(value) for value in (ratio.log.mean, ratio.shown.low, ratio.shown.high))
    if ratio.missed:
        high *= STEM
    axes.plot([low, high], [place, place], color=colour, linestyle="-", linewidth=1.4)
    fill = "full" if ratio.says else "none"
    axes.plot(at, place, marker=marker, color=colour, linestyle="none", fillstyle=fill, markersize=5.5)
    for end, arrow in ((low, "<"), (high, ">")):
        if arrow in ratio.bound:
            axes.plot(end, place, marker=arrow, color=colour, linestyle="none", markersize=4)


def panel_of(name: str, what: str) -> Artifact:
    return Artifact(
        name,
        f"Our own question: all methods on {what} at equal budget",
        partial(runs, name),
        partial(draw, name),
        alt="A line for each method: gradient evaluations, rounds and modelled seconds to the target, relative to "
        "SGD with one learner, with intervals over seeds.",
        size=(8.0, 4.8),
        frame=partial(table, name),
        more=partial(quantities, name),
    )


PANEL = panel_of("together/mnist", "LeNet and MNIST")
QUICK = panel_of("together/cifar10", "CIFAR-10 quick")
RESNET = panel_of("together/cifar100", "ResNet-20 and CIFAR-100")
TRANSFORMER = panel_of("together/multi30k", "a transformer and Multi30k")
