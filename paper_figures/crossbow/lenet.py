"""Our own figure, which the paper lacks: LeNet on all of MNIST to 99%, by method and number of learners.

Fig. 10(d) shows this network's time to the printed 99% beside TensorFlow's, which is not to be had. Epochs belong to
the algorithm alone, and of them the paper says that further learners cost none (5.2), where a larger batch costs many
(2.4), and that averaging with momentum takes fewer than elastic averaging (5.5). All methods read the same batches of
16 for each learner at one rate; synchronous SGD averages gradients of them all, a batch of 16 k.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import accuracies, ids, late_arrival
from paper_figures.crossbow.tables import arrival_table, stored, titled
from suite.claims.estimate import Estimate, over_seeds
from suite.claims.intervals import Interval, paired_difference, paired_ratio
from suite.papers.artifact import Artifact, Evidence, Quantities, row_by_row
from suite.papers.counterfeits import counterfeit, edited, exchanged, forged, genuine

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from suite.runs.store import Run

RIVALS = ("s-sgd", "ea-sgd")
DECIDING = (4, 16)  # learners: as many as the paper's best on one GPU with ResNet-32, and "many"


def runs(profile: str) -> settings.Groups:
    return settings.lenet(profile)


def arrivals(evidence: Evidence, group: str) -> list[float]:
    """Epochs to the target by seed."""
    return [late_arrival(accuracies(run)) for run in evidence.runs(group)]


def compared(evidence: Evidence, step: Callable[[list[float], list[float]], Interval], a: str, b: str) -> Estimate:
    """The step from epochs of ``a`` to epochs of ``b``, paired by seed."""
    found = arrivals(evidence, a), arrivals(evidence, b)
    said = "; ".join(
        f"{titled(group)}: {', '.join(f'{count:g}' for count in counts)}"
        for group, counts in zip((a, b), found, strict=True)
    )
    note = f"epochs, {said}; {settings.LENET_LENGTH + 1} is later than the runs are long"
    return over_seeds(step(*found), ids(evidence, a, b), note)


def measure_rivals(evidence: Evidence) -> Quantities:
    """Epochs that SMA saves against each rival with as many learners."""
    saved = partial(compared, evidence, paired_difference)
    pairs = {f"{rival}-{k}": (f"sma {k}", f"{rival} {k}") for k in DECIDING for rival in RIVALS}
    yield from row_by_row((name, partial(saved, *pair)) for name, pair in pairs.items())


def measure_kept(evidence: Evidence) -> Quantities:
    """Epochs with many learners over those with one."""
    kept = partial(compared, evidence, paired_ratio)
    yield from row_by_row((f"epochs-kept-{k}", partial(kept, "sma 1", f"sma {k}")) for k in DECIDING)


def changes_places(evidence: Evidence, rival: str) -> Evidence:
    """SMA and a rival with as many learners came to each other's outcomes."""
    for k in DECIDING:
        if stored(evidence, f"sma {k}") and stored(evidence, f"{rival} {k}"):
            evidence = exchanged(evidence, f"sma {k}", f"{rival} {k}")
    return evidence


@counterfeit("crossbow/lenet/s-sgd-4", "crossbow/lenet/s-sgd-16")
@genuine("crossbow/lenet/s-sgd-4", "crossbow/lenet/s-sgd-16")
def changes_places_with_s_sgd(evidence: Evidence) -> Evidence:
    return changes_places(evidence, "s-sgd")


@counterfeit("crossbow/lenet/ea-sgd-4", "crossbow/lenet/ea-sgd-16")
@genuine("crossbow/lenet/ea-sgd-4", "crossbow/lenet/ea-sgd-16")
def changes_places_with_ea_sgd(evidence: Evidence) -> Evidence:
    return changes_places(evidence, "ea-sgd")


@counterfeit("crossbow/lenet/epochs-kept-4", "crossbow/lenet/epochs-kept-16")
def many_learn_nothing_at_first(evidence: Evidence) -> Evidence:
    """Models of several learners stay untrained until three epochs before the end."""

    def edit(run: Run) -> Run:
        table = run.curve("evaluations")
        first = table["update"] <= table["update"].max() * (1 - 3 / settings.LENET_LENGTH)
        return forged(run, evaluations=table.assign(test_error=table["test_error"].mask(first, 0.9)))

    names = [f"sma {k}" for k in DECIDING if stored(evidence, f"sma {k}")]
    return edited(evidence, edit, *names)


@genuine("crossbow/lenet/epochs-kept-4", "crossbow/lenet/epochs-kept-16")
def many_learn_as_one(evidence: Evidence) -> Evidence:
    """Models of several learners err as one learner's do, epoch by epoch."""
    alone = {run.spec.seed: run.curve("evaluations")["test_error"] for run in evidence.runs("sma 1")}

    def edit(run: Run) -> Run:
        table = run.curve("evaluations")
        return forged(run, evaluations=table.assign(test_error=alone[run.spec.seed].to_numpy()))

    names = [f"sma {k}" for k in DECIDING if stored(evidence, f"sma {k}")]
    return edited(evidence, edit, *names)


def frame(evidence: Evidence) -> pd.DataFrame:
    """Epochs to 99% by method, learners and seed; NaN where a run ended before."""
    table = arrival_table(evidence, settings.LENET_TARGET).sort_values("learners", kind="stable")
    return table.assign(pair="k = " + table["learners"].astype(str))


def draw(evidence: Evidence, figure: Figure) -> None:
    axes, table = figure.subplots(), frame(evidence)
    plots.bars(table, axes, "epochs", category="pair", dodge="method")
    axes.set_ylabel("epochs to 99% test accuracy")
    axes.set_xlabel("learners, each with batches of 16")
    plots.legend_above(axes)


ARTIFACTS = (
    Artifact(
        "crossbow/lenet",
        "Our own figure, not the paper's: epochs to 99% on MNIST, by method and number of learners",
        runs,
        (measure_rivals, measure_kept),
        draw,
        "Bars of the epochs that LeNet takes to 99% on MNIST, by number of learners: SMA, elastic averaging and "
        "synchronous SGD side by side, with a dot for each seed.",
        (7.4, 4.2),
        frame,
    ),
)
