"""Fig. 6: ISGD at several batch sizes, on one GPU and on four.

The paper shows accuracy against time on MNIST (a), CIFAR-10 (b) and ImageNet (c): a larger batch on four GPUs is
faster than a small one on one, until the batch gets so large that it is slower again. Here training is measured on
one device, whose iterates do not depend on the number of devices, and time is modelled by Eq. 19 with printed
constants: *modelled*.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

from paper_figures.isgd import settings
from paper_figures.isgd.fig5 import NAMES
from paper_figures.isgd.settings import CIFAR, MNIST
from suite.claims.intervals import Interval, at_least, mean_interval
from suite.papers.figure import Artifact, Figure, Frame, Groups, Missing, np, pd, sns

LENET_SHARE, ALEXNET_SHARE = 0.23, 0.45  # of an iteration at batch 500 that Fig. 8 prints for exchanging weights
LENET_BYTES = 1_724_320


class Case(NamedTuple):
    """One of the three data sets of Fig. 6.

    Attributes:
        data: its name in the catalogue.
        configurations: (batch size, GPUs), the legend.
        full: images that fill one card (Fig. 7).
        epochs: trained at the paper's profile; not printed, enough for ``level``.
        level: accuracy at which times are compared.
        axis: accuracies drawn.
        base: settings of its training, none for ImageNet.
    """

    data: str
    configurations: tuple[tuple[int, int], ...]
    full: int
    epochs: int
    level: float
    axis: tuple[float, float]
    base: dict[str, Any]

    @property
    def several(self) -> list[int]:
        """The batch sizes on several GPUs."""
        return [batch for batch, gpus in self.configurations if gpus > 1]


A = Case("mnist", ((64, 1), (1000, 4), (2000, 4), (3000, 4)), 500, 20, 0.98, (0.96, 0.995), MNIST)
B = Case("cifar10", ((100, 1), (200, 4), (500, 4), (2000, 4), (10000, 4)), 300, 60, 0.74, (0.7, 0.76), CIFAR)
C = Case("imagenet", ((256, 1), (256, 4), (1000, 4), (1536, 4), (3400, 4)), 150, 60, 0.0, (0.4, 0.6), {})


def trainings(case: Case, profile: str) -> Groups:
    """ISGD at each printed batch size on one device, the rate raised with its square root.

    The paper raises the rate "empirically" and prints no values. One device stands for all on ImageNet too.
    """
    batches = dict.fromkeys(batch for batch, _ in case.configurations)
    if profile == "smoke" or (not case.base and profile != "paper"):
        return {}
    if not case.base:
        return {f"b{batch}": (settings.imagenet(batch, case.epochs),) for batch in batches}
    epochs, seeds = {"reduced": (3, 1), "paper": (case.epochs, 3)}[profile]
    groups = {}
    for batch in batches:
        rate = case.base["rate"] * (batch / case.base["batch"]) ** 0.5
        setting = {**case.base, "batch": batch, "rate": rate}
        updates = epochs * settings.epoch(case.data, batch)
        asked: dict[str, Any] = {"updates": updates, "every": max(1, updates // (8 * epochs))}
        trained = (settings.train(setting, seed, algorithm=settings.isgd(rate), **asked) for seed in range(seeds))
        groups[f"b{batch}"] = tuple(trained)
    return groups


def panel(letter: str, case: Case, title: str, alt: str) -> Artifact:
    return Artifact(f"isgd/fig6{letter}", title, partial(trainings, case), alt=alt, size=(8.0, 4.0))


FIG6A = panel("a", A, "MNIST accuracy against time for four GPU and batch configurations",
    "Accuracy against modelled time for batch 64 on one GPU and 1000 to 3000 on four.")  # fmt: skip
FIG6B = panel("b", B, "CIFAR-10 accuracy against time for five GPU and batch configurations",
    "Accuracy against modelled time for batch 100 on one GPU and 200 to 10,000 on four.")  # fmt: skip
FIG6C = panel("c", C, "ImageNet accuracy against time for five GPU and batch configurations",
    "Top-1 accuracy against modelled time for batch 256 on one GPU and 256 to 3400 on four.")  # fmt: skip


# ---------------------------------------------------------------- time on the paper's machine


def time_per_update(full: int, batch: int, gpus: int, synchronisation: float) -> float:
    """Eq. 19 for the paper's machine, in units of one image on four saturated cards.

    A card takes as long for fewer images as for a saturating batch (Fig. 7); several exchange the weights, for
    ``synchronisation`` of the same units. Its constants follow from what 5.4 prints; only ratios are meant.
    """
    compute = 4 / gpus * max(batch, gpus * full)
    return compute + (synchronisation if gpus > 1 else 0.0)


def synchronisation(case: Case, parameters: float) -> float:
    """Eq. 19's C2 in units of compute, of LeNet in proportion to the bytes of the weights."""
    if not case.base:
        return _exchange(case.full, ALEXNET_SHARE)
    return _exchange(A.full, LENET_SHARE) * 4 * parameters / LENET_BYTES


