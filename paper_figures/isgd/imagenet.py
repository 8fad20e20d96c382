"""ISGD on ImageNet (Figs. 2, 5c, 5f, 6c): the runs where the user has the data, and CIFAR-10 stand-ins.

The paper's settings: AlexNet, batch 1000, rate 0.015 falling to a tenth and a hundredth when the average loss
passes 2.0 and 1.2, a test every 900 s. Without ImageNet the drawings show the same curves of Caffe-Quick on
CIFAR-10, stamped *proxy*, and no claim is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.isgd import batch_sizes, settings
from suite.claims.measured import point
from suite.experiment import Body, Experiment
from suite.models.table import counts
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES, TESTS = 1_281_167, 95  # training images; tests of SGD until 80.9% top-5, as printed
ALEXNET = {
    "model": {"name": "caffe_alexnet"},
    "side": 256,
    "crop": 227,
    "descent": {"rule": "caffe", "momentum": 0.9, "decay": 5e-4, "multipliers": True},
    "rate": 0.015,
    "batch": 1000,
}


def run(algorithm: str, batch: int, updates: int, **changes: object) -> RunSpec:
    """A streamed run: the loss-guided rate of section 3.3, ``evaluate`` counted in updates."""
    chosen = {"name": "isgd", "batches": "epoch", "zeta": 0.015, "stop": 5 if algorithm == "isgd" else 0}
    chosen |= {"margin": 3.0, "thresholds": [2.0, 1.2], "factors": [1.0, 0.1, 0.01]}
    evaluate = {"every": max(1, updates // TESTS), "examples": 50_000}
    base = {**ALEXNET, "batch": batch, "algorithm": chosen, "updates": updates, "evaluate": evaluate}
    return RunSpec("isgd/imagenet", {**base, **changes})


def pair_runs(profile: str) -> Groups:
    """Figs. 2, 5c, 5f at the paper's profile: both methods for 60 epochs; SGD is ISGD with ``stop`` 0."""
    if profile != "paper":
        return {}
    updates = 60 * -(-IMAGES // 1000)
    return {"sgd": (run("sgd", 1000, updates),), "isgd": (run("isgd", 1000, updates),)}


def batch_runs(profile: str) -> Groups:
    """Fig. 6c at the paper's profile: ISGD at each printed batch size, one device standing for all."""
    if profile != "paper":
        return {}
    return {f"b{b}": (run("isgd", b, 60 * -(-IMAGES // b)),) for b in (256, 1000, 1536, 3400)}


def _load() -> Body:
    from paper_figures.isgd.imagenet_experiment import imagenet

    return imagenet


def _seconds(spec: RunSpec) -> float:
    work = 3 * spec.settings["updates"] * spec.settings["batch"]
    return work * counts(spec.settings["model"]["name"]).flops_per_example / 4e10


EXPERIMENTS = {"isgd/imagenet": Experiment(_load, _seconds, lambda spec: ("imagenet",), lambda spec: 8_000_000_000)}


def with_stand_in(own: Groups, profile: str) -> Groups:
    """The ImageNet runs, and at smaller profiles the CIFAR-10 pairs drawn in their place."""
    return own or settings.cifar_pairs(profile)


def measure_gain(evidence: Evidence) -> Quantities:
    """Updates that ISGD saves until 80.9% top-5 and 56% top-1 accuracy, where ImageNet was trained on."""
    if not pair_runs(evidence.profile):
        raise Missing("runs on ImageNet")
    sgd, isgd = evidence.run("sgd"), evidence.run("isgd")
    ids = [sgd.id, isgd.id]
    for quantity, column, error in (("gain-abstract", "test_error", 0.44), ("gain", "top5_error", 0.191)):
        times = []
        for stored in (sgd, isgd):
            table = stored.curve("evaluations")
            reached = table.loc[table[column] <= error, "update"]
            if not len(reached):
                raise Missing(f"a run that reaches {1 - error:.1%}")
            times.append(float(reached.iloc[0]))
        yield quantity, point(100 * (times[0] - times[1]) / times[0], kind="measured", runs=ids)


def measure_stand_in(evidence: Evidence) -> Quantities:
    """Without ImageNet: ISGD's lead in test accuracy on the CIFAR-10 stand-in, averaged over tests and seeds."""
    if pair_runs(evidence.profile):
        return
    sgd, isgd = evidence.runs("sgd"), evidence.runs("isgd")
    leads = [
        float((a.curve("evaluations")["test_error"] - b.curve("evaluations")["test_error"]).mean())
        for a, b in zip(sgd, isgd, strict=True)
    ]
    lead = 100 * sum(leads) / len(leads)
    note = f"CIFAR-10 stand-in: ISGD ahead by {lead:+.3f} points on average"
    share = sum(value > 0 for value in leads) / len(leads)
    yield "isgd-above-sgd", point(share, kind="proxy", n=len(sgd), runs=[r.id for r in (*sgd, *isgd)], note=note)


def measure_model(evidence: Evidence) -> Quantities:
    """Fig. 6c by Eq. 19: log ratio of the times per update of batch 256 on four cards and on one."""
    import math

    ratio = time_per_update(256, 4) / time_per_update(256, 1)
    yield "small-batch-multi-gpu", point(math.log(ratio), kind="proxy", note="Eq. 19 with the printed constants")


def time_per_update(batch: int, gpus: int) -> float:
    """Eq. 19 for AlexNet on the paper's machine, in images of four saturated cards; constants as printed."""
    synchronisation = 500 * 0.45 / 0.55  # 45% of an iteration at batch 500 (Fig. 8)
    compute = 4 / gpus * max(batch, gpus * batch_sizes.SATURATION["imagenet"])
    return compute + (synchronisation if gpus > 1 else 0.0)


def draw_pairs(column: str, ylabel: str, accuracy: bool) -> object:
    """Figs. 5c, 5f: both methods on ImageNet, else the CIFAR-10 stand-in."""

    def draw(evidence: Evidence, figure: Figure) -> None:
        import numpy as np

        axes = figure.subplots()
        data = "ImageNet" if evidence.runs("sgd")[0].spec.experiment == "isgd/imagenet" else "CIFAR-10 stand-in"
        for group, colour in (("sgd", "C0"), ("isgd", "C1")):
            tables = [stored.curve("evaluations") for stored in evidence.runs(group)]
            name = column if column in tables[0] else "test_loss"
            curves = np.array([table[name].to_numpy() for table in tables])
            mean = 1 - curves.mean(0) if accuracy and name.endswith("error") else curves.mean(0)
            updates = tables[0]["update"].to_numpy()
            axes.plot(updates[1:], mean[1:], color=colour, label=f"{group.upper()}, {data}")
        axes.set_xlabel("gradient evaluations")
        axes.set_ylabel(ylabel if data == "ImageNet" or column == "test_error" else "test loss (nats)")
        axes.legend()

    return draw


def draw_model(evidence: Evidence, figure: Figure) -> None:
    """Fig. 6c by Eq. 19 alone: time of an epoch at each configuration, from the printed shares of Fig. 8."""
    axes = figure.subplots()
    labels, epochs = [], []
    for batch, gpus in ((256, 1), (256, 4), (1000, 4), (1536, 4), (3400, 4)):
        labels.append(f"{batch}\n{gpus} GPU{'s' if gpus > 1 else ''}")
        epochs.append(time_per_update(batch, gpus) / batch)
    axes.bar(labels, epochs)
    axes.axhline(1.0, color="0.5", linestyle="--", linewidth=0.8)
    axes.set_xlabel("batch size and cards")
    axes.set_ylabel("time per image (four saturated cards = 1)")


ARTIFACTS = (
    Artifact(
        "isgd/fig5c",
        "ImageNet top-1 accuracy, SGD and ISGD (stand-in: CIFAR-10)",
        lambda profile: with_stand_in(pair_runs(profile), profile),
        (measure_gain, measure_stand_in),
        draw_pairs("test_error", "top-1 test accuracy (share)", True),  # type: ignore[arg-type]
        "Test accuracy of SGD and ISGD against gradient evaluations.",
    ),
    Artifact(
        "isgd/fig5f",
        "ImageNet top-5 accuracy, SGD and ISGD (stand-in: test loss on CIFAR-10)",
        lambda profile: with_stand_in(pair_runs(profile), profile),
        (measure_gain, measure_stand_in),
        draw_pairs("top5_error", "top-5 test accuracy (share)", True),  # type: ignore[arg-type]
        "Top-5 accuracy, or in its place the test loss on CIFAR-10, of SGD and ISGD.",
    ),
    Artifact(
        "isgd/fig6c",
        "ImageNet time at five GPU and batch configurations (stand-in: Eq. 19 with printed constants)",
        batch_runs,
        (measure_model,),
        draw_model,
        "Modelled time per image at five configurations; 1000 and more on four cards are fastest.",
    ),
)
