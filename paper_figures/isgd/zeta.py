"""Our own figure, which the paper lacks: does ISGD help, and for which zeta?

The paper prints no zeta, the rate of Algorithm 2, and gives a margin of "2 or 3" deviations and "about five" steps.
A short search over all three on seeds of its own finds the settings under which ISGD's training loss falls the
fastest. They are then fixed, in ``CHOSEN``, and compared with SGD on the seeds and at the length of Fig. 5a, which
the search has not seen. It is led by the loss of training batches alone: no test image takes part in the choice.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from paper_figures.isgd import readings, settings
from paper_figures.isgd.settings import DIGITS, MNIST, train
from suite.claims.estimate import exact, over_seeds
from suite.claims.intervals import mean_interval, percent_saved
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.counterfeits import counterfeit, genuine
from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Treatment(NamedTuple):
    """What the paper leaves open of ISGD: zeta in learning rates, the margin in deviations, most steps of a chase."""

    zeta: float
    margin: float
    stop: int

    @property
    def group(self) -> str:
        return f"zeta {self.zeta:g}, margin {self.margin:g}, stop {self.stop}"

    def algorithm(self, rate: float) -> dict[str, Any]:
        return settings.isgd(rate, zeta=self.zeta * rate, margin=self.margin, stop=self.stop)


GRID = tuple(
    Treatment(zeta, margin, stop)
    for zeta in (0.1, 1.0, 10.0, 30.0, 100.0, 1000.0)
    for margin in (1.0, 2.0, 3.0)
    for stop in (1, 5)
)
SMALL_GRID = tuple(each for each in GRID if each.margin == 2 and each.stop == 5)  # on digits, to try the path
SEARCH_SEEDS = (100, 101)  # no other run has these
EPOCHS = 2.5  # of the search; the first has no accelerations
# What measure_choice found, fixed before the runs that decide began. When it was, three runs of the search at zeta =
# 1,000 rates were still to come; as that treatment diverges on the other seed, none of them could be chosen.
CHOSEN: Treatment | None = Treatment(1.0, 3.0, 1)


def search(profile: str) -> Groups:
    """SGD and ISGD under each treatment: as many gradient evaluations and the same seeds for all."""
    base, grid, seeds = (DIGITS, SMALL_GRID, SEARCH_SEEDS[:1]) if profile == "smoke" else (MNIST, GRID, SEARCH_SEEDS)
    n = epoch(base["data"]["name"], base["batch"])
    updates = int(EPOCHS * n)
    tests = {"test_examples": 1000, "train_examples": 1000} if profile != "smoke" else {}
    algorithms: dict[str, dict[str, Any]] = {
        "search sgd": {"name": "sgd"},
        **{each.group: each.algorithm(base["rate"]) for each in grid},
    }
    return {
        name: tuple(
            train(base, s, algorithm=algorithm, updates=updates, every=n, evaluate=dict(tests)) for s in seeds
        )
        for name, algorithm in algorithms.items()
    }


def runs(profile: str) -> Groups:
    """The search, and at the paper's profile the pairs of Fig. 5a with ISGD as chosen beside them."""
    if profile == "reduced":
        return {}
    if profile == "smoke":
        return search(profile)
    return {**search(profile), **settings.mnist_pairs(profile), **chosen(profile)}


def chosen(profile: str) -> Groups:
    """The runs of Fig. 5a's seeds and length under the chosen treatment, once there is one."""
    if CHOSEN is None:
        return {}
    return {"chosen": settings.mnist_pairs(profile, CHOSEN.algorithm(MNIST["rate"]))["isgd"]}


