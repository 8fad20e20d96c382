"""Fig. 1: losses of ten CIFAR-10 batches trained in a fixed cycle.

With i.i.d. batches (a) the losses fall together, but at clearly separate speeds: some batches are fully trained
hundreds of epochs before others. With batches of a single class each (b) every loss falls by itself. From this the
paper concludes that batches should be trained inconsistently: longer where the loss is high.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from paper_figures.isgd.readings import embedded
from paper_figures.isgd.settings import CIFAR, DIGITS, train
from suite.claims.estimate import Estimate, interval, point
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.papers.counterfeits import counterfeit, edited, exchanged, forged, genuine
from suite.papers.published import printed_value
from suite.report.style import PRINTED
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EPOCHS = {"balanced": 2200, "single-class": 1700}  # a little more than the last epoch that the text names
LONG = 1000  # epochs below which a run says nothing of when batches are done
NEVER = 1e9  # epochs
TRAINED = 0.01  # nats, below which a batch is fully trained
WINDOW = 20  # epochs whose median tells a batch that is done from a low point
SLOW_CLASSES = (3, 4, 5, 9)  # 2.3.1


def cycle(profile: str, kind: str) -> tuple[RunSpec, ...]:
    """SGD on ten batches in a fixed cycle, 1,000 pictures each as printed for Fig. 1a."""
    sizes = {"smoke": (100, 30), "reduced": (1000, 40), "paper": (1000, EPOCHS[kind])}
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
    """(max - min) / mean of the ten losses, averaged over 20 epochs around the one that halves their mean."""
    mean = losses.mean(1)
    below = (mean < mean[0] / 2).nonzero()[0]
    middle = int(below[0]) if len(below) else len(losses)
    around = losses[max(0, middle - 10) : middle + 10].mean(0)
    return float((around.max() - around.min()) / around.mean())


def completion(trace: Any, level: float = TRAINED, window: int = WINDOW) -> float:
    """First epoch at which the median loss of ``window`` epochs lies below ``level``; infinite if there is none.

    What comes later is no training: a batch that has been fitted for a thousand epochs and is disturbed was done.
    """
    import pandas as pd

    below = (pd.Series(trace).rolling(window).median().to_numpy() < level).nonzero()[0]
    return float(below[0]) if len(below) else float("inf")


class Cycle(NamedTuple):
    """A run on a cycle of ten batches: its losses [epochs, 10], when each batch was done, and what it is called."""

    losses: Any
    done: Any  # [10] epochs, infinite where a batch was not fully trained by the end
    proxy: bool
    id: str

    @property
    def epochs(self) -> int:
        return len(self.losses)

    def value(self, found: float | tuple[float, ...], note: str = "") -> Estimate:
        return point(found, runs=[self.id], note=note, proxy=self.proxy)

    def epoch(self, found: float) -> Estimate:
        """An epoch of completion; where it lies beyond the run's end, anything from there on."""
        if math.isfinite(found):
            return self.value(found)
        note = f"not fully trained after {self.epochs} epochs"
        return interval(self.epochs, self.epochs, NEVER, runs=[self.id], note=note, proxy=self.proxy)

    def floor(self) -> Estimate:
        """Median loss of the batches done, over the last 100 epochs. Raises Missing where there is none."""
        import numpy as np

        trained = np.isfinite(self.done)
        if not trained.any():
            raise Missing(f"a batch that is fully trained after {self.epochs} epochs")
        return self.value(float(np.median(self.losses[-100:, trained])), f"{int(trained.sum())} batches")


def cycle_of(run: Run) -> Cycle:
    import numpy as np

    losses = traces(run)
    done = np.array([completion(column) for column in losses.T])
    return Cycle(losses, done, embedded(run.spec.settings["data"]["name"]), run.id)


def measure_iid(evidence: Evidence) -> Quantities:
    """Fig. 1a: batches fall together but not equally fast."""
    run = evidence.run("iid")
    found = cycle_of(run)
    note = f"{found.epochs} epochs of ten batches of {run.spec.settings['batch']}"
    yield "distinct-speeds", found.value((speed_spread(found.losses), mean_correlation(found.losses)), note)


