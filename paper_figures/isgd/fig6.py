"""Fig. 6: ISGD at several batch sizes, on one GPU and on four.

The paper shows accuracy against time on MNIST (a), CIFAR-10 (b) and ImageNet (c): a larger batch on four GPUs is
faster than a small one on one, until the batch gets so large that it is slower again. Here training is measured on
one device, whose iterates do not depend on the number of devices, and time is modelled by Eq. 19 with printed
constants: simulated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from paper_figures.isgd import settings
from paper_figures.isgd.settings import CIFAR, CONFIGURATIONS, MNIST
from suite.claims.estimate import exact, over_seeds, point
from suite.claims.intervals import Interval, at_least, mean_interval
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.papers.counterfeits import as_if, counterfeit, edited, forged, genuine
from suite.papers.published import printed_value
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SATURATION = {"mnist": 500, "cifar": 300, "imagenet": 150}  # images that fill one card (Fig. 7)
# Eq. 19's C2 in images of compute, from the shares of an iteration at batch 500 that Fig. 8 prints
LENET_SYNCHRONISATION = 500 * 0.23 / 0.77
ALEXNET_SYNCHRONISATION = 500 * 0.45 / 0.55
EPOCHS = {"fig6a": 20, "fig6b": 60}  # at the paper's profile; not printed, enough for 98% and 74%
LENET_BYTES = 1_724_320


def trainings(profile: str, figure: str, base: dict[str, Any]) -> Groups:
    """ISGD at each printed batch size on one device, the rate raised with its square root.

    The paper raises the rate "empirically" and prints no values.
    """
    if profile == "smoke":
        return {}
    epochs, seeds = {"reduced": (3, 1), "paper": (EPOCHS[figure], 3)}[profile]
    images = DATASETS[base["data"]["name"]].sizes["train"]
    groups = {}
    for batch, _ in CONFIGURATIONS[figure]:
        rate = base["rate"] * (batch / base["batch"]) ** 0.5
        updates = epochs * -(-images // batch)
        setting = {**base, "batch": batch, "rate": rate}
        every = max(1, updates // (8 * epochs))
        groups[f"b{batch}"] = tuple(
            settings.train(setting, seed, algorithm=settings.isgd(rate), updates=updates, every=every)
            for seed in range(seeds)
        )
    return groups


def parts(configurations: str, data: str) -> RunSpec:
    """How the harness cuts the batches of some configurations over their GPUs."""
    examples = DATASETS[data].sizes["train"]
    return RunSpec("isgd/parts", {"examples": examples, "configurations": CONFIGURATIONS[configurations]})


def mnist_runs(profile: str) -> Groups:
    return {**trainings(profile, "fig6a", MNIST), "parts": (parts("fig6a", "mnist"),)}


def cifar_runs(profile: str) -> Groups:
    return {**trainings(profile, "fig6b", CIFAR), "parts": (parts("fig6b", "cifar10"),)}


def imagenet_runs(profile: str) -> Groups:
    """At the paper's profile ISGD at each printed batch size, one device standing for all."""
    batches = dict.fromkeys(batch for batch, _ in CONFIGURATIONS["fig6c"]) if profile == "paper" else ()
    return {
        **{f"b{batch}": (settings.imagenet(batch, 60),) for batch in batches},
        "parts": (parts("fig6c", "imagenet"),),
        "long run": (parts("abstract", "imagenet"),),
    }


def time_per_update(kind: str, batch: int, gpus: int, synchronisation: float) -> float:
    """Eq. 19 for the paper's machine, in units of one image on four saturated cards.

    A card takes as long for fewer images as for a saturating batch (Fig. 7); several exchange the weights, for
    ``synchronisation`` of the same units. Every constant is printed; only ratios are meant.
    """
    compute = 4 / gpus * max(batch, gpus * SATURATION[kind])
    return compute + (synchronisation if gpus > 1 else 0.0)


class Curve(NamedTuple):
    """A training run on the paper's machine."""

    batch: int
    gpus: int
    seed: int
    time: Any  # [tests] by Eq. 19
    accuracy: Any  # [tests]
    run: str  # id
    diverged: bool


def synchronisation(parameters: int) -> float:
    """Eq. 19's C2 in images of compute, in proportion to the bytes of the weights; the share is printed for LeNet."""
    return LENET_SYNCHRONISATION * 4 * parameters / LENET_BYTES


