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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

from paper_figures.together.methods import Method, methods, study, trials
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
        missed: whether no seed reached the target.
    """

    log: Interval
    value: float
    bound: str
    missed: bool = False

    @property
    def shown(self) -> Interval:
        """The mean log ratio with its interval, or alone where the interval is that of SGD's seeds."""
        return replace(self.log, low=self.log.mean, high=self.log.mean) if self.missed else self.log


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


def decided(methods: Sequence[Method], ratios: Mapping[str, Ratio]) -> dict[str, str]:
    """By name "less" or "more" where a method differs from SGD, at 5% after Holm over the studies of the board.

    Methods that share a study are in the family once: each is judged in the place of the other.
    """
    rivals = [method for method in methods if method.name != BASE]
    family = {method.name: p_value(ratios[method.name]) for method in rivals if not method.shares}
    said = {}
    for method in rivals:
        found, study = ratios[method.name], method.shares or method.name
        p_values = {**family, study: p_value(found)}
        stands = dict(zip(p_values, holm(list(p_values.values()), LEVEL), strict=True))
        if stands[study]:
            said[method.name] = "less" if found.log.mean < 0 else "more"
    return said


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
    """The board: a row per method whose study is stored and score, at the task's budget or a smaller one.

    ``ratio``, ``low`` and ``high`` are to SGD, all three equal where no seed arrived; ``value`` is the mean of the
    score itself. ``bound`` is as in :class:`Ratio`, and ``says`` marks what stands after Holm's correction. ``rate``,
    ``momentum`` and ``own`` are those of the chosen trial; ``edge`` is whether its rate is the lowest or the highest
    that was tried. Raises Missing without SGD's study, to which all are compared.
    """
    task = PROFILES[artifact].get(frame.profile)
    if task is None:
        raise Missing(f"no runs of {artifact} at {frame.profile}")
    limit = min(budget or task.budget, task.budget)
    shown = [method for method in methods(task) if method.name == BASE or frame.whole(method.name)]
    scored = {method.name: scores(task, method, frame, limit) for method in shown}
    ratios = {score: {name: ratio(ours, scored[BASE], score) for name, ours in scored.items()} for score in SCORES}
    said = {score: decided(shown, found) for score, found in ratios.items()}
    rows = []
    for method in shown:
        ours, drawn, choice = scored[method.name], trials(task, method), frame.run(method.name).results["choice"]
        rates = [trial.rate / (1 if method.adaptive else 1 - trial.momentum) for trial in drawn]
        for score in SCORES:
            found = ratios[score][method.name]
            rows.append(
                {
                    "method": method.label,
                    "learners": method.learners,
                    "seeds": len(ours),
                    "reached": int(ours["reached"].sum()),
                    "score": score,
                    "value": found.value,
                    "ratio": math.exp(found.log.mean),
                    "low": math.exp(found.shown.low),
                    "high": math.exp(found.shown.high),
                    "bound": found.bound,
                    "says": said[score].get(method.name, ""),
                    **drawn[choice]._asdict(),
                    "own parameter": method.own[0],
                    "edge": rates[choice] in (min(rates), max(rates)),
                }
            )
    return pd.DataFrame(rows)


STEM = 1.15  # of an arrow without an interval: the factor from the mark to its head
PANELS = {  # score -> what the panel says
    "gradients": "gradient evaluations",
    "rounds": "rounds",
    MIDDLE: f"seconds at {MIDDLE}, modelled",
}


def draw(artifact: str, frame: Frame, figure: Figure) -> None:
    """A line for each method and a panel for each score, all relative to SGD; filled where the difference stands."""
    rows = table(artifact, frame)
    looks = {k: (PALETTE[i], MARKERS[i]) for i, k in enumerate(sorted(rows["learners"].unique()))}
    panels = figure.subplots(1, len(PANELS), sharey=True)
    for axes, (score, said) in zip(panels, PANELS.items(), strict=True):
        axes.axvline(1, color=INK, linewidth=0.8, linestyle="-")
        for place, each in enumerate(rows[rows["score"] == score].to_dict("records")):
            draw_ratio(axes, place, each, *looks[each["learners"]])
        axes.set(xscale="log", xlabel=said)
        low, high = axes.get_xlim()  # ticks nearer to each other in a panel that spans less than a decade
        plain_numbers(axes.xaxis, (1, 2, 5) if high >= 10 * low else (0.7, 1, 1.5, 2, 3, 5), "{x:g}")
    labels = [
        each.method if each.reached == each.seeds else f"{each.method} ({each.reached} of {each.seeds})"
        for each in rows[rows["score"] == "gradients"].itertuples()
    ]
    panels[0].set_yticks(range(len(labels)), labels)
    panels[0].invert_yaxis()
    for k, (colour, marker) in looks.items():
        panels[0].plot([], [], marker, color=colour, label=f"{k} learner{'s' if k > 1 else ''}")
    said = (
        "relative to SGD with one learner; 95% over seeds; filled: stands after Holm\n"
        "(m of n): seeds that reach the target; arrow: a lower bound, some do not; without interval: none does\n"
        "a run is a study (trials, then the seeds), which methods that make the same updates share"
    )
    figure.legend(loc="outside upper center", ncols=len(looks), title=said)


def draw_ratio(axes: Axes, place: int, row: Mapping[Any, Any], colour: str, marker: str) -> None:
    """The ratio of a row with its interval; an arrow to the side on which it has no bound."""
    low, high = row["low"], row["high"]
    if not row["reached"]:
        high *= STEM
    axes.plot([low, high], [place, place], color=colour, linestyle="-", linewidth=1.4)
    fill = "full" if row["says"] else "none"
    axes.plot(row["ratio"], place, marker=marker, color=colour, linestyle="none", fillstyle=fill, markersize=5.5)
    for end, arrow in ((low, "<"), (high, ">")):
        if arrow in row["bound"]:
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