def measure_epoch_400(evidence: Evidence) -> Quantities:
    """Fig. 1a at epoch 400, averaged over 20 epochs: lowest and highest batch, which the paper numbers 4 and 3."""
    found = cycle_of(evidence.run("iid"))
    if found.epochs < 410:
        raise Missing("410 epochs")
    at = found.losses[390:410].mean(0)
    low, high = float(at.min()), float(at.max())
    yield "epoch400-b4", found.value(low, "lowest batch")
    yield "epoch400-b3", found.value(high, "highest batch")
    yield "epoch400-spread", found.value(high / low)


def measure_completion(evidence: Evidence) -> Quantities:
    """Fig. 1a: the epochs at which batches are fully trained, and what they do from then on."""
    found = cycle_of(evidence.run("iid"))
    if found.epochs < LONG:
        raise Missing(f"{LONG} epochs")
    order = found.done.argsort()
    second, last = (float(found.done[order[place]]) for place in (1, -1))
    yield "fast-batches-done", found.epoch(second)
    yield "all-done", found.epoch(last)
    if math.isfinite(second):
        yield "b7-still-training", found.value(min(last, found.epochs) - second, "at least, if not all are done")
        after = found.losses[int(second) : int(second) + 500, order[:2]]
        yield "stay-trained", found.value(float((after < 0.1).all(1).mean()), f"{len(after)} epochs")
    yield "floor", found.floor()


def measure_single_class(evidence: Evidence) -> Quantities:
    """Fig. 1b: single-class batches each fall at a speed of their own."""
    found = cycle_of(evidence.run("single"))
    note = f"mean correlation of changes {mean_correlation(found.losses):.2f}, {found.epochs} epochs"
    yield "independent-speeds", found.value(speed_spread(found.losses), note)


def measure_correlations(evidence: Evidence) -> Quantities:
    """Fig. 1b against 1a: single-class batches move independently, i.i.d. ones together."""
    single, iid = evidence.run("single"), evidence.run("iid")
    apart, together = mean_correlation(traces(single)), mean_correlation(traces(iid))
    proxy = embedded(single.spec.settings["data"]["name"])
    note = f"mean correlation of changes: single-class {apart:.2f}, i.i.d. {together:.2f}"
    yield "less-correlated-than-iid", point(together - apart, runs=[single.id, iid.id], note=note, proxy=proxy)


def measure_single_completion(evidence: Evidence) -> Quantities:
    """Fig. 1b: the epochs at which named batches are fully trained; batch i holds class i."""
    found = cycle_of(evidence.run("single"))
    if found.epochs < LONG:
        raise Missing(f"{LONG} epochs")
    slow = list(SLOW_CLASSES)
    others = [batch for batch in range(10) if batch not in SLOW_CLASSES]
    yield "b8-b9-done", found.epoch(float(found.done[[8, 9]].max()))
    yield "b6-b7-done", found.epoch(float(found.done[[6, 7]].max()))
    ends = found.done.clip(max=found.epochs)
    if math.isfinite(found.done[others].max()):
        yield (
            "slow-batches",
            found.value(float(ends[slow].min() - ends[others].max()), "at least, if not all are done"),
        )
    done = found.done[[8, 9]].max()
    if math.isfinite(done):
        after = found.losses[int(done) : int(done) + 200, [8, 9]]
        yield "late-variation", found.value(float((after.std(0) / after.mean(0)).min()), f"{len(after)} epochs")
    yield "floor", found.floor()


def told(evidence: Evidence, group: str, change: Callable[[Any], Any]) -> Evidence:
    """The same run with other losses [epochs, 10]."""

    def other(run: Run) -> Run:
        losses = change(traces(run))
        rows = run.curve("updates").sort_values("update").iloc[: losses.size]
        return forged(run, updates=rows.assign(loss=losses.ravel()))

    return edited(evidence, other, group)


def alike(losses: Any) -> Any:
    return losses * 0 + losses.mean(1, keepdims=True)


@counterfeit("isgd/fig1a/distinct-speeds", "isgd/fig1a/epoch400-spread", "isgd/fig1a/b7-still-training")
def iid_alike(evidence: Evidence) -> Evidence:
    """All ten batches have the same loss."""
    return told(evidence, "iid", alike)


@counterfeit("isgd/fig1b/independent-speeds", "isgd/fig1b/slow-batches")
def single_alike(evidence: Evidence) -> Evidence:
    return told(evidence, "single", alike)