def epoch(data: str, batch: int) -> int:
    """Batches in an epoch."""
    return -(-DATASETS[data].sizes["train"] // batch)


def last_epoch(run: Run) -> float:
    """Mean loss (nats) of an epoch of batches at the end of a run, each as met anew; infinite if it diverged.

    ISGD's chases count as updates and not as batches: the more of them, the less far a run gets, and the earlier
    its last epoch began.
    """
    if run.status == "diverged":
        return math.inf
    table = run.curve("updates").sort_values("update")
    met = table[table["chasing"] == 0] if "chasing" in table else table
    return float(met["loss"].tail(epoch(run.spec.settings["data"]["name"], run.spec.settings["batch"])).mean())


def treatments(evidence: Evidence) -> tuple[Treatment, ...]:
    """Those of a profile's search."""
    return tuple(each for each in GRID if each.group in evidence.groups)


def frame(evidence: Evidence) -> pd.DataFrame:
    """The search: a row per treatment and seed.

    ``gain`` is log(SGD's loss / ISGD's) over the last epoch after as many gradient evaluations, minus infinity for
    a run that diverged; ``chases`` is the share of updates that were steps of Algorithm 2.
    """
    import pandas as pd

    losses = {run.spec.seed: last_epoch(run) for run in evidence.runs("search sgd")}
    rows = [
        {
            **each._asdict(),
            "seed": run.spec.seed,
            "gain": math.log(losses[run.spec.seed] / last_epoch(run)) if run.status != "diverged" else -math.inf,
            "chases": float(run.curve("updates")["chasing"].mean()),
        }
        for each in treatments(evidence)
        for run in evidence.runs(each.group)
    ]
    return pd.DataFrame(rows)


def measure_choice(evidence: Evidence) -> Quantities:
    """The treatment with the largest mean gain over the search's seeds, and the best gain at each zeta."""
    table = frame(evidence)
    ids = [run.id for each in treatments(evidence) for run in evidence.runs(each.group)]
    mean = table.groupby(["zeta", "margin", "stop"])["gain"].mean()
    zeta, margin, stop = mean.idxmax()
    note = f"of {len(mean)} treatments on {table['seed'].nunique()} seeds; log loss gained {mean.max():+.3f}"
    yield "choice", exact((zeta, margin, stop), runs=ids, note=note)
    best = mean.groupby("zeta").max()
    note = "largest mean gain at zeta = " + ", ".join(f"{value:g}" for value in best.index) + " rates"
    yield "best-gain", exact(list(best), runs=ids, note=note)


def measure_search(evidence: Evidence) -> Quantities:
    """How large the search was: treatments, seeds of each, and epochs of each run."""
    stored = {each.group: evidence.runs(each.group) for each in treatments(evidence)}
    found = [run for runs in stored.values() for run in runs]
    chosen = found[0].spec.settings
    epochs = chosen["updates"] / epoch(chosen["data"]["name"], chosen["batch"])
    size = (len(stored), len({run.spec.seed for run in found}), epochs)
    yield "search-size", exact(size, runs=[run.id for run in found], note="treatments, seeds, epochs")


def measure_speed(evidence: Evidence) -> Quantities:
    """ISGD as chosen against SGD, paired by seed: gradient evaluations and seconds to an accuracy."""
    sgd, ours = evidence.runs("sgd"), evidence.runs("chosen")
    data, ids = sgd[0].spec.settings["data"]["name"], [run.id for run in (*sgd, *ours)]
    error = readings.common_error((*sgd, *ours), data)
    for name, column in (("faster", "update"), ("fewer-seconds", "seconds")):
        steps = readings.log_speed(sgd, ours, error, column)
        note = f"until {1 - error:.1%} test accuracy, {len(steps)} paired seeds"
        yield name, over_seeds(mean_interval(steps), ids, note, proxy=readings.embedded(data))


def measure_training_error(evidence: Evidence) -> Quantities:
    """SGD's training error minus that of ISGD as chosen, paired by seed."""
    sgd, ours = evidence.runs("sgd"), evidence.runs("chosen")
    proxy, ids = readings.embedded(sgd[0].spec.settings["data"]["name"]), [run.id for run in (*sgd, *ours)]
    yield "lower-training-error", over_seeds(mean_interval(readings.error_leads(sgd, ours)), ids, proxy=proxy)


@counterfeit("isgd/zeta/faster", "isgd/zeta/lower-training-error")
def chosen_behind(evidence: Evidence) -> Evidence:
    return readings.shifted(evidence, "chosen", -readings.HALF)


@genuine("isgd/zeta/faster", "isgd/zeta/lower-training-error")
def chosen_ahead(evidence: Evidence) -> Evidence:
    return readings.shifted(evidence, "chosen", readings.HALF)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Left the search; right, where ISGD as chosen was trained, what it and zeta = rate save on other seeds."""
    if "chosen" not in evidence.groups:
        draw_search(evidence, figure.subplots())
        return
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    draw_search(evidence, left)
    draw_decision(evidence, right)


def draw_search(evidence: Evidence, axes: Axes) -> None:
    """Training loss over SGD's against zeta; the band spans the seeds."""
    import numpy as np
    import seaborn as sns

    from suite.report import style

    table = frame(evidence).assign(ratio=lambda rows: np.exp(-rows["gain"]))
    table = table.rename(columns={"margin": "margin (deviations)", "stop": "most steps"})
    ended = table[np.isfinite(table["ratio"])]
    sns.lineplot(
        ended,
        x="zeta",
        y="ratio",
        hue="margin (deviations)",
        style="most steps",
        palette=style.ramp(ended["margin (deviations)"].nunique()),
        markers=True,
        errorbar=("pi", 100),
        ax=axes,
    )
    axes.set(xscale="log", yscale="log", xlabel="zeta / learning rate", ylabel="training loss / SGD's")
    axes.yaxis.set_major_formatter("{x:.2f}")  # within a few per cent of one
    axes.yaxis.set_minor_formatter("{x:.2f}")
    for zeta in sorted(set(table["zeta"]) - set(ended["zeta"])):
        across = axes.get_xaxis_transform()  # no value: a label at the foot of the axis of zeta
        axes.axvspan(zeta / 2, zeta * 2, color=style.GRID, alpha=0.25, linewidth=0)
        axes.text(zeta, 0.5, "all diverged", rotation=90, ha="center", va="center", transform=across)
    axes.axhline(1, color=style.INK, linestyle="-", linewidth=0.8)
    axes.set_title("search: after as many gradient evaluations", fontsize="medium")
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.16), ncols=2, fontsize="small")


