"""Fig. 6: ISGD at several batch sizes, on one GPU and on four.

The paper shows accuracy against time on MNIST (a), CIFAR-10 (b) and ImageNet (c): a larger batch on four GPUs is
faster than a small one on one, until the batch gets so large that it is slower again. Here training is measured on
one device, whose iterates do not depend on the number of devices, and time is modelled by Eq. 19 with printed
constants. On ImageNet, below the paper's profile, there is the model alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from paper_figures.isgd import settings
from paper_figures.isgd.settings import CIFAR, CONFIGURATIONS, MNIST
from suite.claims.measured import exact, point
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.papers.printed import printed_value
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SATURATION = {"mnist": 500, "cifar": 300, "imagenet": 150}  # images that fill one card (Fig. 7)
# Eq. 19's C2 in images of compute, from the shares of an iteration at batch 500 that Fig. 8 prints
LENET_SYNCHRONISATION = 500 * 0.23 / 0.77
ALEXNET_SYNCHRONISATION = 500 * 0.45 / 0.55
LENET_BYTES = 1_724_320


def trainings(profile: str, figure: str, base: dict[str, Any]) -> Groups:
    """ISGD at each printed batch size on one device, the rate raised with its square root.

    The paper raises the rate "empirically" and prints no values.
    """
    if profile == "smoke":
        return {}
    epochs = {"reduced": 3, "paper": 60}[profile]
    images = DATASETS[base["data"]["name"]].sizes["train"]
    groups = {}
    for batch, _ in CONFIGURATIONS[figure]:
        rate = base["rate"] * (batch / base["batch"]) ** 0.5
        updates = epochs * -(-images // batch)
        setting = {**base, "batch": batch, "rate": rate}
        run = settings.train(setting, 0, algorithm=settings.isgd(rate), updates=updates, every=max(1, updates // 24))
        groups[f"b{batch}"] = (run,)
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
    time: Any  # [tests] by Eq. 19
    accuracy: Any  # [tests]
    run: Run


def curves(evidence: Evidence, figure: str, kind: str) -> list[Curve]:
    """Test accuracy against modelled time at each batch size. Raises Missing where the profile trains none."""
    found = []
    for batch, gpus in CONFIGURATIONS[figure]:
        if f"b{batch}" not in evidence.groups:
            raise Missing("no runs at this profile")
        run = evidence.run(f"b{batch}")
        # synchronisation scales with the bytes of the weights, whose share is printed for LeNet
        synchronisation = LENET_SYNCHRONISATION * (4 * run.results["parameters"]) / LENET_BYTES
        each = time_per_update(kind, batch, gpus, synchronisation)
        tests = run.curve("evaluations")
        found.append(Curve(batch, gpus, tests["update"].to_numpy() * each, 1 - tests["test_error"].to_numpy(), run))
    return found


def extreme(found: list[Curve]) -> Quantities:
    """Log of modelled time to a common accuracy, largest batch against the best moderate one."""
    import math

    target = min(float(curve.accuracy.max()) for curve in found)
    times = {curve.batch: float(curve.time[(curve.accuracy >= target).argmax()]) for curve in found}
    largest = max(times)
    moderate = min(time for batch, time in times.items() if batch != largest)
    note = f"time to {100 * target:.1f}% by Eq. 19, in images of four saturated cards: " + ", ".join(
        f"b{batch} {time:.3g}" for batch, time in times.items()
    )
    ids = [curve.run.id for curve in found]
    yield "extreme-batch-slower", point(math.log(times[largest] / moderate), kind="proxy", runs=ids, note=note)


def measure_mnist(evidence: Evidence) -> Quantities:
    yield from extreme(curves(evidence, "fig6a", "mnist"))


def measure_cifar(evidence: Evidence) -> Quantities:
    yield from extreme(curves(evidence, "fig6b", "cifar"))


def alexnet_time(batch: int, gpus: int) -> float:
    """Time per update of AlexNet on the paper's machine, in images of four saturated cards."""
    return time_per_update("imagenet", batch, gpus, ALEXNET_SYNCHRONISATION)


def measure_alexnet(evidence: Evidence) -> Quantities:
    """Log ratio of the modelled times per update of batch 256 on four cards and on one."""
    import math

    ratio = alexnet_time(256, 4) / alexnet_time(256, 1)
    yield "small-batch-multi-gpu", point(math.log(ratio), kind="proxy", note="Eq. 19 with the printed constants")


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


def draw_curves(found: list[Curve], figure: Figure) -> None:
    axes = figure.subplots()
    for batch, gpus, time, accuracy, _ in found:
        label = f"batch {batch}, {gpus} GPU{'s' if gpus > 1 else ''}"
        axes.plot(time[1:], accuracy[1:], label=label)
    alone = found[0]
    ideal = "ideal: one GPU four times as fast"
    axes.plot(alone.time[1:] / 4, alone.accuracy[1:], "k--", linewidth=0.8, label=ideal)
    axes.set_xscale("log")
    axes.set_xlabel("time by Eq. 19 (images of four saturated cards)")
    axes.set_ylabel("test accuracy (share), measured")
    axes.legend(fontsize="small")


def draw_mnist(evidence: Evidence, figure: Figure) -> None:
    draw_curves(curves(evidence, "fig6a", "mnist"), figure)


def draw_cifar(evidence: Evidence, figure: Figure) -> None:
    draw_curves(curves(evidence, "fig6b", "cifar"), figure)


def draw_alexnet(_: Evidence, figure: Figure) -> None:
    """Eq. 19 alone: time per image at each configuration, from the printed shares of Fig. 8."""
    axes = figure.subplots()
    configurations = CONFIGURATIONS["fig6c"]
    labels = [f"{batch}\n{gpus} GPU{'s' if gpus > 1 else ''}" for batch, gpus in configurations]
    axes.bar(labels, [alexnet_time(batch, gpus) / batch for batch, gpus in configurations])
    axes.axhline(1.0, color="0.5", linestyle="--", linewidth=0.8)
    axes.set_xlabel("batch size and cards")
    axes.set_ylabel("time per image (four saturated cards = 1)")


ARTIFACTS = (
    Artifact(
        "isgd/fig6a",
        "MNIST accuracy against time for four GPU and batch configurations",
        mnist_runs,
        (measure_mnist, measure_configurations),
        draw_mnist,
        "Accuracy against modelled time for batch 64 on one GPU and 1000 to 3000 on four.",
    ),
    Artifact(
        "isgd/fig6b",
        "CIFAR-10 accuracy against time for five GPU and batch configurations",
        cifar_runs,
        (measure_cifar, measure_configurations),
        draw_cifar,
        "Accuracy against modelled time for batch 100 on one GPU and 200 to 10,000 on four.",
    ),
    Artifact(
        "isgd/fig6c",
        "ImageNet time at five GPU and batch configurations (stand-in: Eq. 19 with printed constants)",
        imagenet_runs,
        (measure_alexnet, measure_configurations, measure_long_run, measure_nvidia_hours),
        draw_alexnet,
        "Modelled time per image at five configurations; 1000 and more on four cards are fastest.",
    ),
)