def curves(evidence: Evidence, figure: str, kind: str) -> list[Curve]:
    """Accuracy against modelled time at each configuration and seed. Raises Missing where the profile trains none."""
    found = []
    for batch, gpus in CONFIGURATIONS[figure]:
        for run in evidence.runs(f"b{batch}"):
            exchange = ALEXNET_SYNCHRONISATION if kind == "imagenet" else synchronisation(run.results["parameters"])
            tests = run.curve("evaluations")
            time = tests["update"].to_numpy() * time_per_update(kind, batch, gpus, exchange)
            found.append(
                Curve(
                    batch,
                    gpus,
                    run.spec.seed,
                    time,
                    1 - tests["test_error"].to_numpy(),
                    run.id,
                    run.status == "diverged",
                )
            )
    return found


def time_to(curve: Curve, accuracy: float) -> float:
    """Modelled time of the first test at an accuracy, infinite where there is none."""
    reached = at_least(curve.accuracy, accuracy)
    return float(curve.time[reached.argmax()]) if reached.any() else math.inf


def extreme(found: list[Curve], accuracy: float) -> Quantities:
    """Log ratio, by seed, of modelled times to an accuracy on four cards: largest batch, better of the two below.

    A seed that did not get there, as where the rate of a batch size is too high for it, leaves the ratio open.
    """
    *_, faster, fast, largest = dict.fromkeys(curve.batch for curve in found if curve.gpus > 1)
    times = {(curve.batch, curve.seed): time_to(curve, accuracy) for curve in found if curve.gpus > 1}
    seeds = sorted({seed for _, seed in times})
    note = f"time to {accuracy:.0%} by Eq. 19, in images of four saturated cards: " + "; ".join(
        f"b{batch} {', '.join(f'{times[batch, s]:.3g}' for s in seeds)}" for batch in (faster, fast, largest)
    )
    ids = [curve.run for curve in found if curve.gpus > 1]
    arrived = [s for s in seeds if all(math.isfinite(times[batch, s]) for batch in (faster, fast, largest))]
    if not arrived:
        raise Missing(f"a seed with which every batch size reaches {accuracy:.0%}")
    steps = [math.log(times[largest, s] / min(times[fast, s], times[faster, s])) for s in arrived]
    step = mean_interval(steps)
    if len(arrived) < len(seeds):
        step = Interval(step.mean, -math.inf, math.inf, len(seeds))
    yield "extreme-batch-slower", over_seeds(step, ids, note)


def measure_mnist(evidence: Evidence) -> Quantities:
    yield from extreme(curves(evidence, "fig6a", "mnist"), 0.98)


def measure_cifar(evidence: Evidence) -> Quantities:
    yield from extreme(curves(evidence, "fig6b", "cifar"), 0.74)


def as_many_updates_as(evidence: Evidence, group: str, like: str, times: float) -> Evidence:
    """The largest batch came to what another did, after so many times the updates."""
    changed = as_if(evidence, group, like)

    def slower(run: Run) -> Run:
        table = run.curve("evaluations")
        return forged(run, evaluations=table.assign(update=times * table["update"]))

    return edited(changed, slower, group)


@counterfeit("isgd/fig6a/extreme-batch-slower")
def largest_mnist_in_few_updates(evidence: Evidence) -> Evidence:
    return as_many_updates_as(evidence, "b3000", "b1000", 0.1)


@genuine("isgd/fig6a/extreme-batch-slower")
def largest_mnist_in_many_updates(evidence: Evidence) -> Evidence:
    return as_many_updates_as(evidence, "b3000", "b1000", 2.0)


@counterfeit("isgd/fig6b/extreme-batch-slower")
def largest_cifar_in_few_updates(evidence: Evidence) -> Evidence:
    return as_many_updates_as(evidence, "b10000", "b500", 0.01)


@genuine("isgd/fig6b/extreme-batch-slower")
def largest_cifar_in_many_updates(evidence: Evidence) -> Evidence:
    return as_many_updates_as(evidence, "b10000", "b500", 2.0)


def alexnet_time(batch: int, gpus: int) -> float:
    """Time per update of AlexNet on the paper's machine, in images of four saturated cards."""
    return time_per_update("imagenet", batch, gpus, ALEXNET_SYNCHRONISATION)


def measure_alexnet(evidence: Evidence) -> Quantities:
    """Log ratio of the modelled times per update of batch 256 on four cards and on one."""
    ratio = alexnet_time(256, 4) / alexnet_time(256, 1)
    yield "small-batch-multi-gpu", point(math.log(ratio), proxy=True, note="Eq. 19 with the printed constants")


def covered(evidence: Evidence, group: str, name: str) -> Quantities:
    """Images that the parts of the configurations' batches cover together."""
    run = evidence.run(group)
    note = f"parts differ by at most {max(run.results['uneven'])} images"
    yield name, exact(run.results["covered"], runs=[run.id], note=note)