def draw_decision(evidence: Evidence, axes: Axes) -> None:
    """Gradient evaluations saved to an accuracy: every seed, and the mean with its interval."""
    import pandas as pd
    import seaborn as sns

    from suite.report import style

    groups = {"as the rate": evidence.runs("isgd"), "as chosen": evidence.runs("chosen")}
    sgd = evidence.runs("sgd")
    data = sgd[0].spec.settings["data"]["name"]
    error = readings.common_error([*sgd, *(run for group in groups.values() for run in group)], data)
    steps = {name: readings.log_speed(sgd, group, error) for name, group in groups.items()}
    table = pd.DataFrame(
        {"zeta": name, "saved": percent_saved(step)} for name, logs in steps.items() for step in logs
    )
    sns.stripplot(table, x="zeta", y="saved", ax=axes, color=style.GRID, size=4, jitter=False)
    for place, logs in enumerate(steps.values()):
        mean = mean_interval(logs)
        middle, low, high = map(percent_saved, (mean.mean, mean.low, mean.high))
        axes.errorbar(place, middle, yerr=[[middle - low], [high - middle]], fmt="D", capsize=5)
    axes.axhline(0, color=style.INK, linestyle="-", linewidth=0.8)
    axes.set_xlim(-0.5, len(steps) - 0.5)
    axes.set(xlabel="zeta", ylabel=f"gradient evaluations saved to {1 - error:.1%} (%)")
    axes.set_title("decision: other seeds, 95%", fontsize="medium")


ARTIFACTS = (
    Artifact(
        "isgd/zeta",
        "Our own figure, not the paper's: does ISGD help on MNIST, and for which zeta",
        runs,
        (measure_choice, measure_speed, measure_training_error),
        draw,
        "Training loss of ISGD relative to SGD's after as many gradient evaluations, against zeta, for three margins "
        "and two numbers of steps; beside it what the best of them saves on other seeds.",
        (8.0, 4.6),
        frame,
    ),
)
