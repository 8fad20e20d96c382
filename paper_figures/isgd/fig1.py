"""Fig. 1: losses of ten CIFAR-10 batches trained in a fixed cycle.

With i.i.d. batches (a) the losses fall together, but at clearly separate speeds: some batches are fully trained
hundreds of epochs before others. With batches of a single class each (b) every loss falls by itself. From this the
paper concludes that batches should be trained inconsistently: longer where the loss is high.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.isgd.readings import kind_of
from paper_figures.isgd.settings import CIFAR, DIGITS, train
from suite.claims.measured import point
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cycle(profile: str, kind: str) -> tuple[RunSpec, ...]:
    """SGD on ten batches in a fixed cycle, 1,000 pictures each as printed for Fig. 1a."""
    sizes = {"smoke": (100, 30), "reduced": (1000, 40), "paper": (1000, 2200 if kind == "balanced" else 1700)}
    batch, epochs = sizes[profile]
    base = {**(DIGITS if profile == "smoke" else CIFAR), "batch": batch}
    updates = 10 * epochs
    order = {"kind": kind, "batches": 10}
    return (train(base, 0, algorithm={"name": "sgd"}, updates=updates, every=updates, order=order),)


def iid_runs(profile: str) -> Groups:
    return {"iid": cycle(profile, "balanced")}


def single_class_runs(profile: str) -> Groups:
    return {**iid_runs(profile), "single": cycle(profile, "single-class")}


def traces(run: Run) -> Any:
    """Losses [epochs, 10] of a cycle of ten batches."""
    losses = run.curve("updates").sort_values("update")["loss"].to_numpy()
    return losses[: len(losses) // 10 * 10].reshape(-1, 10)


def mean_correlation(losses: Any) -> float:
    """Mean correlation of the epoch-to-epoch changes of every pair of batches."""
    import numpy as np

    changes = np.diff(losses, axis=0)
    matrix = np.corrcoef(changes.T)
    return float(matrix[np.triu_indices(10, 1)].mean())


def speed_spread(losses: Any) -> float:
    """(max - min) / mean of the ten losses, averaged over 20 epochs around a third of the run."""
    middle = len(losses) // 3
    around = losses[max(0, middle - 10) : middle + 10].mean(0)
    return float((around.max() - around.min()) / around.mean())


def completion(trace: Any, level: float = 0.01, window: int = 20) -> float:
    """Epoch from which the median loss of ``window`` epochs stays below ``level``; infinite if there is none."""
    import pandas as pd

    above = (pd.Series(trace).rolling(window).median().to_numpy() >= level).nonzero()[0]
    if not len(above):
        return 0.0
    return float("inf") if above[-1] == len(trace) - 1 else float(above[-1] + 1)


def measure_iid(evidence: Evidence) -> Quantities:
    """Fig. 1a: batches fall together but not equally fast; epochs of completion where the run reaches them."""
    import numpy as np

    run = evidence.run("iid")
    losses = traces(run)
    kind = kind_of(run.spec.settings["data"]["name"])
    note = f"{len(losses)} epochs of ten batches of {run.spec.settings['batch']}"
    shape = (speed_spread(losses), mean_correlation(losses))
    yield "distinct-speeds", point(shape, kind=kind, runs=[run.id], note=note)
    if len(losses) <= 400:
        return
    at = np.sort(losses[390:410].mean(0))
    yield "epoch400-b4", point(float(at[0]), kind=kind, runs=[run.id], note="lowest batch at epoch 400")
    yield "epoch400-b3", point(float(at[-1]), kind=kind, runs=[run.id], note="highest batch at epoch 400")
    yield "epoch400-spread", point(float(at[-1] / at[0]), kind=kind, runs=[run.id], note=note)
    yield from measure_completion(run, losses, kind)


def measure_completion(run: Run, losses: Any, kind: str) -> Quantities:
    """Epochs at which batches of Fig. 1a are fully trained, once all of them are."""
    import numpy as np

    done = np.array([completion(column) for column in losses.T])
    if not np.isfinite(done).all():
        return
    order, runs = done.argsort(), [run.id]
    second, last = float(done[order[1]]), float(done[order[-1]])
    yield "fast-batches-done", point(second, kind=kind, runs=runs)
    yield "all-done", point(last, kind=kind, runs=runs)
    yield "b7-still-training", point(last - second, kind=kind, runs=runs)
    after = losses[int(second) : int(second) + 500, order[:2]]
    yield "stay-trained", point(float((after < 0.1).all(1).mean()), kind=kind, runs=runs)
    yield "floor", point(float(np.median(losses[-100:])), kind=kind, runs=runs)


def measure_single_class(evidence: Evidence) -> Quantities:
    """Fig. 1b: single-class batches move independently, i.i.d. ones together."""
    single, iid = evidence.run("single"), evidence.run("iid")
    kind = kind_of(single.spec.settings["data"]["name"])
    apart, together = mean_correlation(traces(single)), mean_correlation(traces(iid))
    note = f"mean correlation of changes: single-class {apart:.2f}, i.i.d. {together:.2f}"
    yield "independent-speeds", point(speed_spread(traces(single)), kind=kind, runs=[single.id], note=note)
    yield "less-correlated-than-iid", point(together - apart, kind=kind, runs=[single.id, iid.id], note=note)


def draw_traces(run: Run, figure: Figure) -> None:
    losses = traces(run)
    axes = figure.subplots()
    for batch, column in enumerate(losses.T):
        axes.plot(range(len(column)), column, linewidth=0.9, label=f"batch {batch}")
    axes.axhline(0.001, color="0.5", linestyle="--", linewidth=0.8, label="fully trained, as drawn (0.001)")
    axes.set_xlabel("epoch (each batch once)")
    axes.set_ylabel("loss of the batch (nats)")
    axes.legend(ncols=2, fontsize="x-small")


def draw_iid(evidence: Evidence, figure: Figure) -> None:
    draw_traces(evidence.run("iid"), figure)


def draw_single_class(evidence: Evidence, figure: Figure) -> None:
    draw_traces(evidence.run("single"), figure)


ARTIFACTS = (
    Artifact(
        "isgd/fig1a",
        "Loss traces of ten i.i.d. CIFAR-10 batches trained in a fixed cycle",
        iid_runs,
        (measure_iid,),
        draw_iid,
        "Ten loss curves, one per batch, falling together at different speeds.",
    ),
    Artifact(
        "isgd/fig1b",
        "Loss traces of ten single-class CIFAR-10 batches trained in a fixed cycle",
        single_class_runs,
        (measure_single_class,),
        draw_single_class,
        "Ten loss curves, one per single-class batch, falling independently.",
    ),
)