@counterfeit("isgd/fig1a/epoch400-b4", "isgd/fig1a/epoch400-b3", "isgd/fig1a/floor")
def iid_thrice(evidence: Evidence) -> Evidence:
    """Losses are three times as high."""
    return told(evidence, "iid", lambda losses: 3 * losses)


@counterfeit("isgd/fig1b/floor")
def single_thrice(evidence: Evidence) -> Evidence:
    return told(evidence, "single", lambda losses: 3 * losses)


def half_way(losses: Any) -> Any:
    """Trained twice as fast, and kept where that ends."""
    import numpy as np

    return losses[np.minimum(2 * np.arange(len(losses)), len(losses) - 1)]


@counterfeit("isgd/fig1a/fast-batches-done", "isgd/fig1a/all-done")
def iid_twice_as_fast(evidence: Evidence) -> Evidence:
    return told(evidence, "iid", half_way)


@counterfeit("isgd/fig1b/b8-b9-done", "isgd/fig1b/b6-b7-done", "isgd/fig1b/late-variation")
def single_twice_as_fast(evidence: Evidence) -> Evidence:
    """And without spikes: the median of 20 epochs."""
    import pandas as pd

    return told(
        evidence, "single", lambda x: half_way(pd.DataFrame(x).rolling(20, min_periods=1).median().to_numpy())
    )


@counterfeit("isgd/fig1a/stay-trained")
def forgotten(evidence: Evidence) -> Evidence:
    """Every tenth epoch all batches are at a loss of one."""
    import numpy as np

    return told(evidence, "iid", lambda losses: np.where(np.arange(len(losses))[:, None] % 10 == 0, 1.0, losses))


def as_printed(epochs: int, at_400: Sequence[float], done: Sequence[float], spikes: Sequence[int] = ()) -> Any:
    """Losses [epochs, 10] as the text describes them: from log 10 past those of epoch 400 to 0.001 once done.

    Batches in ``spikes`` jump to 0.2 every fifteenth epoch from then on.
    """
    import numpy as np

    at, columns = np.arange(epochs), []
    for batch, (middle, end) in enumerate(zip(at_400, done, strict=True)):
        knots = np.log([math.log(10), middle, 0.0099, 0.001, 0.001])
        loss = np.exp(np.interp(at, [0, 400, end, end + 40, 10 * epochs], knots))
        columns.append(np.where((at > end) & (at % 15 == 0), 0.2, loss) if batch in spikes else loss)
    return np.stack(columns, 1)


@genuine(*(f"isgd/fig1a/{name}" for name in (
    *("distinct-speeds", "epoch400-b4", "epoch400-b3", "epoch400-spread", "fast-batches-done", "all-done"),
    *("stay-trained", "b7-still-training", "floor"),
)))  # fmt: skip
def iid_as_printed(evidence: Evidence) -> Evidence:
    at_400 = [0.9, 0.9, 0.8, 1.3, 0.5, 0.9, 1.0, 1.2, 1.0, 0.8]
    done = [1800, 1850, 1600, 2100, 1900, 1900, 1950, 2050, 2000, 1600]
    return told(evidence, "iid", lambda losses: as_printed(len(losses), at_400, done))


@genuine("isgd/fig1b/slow-batches")
def named_ones_last(evidence: Evidence) -> Evidence:
    """Batches 3, 4, 5 and 9 are done from epoch 1600 on, the others before; 9 is not as 2.4 has it."""
    done = [1200, 1200, 1250, 1620, 1640, 1620, 1500, 1550, 1350, 1600]
    return told(evidence, "single", lambda losses: as_printed(len(losses), [1.0] * 10, done))


@genuine(*(f"isgd/fig1b/{name}" for name in (
    *("independent-speeds", "b8-b9-done", "b6-b7-done", "late-variation", "floor"),
)))  # fmt: skip
def single_as_printed(evidence: Evidence) -> Evidence:
    done = [1200, 1200, 1250, 1620, 1640, 1620, 1500, 1550, 1350, 1400]
    at_400 = [0.5, 0.6, 0.7, 1.6, 1.5, 1.4, 0.9, 0.8, 0.6, 1.2]
    return told(evidence, "single", lambda losses: as_printed(len(losses), at_400, done, spikes=(8, 9)))


