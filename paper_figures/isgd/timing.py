"""ISGD's measurements of time: device saturation (Fig. 7), synchronisation share (Fig. 8), Eq. 19.

Timings run on the machine at hand; the shares at four GPUs combine measured compute with a modelled link, so
on a CPU every quantity that the paper measured on TITAN X cards is a *proxy*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from suite.claims.measured import point
from suite.experiment import Body, Experiment
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETWORKS = {"mnist": "caffe_lenet", "cifar": "caffe_cifar_quick", "imagenet": "caffe_alexnet"}
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "smoke": {"mnist": (1, 4, 16, 64, 256), "cifar": (1, 4, 16, 64)},
    "reduced": {
        "mnist": (1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 1000, 3000),
        "cifar": (1, 2, 4, 8, 16, 32, 64, 128, 300, 600, 1000),
        "imagenet": (1, 2, 4, 8, 16),
    },
    "paper": dict.fromkeys(NETWORKS, (1, 8, 32, 64, 100, 150, 300, 500, 600, 1000, 1500, 2000, 2500, 3000)),
}
LINK = {"latency": 2e-5, "bandwidth": 6e9}  # PCIe 3.0 between two cards of 2016: about 6 GB/s per direction
FULL = 1.05  # saturated: at most this multiple of the least time per image


def latency_runs(kind: str) -> Callable[[str], dict[str, tuple[RunSpec, ...]]]:
    """One timing run per network: seconds per gradient at each batch size."""

    def runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
        if kind not in SIZES[profile]:
            return {}
        settings = {
            "model": NETWORKS[kind],
            "batches": SIZES[profile][kind],
            "repeats": 5 if profile != "smoke" else 3,
        }
        return {kind: (RunSpec("isgd/latency", settings),)}

    return runs


def all_latencies(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """The timing runs of the three networks."""
    return {kind: latency_runs(kind)(profile)[kind] for kind in SIZES[profile]}


def load_latency() -> Body:
    from paper_figures.isgd.latency import latency

    return latency


def latency_seconds(spec: RunSpec) -> float:
    from suite.models.table import counts

    images = sum(spec.settings["batches"]) * (spec.settings["repeats"] + 1)
    return 0.3 + 3 * images * counts(spec.settings["model"]).flops_per_example / 4e10


EXPERIMENTS = {"isgd/latency": Experiment(load_latency, latency_seconds)}


def table(evidence: Evidence, kind: str) -> tuple[Any, Any, Any, str]:
    """Batch sizes, median seconds per gradient, relative spread (quartiles), run id."""
    run = evidence.run(kind)
    frame = run.curve("latency").groupby("batch")["seconds"]
    median, spread = frame.median(), (frame.quantile(0.75) - frame.quantile(0.25)) / frame.median()
    return median.index.to_numpy(), median.to_numpy(), spread.to_numpy(), run.id


def saturation(batches: Any, seconds: Any) -> float:
    """Smallest batch from which the time per image stays within FULL of its minimum; infinite if none."""
    per_image = seconds / batches
    good = per_image <= FULL * per_image.min()
    bad = (~good).nonzero()[0]
    first = bad[-1] + 1 if len(bad) else 0
    return float(batches[first]) if first < len(batches) else float("inf")


def shape(batches: Any, per_image: Any) -> tuple[float, float]:
    """Log ratio of the ends, and how much steeper the first third of the log axis falls than the last."""
    import numpy as np

    x, y = np.log(batches), np.log(per_image)
    ends = np.interp([x[0], x[0] + (x[-1] - x[0]) / 3, x[-1] - (x[-1] - x[0]) / 3, x[-1]], x, y)
    first, last = ends[0] - ends[1], abs(ends[2] - ends[3])
    return float(y[0] - y[-1]), float(first / max(last, 1e-3))


def measure_saturation(kind: str) -> Callable[[Evidence], Quantities]:
    def measure(evidence: Evidence) -> Quantities:
        batches, seconds, _, run_id = table(evidence, kind)
        per_image = seconds / batches
        device = evidence.run(kind).environment["execution"]["device"]
        own = "measured" if device == "cuda" and evidence.profile == "paper" else "proxy"
        note = f"on this {device}: within {FULL - 1:.0%} of the least time per image"
        yield "saturation-1gpu", point(saturation(batches, seconds), kind=own, runs=[run_id], note=note)
        yield "falls-then-flat", point(shape(batches, per_image), kind=own, runs=[run_id], note=note)

    return measure


def measure_order(evidence: Evidence) -> Quantities:
    """Saturating batch: ImageNet, CIFAR-10, MNIST in increasing order, as steps of its logarithm."""
    import math

    found = {kind: saturation(*table(evidence, kind)[:2]) for kind in NETWORKS}
    ids = [evidence.run(kind).id for kind in NETWORKS]
    if not all(math.isfinite(size) for size in found.values()):
        raise Missing(f"a saturating batch size for every network (found {found})")
    steps = [math.log(found[b] / found[a]) for a, b in (("imagenet", "cifar"), ("cifar", "mnist"))]
    yield "order-datasets", point(steps, kind="proxy", runs=ids, note=str(found))


def draw_latency(kind: str) -> Callable[..., None]:
    def draw(evidence: Evidence, figure: Figure) -> None:
        batches, seconds, spread, _ = table(evidence, kind)
        per_image = seconds / batches
        axes = figure.subplots()
        relative = per_image / per_image.max()
        axes.errorbar(batches, relative, yerr=relative * spread / 2, marker="o", markersize=3, capsize=2)
        axes.axvline(saturation(batches, seconds), color="0.5", linestyle="--", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xlabel("batch size (images)")
        axes.set_ylabel("time per image / largest (measured here)")

    return draw


def shares(evidence: Evidence, kind: str) -> tuple[Any, Any]:
    """Synchronisation share of an iteration on four devices like this one, joined by the modelled link."""
    import numpy as np

    from suite.clock import Link
    from suite.models.table import counts

    batches, seconds, *_ = table(evidence, kind)
    communication = Link(**LINK).tree_allreduce(4 * counts(NETWORKS[kind]).parameters, 4)
    quarter = np.interp(batches / 4, batches, seconds)
    return batches, communication / (communication + quarter)


def measure_share(evidence: Evidence) -> Quantities:
    """Fig. 8's shape: the share falls with the batch and grows with the weights per unit of compute."""
    ids = [evidence.run(kind).id for kind in NETWORKS]
    if len(table(evidence, "imagenet")[0]) < 2:
        raise Missing("two batch sizes of AlexNet")
    curves = {kind: shares(evidence, kind)[1] for kind in NETWORKS}
    note = f"compute measured here, link modelled ({LINK['bandwidth'] / 1e9:.0f} GB/s, tree)"
    fall = {kind: float(curve[0] - curve[-1]) for kind, curve in curves.items()}
    least = min(fall["mnist"], fall["imagenet"], fall["imagenet"] - fall["mnist"])
    yield "falls", point(100 * least, kind="proxy", runs=ids, note=note)
    yield "caffe-quick-low", point(100 * float(curves["cifar"].max()), kind="proxy", runs=ids, note=note)
    last = min(len(curve) for curve in curves.values()) - 1
    steps = (curves["mnist"][last] - curves["cifar"][last], curves["imagenet"][last] - curves["mnist"][last])
    yield "order", point([100 * float(s) for s in steps], kind="proxy", runs=ids, note=note)