def _exchange(full: int, share: float) -> float:
    """What takes the printed share of an iteration beside the compute of 500 images on four cards."""
    return time_per_update(full, 500, 4, 0.0) * share / (1 - share)


def timed(case: Case, frame: Frame, fewest: int = 1) -> pd.DataFrame:
    """A row per configuration of so many GPUs, seed and test after training began: modelled time and accuracy."""
    found = []
    for batch, gpus in case.configurations:
        if gpus < fewest:
            continue
        group = frame[f"b{batch}"]
        lost = [frame.stored[run].status == "diverged" for run in group["run"]]
        name = f"b{batch} {gpus}GPU" + (f", {sum(lost)} of {len(lost)} diverged" if any(lost) else "")
        unit = time_per_update(case.full, batch, gpus, synchronisation(case, *set(group["parameters"])))
        tests = frame.table("evaluations", f"b{batch}")
        rows = tests[tests["update"] > 0]
        columns = {"time": rows["update"] * unit, "accuracy": 1 - rows["test_error"], "seed": rows["seed"]}
        found.append(pd.DataFrame(columns).assign(configuration=name, batch=batch))
    return pd.concat(found, ignore_index=True)


def arrivals(case: Case, frame: Frame) -> pd.DataFrame:
    """Modelled time to the level on four cards: a row per seed, a column for each of the three largest batches.

    Infinite where a run did not get there, as where the rate of a batch size is too high for it.
    """
    rows = timed(case, frame, fewest=2)
    reached = rows[at_least(rows["accuracy"], case.level)]
    times = reached.pivot_table(index="seed", columns="batch", values="time", aggfunc="min")
    return times.reindex(index=sorted(set(rows["seed"])), columns=case.several[-3:]).fillna(math.inf)


def extreme(case: Case, frame: Frame) -> Interval:
    """Log ratio, by seed, of the times of the largest batch and of the better of the two below.

    A seed that did not get there leaves the ratio open.
    """
    times = arrivals(case, frame)
    arrived = times[np.isfinite(times).all(axis=1)]
    if arrived.empty:
        raise Missing(f"lacks a seed with which every batch size reaches {case.level:.0%}")
    step = mean_interval(list(np.log(arrived.iloc[:, 2] / arrived.iloc[:, :2].min(axis=1))))
    return step if len(arrived) == len(times) else Interval(step.mean, -math.inf, math.inf, len(times))


def sizes(case: Case, frame: Frame) -> list[int]:
    return [batch for batch, _ in case.configurations]


def told(case: Case, frame: Frame) -> str:
    times = "; ".join(f"b{b} {', '.join(f'{t:.3g}' for t in each)}" for b, each in arrivals(case, frame).items())
    return f"time to {case.level:.0%} by Eq. 19, in images of four saturated cards: {times}"


@FIG6C.quantity("small-batch-multi-gpu", shown=True, note="Eq. 19 with the printed constants")
def slower_on_four(frame: Frame) -> float:
    """Log ratio of the modelled times per update of AlexNet with batch 256 on four cards and on one."""
    four, one = (time_per_update(C.full, 256, gpus, _exchange(C.full, ALEXNET_SHARE)) for gpus in (4, 1))
    return math.log(four / one)


# ---------------------------------------------------------------- drawing


def table(case: Case, frame: Frame) -> pd.DataFrame:
    """Accuracy against modelled time at every configuration, as ``timed`` has it."""
    return timed(case, frame.needed(f"b{batch}" for batch, _ in case.configurations))


def draw(case: Case, frame: Frame, figure: Figure) -> None:
    """A curve per configuration in the paper's order, and the first one four times as fast: its ideal."""
    rows, axes = table(case, frame), figure.subplots()
    alone = rows[rows["configuration"] == rows["configuration"].iloc[0]]
    ideal = alone.assign(time=alone["time"] / 4, configuration="ideal speedup")
    shown = pd.concat([rows, ideal], ignore_index=True)
    sns.lineplot(
        shown, x="time", y="accuracy", hue="configuration", style="configuration", errorbar=("pi", 100), ax=axes
    )
    low, high = case.axis
    if (rows.groupby("configuration")["accuracy"].max() < low).any():  # shorter trainings, from their first test on
        low = float(rows["accuracy"].min()) - 0.01
    seen = shown.loc[shown["accuracy"] >= low, "time"]
    axes.set(xscale="log", xlim=(0.5 * seen.min(), 1.1 * seen.max()), ylim=(low, high))
    axes.set(xlabel="time by Eq. 19 (1 = one image on four saturated cards)", ylabel="validation accuracy")
    axes.set_title(f"{NAMES[case.data]}, trained on one device; time modelled by Eq. 19 with printed constants")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


for figure, case in ((FIG6A, A), (FIG6B, B), (FIG6C, C)):
    figure.quantity("configs")(partial(sizes, case))
    figure.table(partial(table, case))
    figure.drawing(partial(draw, case))
    if case.base:
        batches = [f"b{batch}" for batch in case.several]
        figure.quantity("extreme-batch-slower", batches, note=partial(told, case))(partial(extreme, case))