@counterfeit("isgd/fig1b/less-correlated-than-iid")
def kinds_exchanged(evidence: Evidence) -> Evidence:
    return exchanged(evidence, "iid", "single")


def frame(run: Run) -> pd.DataFrame:
    """A row per epoch and batch: its loss in nats."""
    import pandas as pd

    table = pd.DataFrame(traces(run)).rename_axis(index="epoch", columns="batch")
    return table.stack().rename("loss").reset_index()


def frame_iid(evidence: Evidence) -> pd.DataFrame:
    return frame(evidence.run("iid"))


def frame_single_class(evidence: Evidence) -> pd.DataFrame:
    return frame(evidence.run("single"))


def draw_traces(table: pd.DataFrame, axes: Axes, length: int) -> None:
    """Ten curves over the paper's length even where ours is shorter; the losses span decades."""
    import seaborn as sns

    look: dict[str, Any] = {"linewidth": 0.6, "palette": "tab10", "legend": "full", "errorbar": None}
    sns.lineplot(table, x="epoch", y="loss", hue="batch", estimator=None, ax=axes, **look)
    axes.axhline(TRAINED, color="0.3", linestyle="--", linewidth=1, label=f"trained: below {TRAINED:g}")
    epochs = int(table["epoch"].max()) + 1
    if epochs < length:
        axes.axvspan(epochs, length, color="0.5", alpha=0.12, linewidth=0)
        axes.text((epochs + length) / 2, 1.2, f"not run: {epochs} of {length} epochs", ha="center")
    axes.set(xlim=(0, length), yscale="log", ylim=(1e-3, 4), xlabel="epoch (each batch once)", ylabel="loss (nats)")


def draw_printed(axes: Axes, *trained: str) -> None:
    """The epochs at which the text calls batches trained, and the legend."""
    for claim in trained:
        axes.plot(printed_value(claim), TRAINED, "D", markersize=7, label="printed: trained", **PRINTED)
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))  # each label once
    axes.legend(handles.values(), handles.keys(), title="batch", loc="upper left", bbox_to_anchor=(1, 1))


def draw_iid(evidence: Evidence, figure: Figure) -> None:
    """Fig. 1a, with what the text reads off it as open markers."""
    axes, run = figure.subplots(), evidence.run("iid")
    draw_traces(frame(run), axes, EPOCHS["balanced"])
    for claim in ("isgd/fig1a/epoch400-b4", "isgd/fig1a/epoch400-b3"):
        axes.plot(400, printed_value(claim), "o", markersize=7, label="printed: losses of two", **PRINTED)
    draw_printed(axes, "isgd/fig1a/fast-batches-done", "isgd/fig1a/all-done")
    axes.set_title(title(run, "ten i.i.d. batches"))


def draw_single_class(evidence: Evidence, figure: Figure) -> None:
    """Fig. 1b, with the printed epochs of completion as open markers."""
    axes, run = figure.subplots(), evidence.run("single")
    draw_traces(frame(run), axes, EPOCHS["single-class"])
    draw_printed(axes, "isgd/fig1b/b8-b9-done", "isgd/fig1b/b6-b7-done")
    axes.set_title(title(run, "ten batches of one class each"))


def title(run: Run, what: str) -> str:
    data = run.spec.settings["data"]["name"]
    return what if data == "cifar10" else f"{what} (stand-in: {data})"


ARTIFACTS = (
    Artifact(
        "isgd/fig1a",
        "Loss traces of ten i.i.d. CIFAR-10 batches trained in a fixed cycle",
        iid_runs,
        (measure_iid, measure_epoch_400, measure_completion),
        draw_iid,
        "Ten loss curves on a log axis, one per batch, falling together; printed values as open markers.",
        (8.0, 4.0),
        frame_iid,
    ),
    Artifact(
        "isgd/fig1b",
        "Loss traces of ten single-class CIFAR-10 batches trained in a fixed cycle",
        single_class_runs,
        (measure_single_class, measure_correlations, measure_single_completion),
        draw_single_class,
        "Ten loss curves on a log axis, one per single-class batch, each by itself; printed values as open markers.",
        (8.0, 4.0),
        frame_single_class,
    ),
)