def draw_share(evidence: Evidence, figure: Figure) -> None:
    axes = figure.subplots()
    for kind in evidence.groups:
        batches, share = shares(evidence, kind)
        axes.plot(batches, 100 * share, marker="o", markersize=3, label=NETWORKS[kind])
    axes.plot([500, 3000], [23, 10], "s", color="0.4", label="printed, LeNet")
    axes.plot([500, 3000], [45, 16], "^", color="0.4", label="printed, AlexNet")
    axes.set_xscale("log")
    axes.set_xlabel("batch size (images)")
    axes.set_ylabel("synchronisation (% of an iteration)")
    axes.legend(fontsize="small")


def measure_linear(evidence: Evidence) -> Quantities:
    """Eq. 19 on one device: share of the variance of iteration time that a straight line explains."""
    import numpy as np

    worst, notes, ids = 1.0, [], []
    for kind in evidence.groups:
        batches, seconds, _, run_id = table(evidence, kind)
        if len(batches) < 3:
            raise Missing(f"three batch sizes of {kind}")
        slope, intercept = np.polyfit(batches, seconds, 1)
        residual = seconds - (slope * batches + intercept)
        worst = min(worst, float(1 - residual.var() / seconds.var()))
        notes.append(f"{kind}: C1 {1 / slope:.3g} images/s, intercept {1e3 * intercept:.2g} ms")
        ids.append(run_id)
    yield "linear", point(worst, kind="proxy", runs=ids, note="; ".join(notes) + "; R squared, the worst")


def draw_linear(evidence: Evidence, figure: Figure) -> None:
    import numpy as np

    axes = figure.subplots()
    for position, kind in enumerate(evidence.groups):
        batches, seconds, *_ = table(evidence, kind)
        axes.plot(batches, seconds, "o", color=f"C{position}", markersize=3, label=NETWORKS[kind])
        if len(batches) > 2:
            slope, intercept = np.polyfit(batches, seconds, 1)
            axes.plot(batches, slope * batches + intercept, color=f"C{position}", linewidth=0.9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("batch size (images)")
    axes.set_ylabel("time of one gradient (s), measured here")
    axes.legend(fontsize="small")


ARTIFACTS = (
    *(
        Artifact(
            f"isgd/fig7{letter}",
            f"Normalised latency against batch size, {name}",
            latency_runs(kind),
            (measure_saturation(kind),),
            draw_latency(kind),
            "Time per image falls with the batch size and levels off.",
        )
        for letter, kind, name in (("b", "cifar", "CIFAR-10"), ("c", "imagenet", "ImageNet (synthetic images)"))
    ),
    Artifact(
        "isgd/fig7a",
        "Normalised latency against batch size, MNIST",
        all_latencies,
        (measure_saturation("mnist"), measure_order),
        draw_latency("mnist"),
        "Time per image falls with the batch size and levels off.",
    ),
    Artifact(
        "isgd/fig8",
        "Share of iteration time spent on synchronisation against batch size on four devices",
        all_latencies,
        (measure_share,),
        draw_share,
        "The share falls with batch size for all three networks, with the printed points beside them.",
    ),
    Artifact(
        "isgd/eq19",
        "Time of one gradient against batch size",
        all_latencies,
        (measure_linear,),
        draw_linear,
        "Time of one gradient against batch size with a fitted line for each network.",
    ),
)
