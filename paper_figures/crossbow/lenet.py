"""Our own figure, which the paper lacks: LeNet on all of MNIST to 99%, by method and number of learners.

Fig. 10(d) shows this network's time to the printed 99% beside TensorFlow's, which is not to be had. Epochs belong to
the algorithm alone, and of them the paper says that further learners cost none (5.2), where a larger batch costs many
(2.4), and that averaging with momentum takes fewer than elastic averaging (5.5). All methods read the same batches of
16 for each learner at one rate; synchronous SGD averages gradients of them all, a batch of 16 k.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import accuracies, arrival_table, late_arrival, titled
from suite.claims.intervals import Interval, paired_difference, paired_ratio
from suite.papers.figure import Artifact, Figure, Frame, Quantity, pd

RIVALS = ("s-sgd", "ea-sgd")
DECIDING = (4, 16)  # learners: as many as the paper's best on one GPU with ResNet-32, and "many"

PANEL = Artifact(
    "crossbow/lenet",
    "Our own figure, not the paper's: epochs to 99% on MNIST, by method and number of learners",
    settings.lenet,
    size=(7.4, 4.2),
)


def arrivals(frame: Frame, group: str) -> list[float]:
    """Epochs to the target by seed."""
    return [late_arrival(curve) for curve in accuracies(frame, group)]


def noted(groups: tuple[str, str], frame: Frame) -> str:
    """The epochs of both groups by seed."""
    said = "; ".join(
        f"{titled(frame.runs_of(group)[0])}: {', '.join(f'{count:g}' for count in arrivals(frame, group))}"
        for group in groups
    )
    return f"epochs, {said}; {settings.LENET_LENGTH + 1} is later than the runs are long"


def compared(how: Callable[..., Interval], groups: tuple[str, str], frame: Frame) -> Interval:
    """Epochs of two groups, paired by seed: what the first saves, or the second's over the first's."""
    return how(*(arrivals(frame, group) for group in groups))


for k in DECIDING:
    pairs = {f"{rival}-{k}": (paired_difference, (f"sma {k}", f"{rival} {k}")) for rival in RIVALS}
    pairs[f"epochs-kept-{k}"] = paired_ratio, ("sma 1", f"sma {k}")
    for name, (how, groups) in pairs.items():
        PANEL.quantities[name] = Quantity(partial(compared, how, groups), groups, note=partial(noted, groups))


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Epochs to 99% by method, learners and seed; NaN where a run ended before."""
    rows = arrival_table(frame, settings.LENET_TARGET).sort_values("learners", kind="stable")
    return rows.assign(pair="k = " + rows["learners"].astype(str))


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Bars of the epochs that LeNet takes to 99% on MNIST, by number of learners: SMA, elastic averaging and
    synchronous SGD side by side, with a dot for each seed.
    """
    axes, rows = figure.subplots(), table(frame)
    plots.bars(rows, axes, "epochs", category="pair", dodge="method")
    axes.set(xlabel="learners, each with batches of 16", ylabel="epochs to 99% test accuracy")
    plots.legend_above(axes)
