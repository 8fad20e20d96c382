"""Fig. 6: ISGD at several batch sizes and numbers of cards; training measured, time modelled by Eq. 19."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paper_figures.isgd import settings
from suite.claims.measured import point
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.runs.store import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SATURATION = {
    "mnist": 500,
    "cifar": 300,
    "imagenet": 150,
}  # images that fill one card (Fig. 7)
# Eq. 19's C2 in images of compute, from Fig. 8's printed share for LeNet: 23% of an iteration at batch 500
SYNCHRONISATION = 500 * 0.23 / 0.77
LENET_BYTES = 1_724_320


def time_per_update(kind: str, batch: int, gpus: int, size: int) -> float:
    """Eq. 19 for the paper's machine, in units of one image on four saturated cards.

    A card takes as long for fewer images as for a saturating batch (Fig. 7); synchronisation scales with the
    ``size`` of the weights in bytes. Every constant is printed; only ratios are meant.
    """
    compute = 4 / gpus * max(batch, gpus * SATURATION[kind])
    return compute + (SYNCHRONISATION * size / LENET_BYTES if gpus > 1 else 0.0)


def batch_curves(evidence: Evidence, kind: str) -> dict[str, tuple[Any, Any, Run]]:
    """Per batch size: modelled time on the paper's machine, test accuracy, the run."""
    first = "b64" if kind == "mnist" else "b100"
    found = {}
    for group in evidence.groups:
        run = evidence.run(group)
        each = time_per_update(kind, int(group[1:]), 1 if group == first else 4, 4 * run.results["parameters"])
        tests = run.curve("evaluations")
        found[group] = (tests["update"].to_numpy() * each, 1 - tests["test_error"].to_numpy(), run)
    return found


def measure_extreme(kind: str) -> Callable[[Evidence], Quantities]:
    """Figs. 6a, 6b: log of modelled time to a common accuracy, largest batch against the best moderate one."""

    def measure(evidence: Evidence) -> Quantities:
        import math

        curves = batch_curves(evidence, kind)
        if not curves:
            raise Missing("no runs at this profile")
        largest = max(curves, key=lambda g: int(g[1:]))
        target = min(float(accuracy.max()) for _, accuracy, _ in curves.values())
        times = {g: float(s[(a >= target).argmax()]) for g, (s, a, _) in curves.items()}
        moderate = min(t for g, t in times.items() if g != largest)
        note = f"time to {100 * target:.1f}% by Eq. 19, in images of four saturated cards: " + ", ".join(
            f"{g} {t:.3g}" for g, t in times.items()
        )
        ids = [run.id for *_, run in curves.values()]
        yield "extreme-batch-slower", point(math.log(times[largest] / moderate), kind="proxy", runs=ids, note=note)

    return measure


def draw_batches(kind: str) -> Callable[..., None]:
    def draw(evidence: Evidence, figure: Figure) -> None:
        curves = batch_curves(evidence, kind)
        if not curves:
            raise Missing("no runs at this profile")
        axes = figure.subplots()
        first = min(curves, key=lambda g: int(g[1:]))
        for group, (time, accuracy, _) in curves.items():
            gpus = "1 GPU" if group == first else "4 GPUs"
            axes.plot(time[1:], accuracy[1:], label=f"batch {group[1:]}, {gpus}")
        time, accuracy, _ = curves[first]
        axes.plot(time[1:] / 4, accuracy[1:], "k--", linewidth=0.8, label="ideal: one GPU four times as fast")
        axes.set_xscale("log")
        axes.set_xlabel("time by Eq. 19 (images of four saturated cards)")
        axes.set_ylabel("test accuracy (share), measured")
        axes.legend(fontsize="small")

    return draw


ARTIFACTS = (
    Artifact(
        "isgd/fig6a",
        "MNIST accuracy against time for four GPU and batch configurations",
        lambda profile: settings.batch_sizes(profile, "mnist"),
        (measure_extreme("mnist"),),
        draw_batches("mnist"),
        "Accuracy against modelled time for batch 64 on one GPU and 1000 to 3000 on four.",
    ),
    Artifact(
        "isgd/fig6b",
        "CIFAR-10 accuracy against time for five GPU and batch configurations",
        lambda profile: settings.batch_sizes(profile, "cifar"),
        (measure_extreme("cifar"),),
        draw_batches("cifar"),
        "Accuracy against modelled time for batch 100 on one GPU and 200 to 10,000 on four.",
    ),
)