def measure_configurations(evidence: Evidence) -> Quantities:
    yield from covered(evidence, "parts", "configs")


def measure_long_run(evidence: Evidence) -> Quantities:
    """The batch of the abstract's 11.5-hour run."""
    yield from covered(evidence, "long run", "batch-1536")


def measure_nvidia_hours(_: Evidence) -> Quantities:
    """The time that 11.5 h is said to beat by 15.35%."""
    hours, percent = printed_value("isgd/fig6c/hours"), printed_value("isgd/fig6c/nvidia-claim")
    reference = hours / (1 - percent / 100)
    note = f"if 15.35% were on top of 11.5 h instead: {hours * (1 + percent / 100):.3f} h"
    yield "nvidia-implied-hours", exact(reference, note=note)


def table_of(found: list[Curve]) -> pd.DataFrame:
    """A row per configuration, seed and test after training began: modelled time and accuracy."""
    import pandas as pd

    tables = []
    for curve in found:
        lost = [other.diverged for other in found if other.batch == curve.batch]
        name = f"b{curve.batch} {curve.gpus}GPU" + (f", {sum(lost)} of {len(lost)} diverged" if any(lost) else "")
        columns = {"time": curve.time[1:], "accuracy": curve.accuracy[1:]}
        tables.append(pd.DataFrame(columns).assign(configuration=name, seed=curve.seed))
    return pd.concat(tables, ignore_index=True)


def frame_mnist(evidence: Evidence) -> pd.DataFrame:
    return table_of(curves(evidence, "fig6a", "mnist"))


def frame_cifar(evidence: Evidence) -> pd.DataFrame:
    return table_of(curves(evidence, "fig6b", "cifar"))


def frame_imagenet(evidence: Evidence) -> pd.DataFrame:
    return table_of(curves(evidence, "fig6c", "imagenet"))


def draw_curves(table: pd.DataFrame, axes: Axes, low: float, high: float) -> None:
    """A curve per configuration in the paper's order, and the first one four times as fast: its ideal."""
    import pandas as pd
    import seaborn as sns

    alone = table[table["configuration"] == table["configuration"].iloc[0]]
    ideal = alone.assign(time=alone["time"] / 4, configuration="ideal speedup")
    shown = pd.concat([table, ideal], ignore_index=True)
    sns.lineplot(
        shown, x="time", y="accuracy", hue="configuration", style="configuration", errorbar=("pi", 100), ax=axes
    )
    floor = min(low, float(table.groupby("configuration")["accuracy"].max().min()) - 0.01)
    seen = shown.loc[shown["accuracy"] >= floor, "time"]
    axes.set(xscale="log", xlim=(0.5 * seen.min(), 1.1 * seen.max()), ylim=(floor, high))
    axes.set(xlabel="time by Eq. 19 (1 = one image on four saturated cards)", ylabel="validation accuracy")
    axes.set_title("simulated: trained on one device, time by Eq. 19 with printed constants")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


def draw_mnist(evidence: Evidence, figure: Figure) -> None:
    draw_curves(frame_mnist(evidence), figure.subplots(), 0.96, 0.995)


def draw_cifar(evidence: Evidence, figure: Figure) -> None:
    draw_curves(frame_cifar(evidence), figure.subplots(), 0.7, 0.76)


def draw_imagenet(evidence: Evidence, figure: Figure) -> None:
    draw_curves(frame_imagenet(evidence), figure.subplots(), 0.4, 0.6)


ARTIFACTS = (
    Artifact(
        "isgd/fig6a",
        "MNIST accuracy against time for four GPU and batch configurations",
        mnist_runs,
        (measure_mnist, measure_configurations),
        draw_mnist,
        "Accuracy against modelled time for batch 64 on one GPU and 1000 to 3000 on four.",
        (8.0, 4.0),
        frame=frame_mnist,
    ),
    Artifact(
        "isgd/fig6b",
        "CIFAR-10 accuracy against time for five GPU and batch configurations",
        cifar_runs,
        (measure_cifar, measure_configurations),
        draw_cifar,
        "Accuracy against modelled time for batch 100 on one GPU and 200 to 10,000 on four.",
        (8.0, 4.0),
        frame=frame_cifar,
    ),
    Artifact(
        "isgd/fig6c",
        "ImageNet accuracy against time for five GPU and batch configurations",
        imagenet_runs,
        (measure_alexnet, measure_configurations, measure_long_run, measure_nvidia_hours),
        draw_imagenet,
        "Top-1 accuracy against modelled time for batch 256 on one GPU and 256 to 3400 on four.",
        (8.0, 4.0),
        frame=frame_imagenet,
    ),
)
