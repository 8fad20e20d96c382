"""ISGD against SGD in training: Figs. 1, 2, 5, 6 and the claims on batch size that need runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paper_figures.artifact import Artifact, Evidence, Missing, Quantities
from paper_figures.isgd import settings
from suite.measured import Measured, interval, point
from suite.statistics import Interval, mean_interval
from suite.store import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TICKS = {"mnist": (0.97, 0.975, 0.98, 0.985, 0.99), "cifar10": (0.60, 0.65, 0.70, 0.72, 0.73, 0.74, 0.75)}
VISIBLE = 0.0005  # a difference of accuracy that a plot over 0.97 .. 0.995 can show


def _pairs(evidence: Evidence) -> tuple[tuple[Run, ...], tuple[Run, ...], str, list[str]]:
    """SGD runs, ISGD runs (same seeds), the data's name, and all run ids."""
    sgd, isgd = evidence.runs("sgd"), evidence.runs("isgd")
    assert [r.spec.seed for r in sgd] == [r.spec.seed for r in isgd]
    data = sgd[0].spec.settings["data"]["name"]
    return sgd, isgd, data, [r.id for r in (*sgd, *isgd)]


def _kind(data: str) -> str:
    return "proxy" if data in ("digits", "colours") else "measured"


def _measured(found: Interval, kind: str, runs: Iterable[str], note: str = "") -> Measured:
    return interval(found.mean, found.low, found.high, kind=kind, n=found.n, runs=runs, note=note)


def _column(run: Run, name: str) -> Any:
    return run.curve("evaluations")[name].to_numpy()


def first_below(run: Run, error: float) -> float:
    """Gradient evaluations at the first test with at most this error; infinite if there is none."""
    table = run.curve("evaluations")
    reached = table.loc[table["test_error"] <= error + 1e-9, "update"]
    return float(reached.iloc[0]) if len(reached) else float("inf")


def log_speed(sgd: Sequence[Run], isgd: Sequence[Run], error: float) -> list[float]:
    """Per seed: log(updates of SGD / updates of ISGD) to the first test at ``error``.

    Raises Missing when a run never got there: a censored pair would bias the mean.
    """
    import math

    steps = [math.log(first_below(a, error) / first_below(b, error)) for a, b in zip(sgd, isgd, strict=True)]
    if not all(math.isfinite(step) for step in steps):
        raise Missing(f"a run that reaches {error:.0%} test error in every seed")
    return steps


def common_error(runs: Sequence[Run], data: str) -> float:
    """Test error at the highest tick of the figure's accuracy axis that every run reaches.

    In the first epoch the methods are the same by construction, so a low accuracy cannot tell them apart.
    """
    reached = 1 - max(float(_column(run, "test_error").min()) for run in runs)
    ticks = [tick for tick in TICKS.get(data, (0.8, 0.85, 0.9, 0.95)) if tick <= reached]
    if not ticks:
        raise Missing("an accuracy on the figure's axis that every run reaches")
    return 1 - max(ticks)


def measure_speed(evidence: Evidence) -> Quantities:
    """Figs. 5a, 5b and the headline: who reaches an accuracy first, in gradient evaluations."""
    import math

    sgd, isgd, data, runs = _pairs(evidence)
    error = common_error((*sgd, *isgd), data)
    steps = log_speed(sgd, isgd, error)
    gain = [100 * (1 - math.exp(-step)) for step in steps]
    saved = f"{sum(gain) / len(gain):+.1f}% on average over {len(gain)} paired seeds"
    note = f"gradient evaluations saved until {1 - error:.1%} test accuracy: {saved}"
    for name in ("slightly-faster", "isgd-faster"):
        yield name, _measured(mean_interval(steps), _kind(data), runs, note)
    if data == "cifar10" and error <= 0.25:
        yield "gain", _measured(mean_interval(gain), _kind(data), runs, note)


def measure_accuracy(evidence: Evidence) -> Quantities:
    """Figs. 5a, 5b: who is above, who is steadier."""
    import numpy as np

    sgd, isgd, data, runs = _pairs(evidence)
    plain, ours = (1 - np.array([_column(run, "test_error") for run in group]) for group in (sgd, isgd))
    lead = (ours - plain).mean(0)[1:]  # the first test is before training
    n, kind = len(sgd), _kind(data)
    note = f"mean difference of accuracy {100 * lead.mean():+.3f} points over {len(lead)} tests, {n} paired seeds"
    yield "isgd-at-least-sgd", point(float((lead >= -VISIBLE).mean()), kind=kind, n=n, runs=runs, note=note)
    yield "isgd-above-sgd", point(float((lead > 0).mean()), kind=kind, n=n, runs=runs, note=note)
    falls = []
    for curve in (plain, ours):
        later = curve[:, curve.shape[1] // 2 :]
        falls.append((np.maximum.accumulate(curve, 1)[:, curve.shape[1] // 2 :] - later).max(1))
    yield "sgd-dent", _measured(mean_interval((falls[0] - falls[1]).tolist()), kind, runs)
    yield "expected-top", _measured(mean_interval((100 * plain.max(1)).tolist()), kind, runs)


def measure_training_error(evidence: Evidence) -> Quantities:
    """Figs. 5d, 5e: SGD's training error minus ISGD's over the second half of the tests."""
    sgd, isgd, data, runs = _pairs(evidence)
    steps = []
    for a, b in zip(sgd, isgd, strict=True):
        half = len(_column(a, "update")) // 2
        steps.append(float((_column(a, "train_error")[half:] - _column(b, "train_error")[half:]).mean()))
    yield "isgd-lower", _measured(mean_interval(steps), _kind(data), runs, "on the first training images")


def _label_tests(axes: Axes, ylabel: str) -> None:
    axes.set_xlabel("gradient evaluations")
    axes.set_ylabel(ylabel)
    axes.legend()


def draw_tests(column: str, ylabel: str, transform: Callable[[Any], Any], log: bool) -> Callable[..., None]:
    """A drawing of one evaluation column of both methods: every seed thin, the mean thick."""

    def draw(evidence: Evidence, figure: Figure) -> None:
        import numpy as np

        sgd, isgd, data, _ = _pairs(evidence)
        axes = figure.subplots()
        for runs, name, colour in ((sgd, "SGD", "C0"), (isgd, "ISGD", "C1")):
            curves = [transform(_column(run, column)) for run in runs]
            updates = _column(runs[0], "update")
            for curve in curves:
                axes.plot(updates[1:], curve[1:], color=colour, alpha=0.25, linewidth=0.8)
            axes.plot(updates[1:], np.mean(curves, 0)[1:], color=colour, label=f"{name}, mean of {len(runs)} seeds")
        if log:
            axes.set_xscale("log")
            axes.set_yscale("log")
        else:
            floor = {"mnist": 0.95, "cifar10": 0.5}.get(data)
            if floor is not None:
                axes.set_ylim(bottom=floor)
        _label_tests(axes, ylabel)

    return draw


draw_accuracy = draw_tests("test_error", "test accuracy (share)", lambda error: 1 - error, log=False)
draw_error = draw_tests("train_error", "training error (share)", lambda error: error.clip(1e-5), log=True)


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
    kind = _kind(run.spec.settings["data"]["name"])
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


def measure_single(evidence: Evidence) -> Quantities:
    """Fig. 1b: single-class batches move independently, i.i.d. ones together."""
    single, iid = evidence.run("single"), evidence.run("iid")
    kind = _kind(single.spec.settings["data"]["name"])
    apart, together = mean_correlation(traces(single)), mean_correlation(traces(iid))
    note = f"mean correlation of changes: single-class {apart:.2f}, i.i.d. {together:.2f}"
    yield "independent-speeds", point(speed_spread(traces(single)), kind=kind, runs=[single.id], note=note)
    yield "less-correlated-than-iid", point(together - apart, kind=kind, runs=[single.id, iid.id], note=note)


def draw_traces(group: str) -> Callable[..., None]:
    def draw(evidence: Evidence, figure: Figure) -> None:
        losses = traces(evidence.run(group))
        axes = figure.subplots()
        for batch, column in enumerate(losses.T):
            axes.plot(range(len(column)), column, linewidth=0.9, label=f"batch {batch}")
        axes.axhline(0.001, color="0.5", linestyle="--", linewidth=0.8, label="fully trained, as drawn (0.001)")
        axes.set_xlabel("epoch (each batch once)")
        axes.set_ylabel("loss of the batch (nats)")
        axes.legend(ncols=2, fontsize="x-small")

    return draw


def measure_chart(evidence: Evidence) -> Quantities:
    """Fig. 2's claims on a stand-in: chases start exactly above the limit; mean and limit fall."""
    import numpy as np

    runs = evidence.runs("isgd")
    agreed, falls, chases = [], [], 0
    for run in runs:
        table = run.curve("updates").sort_values("update")
        n = -(-_examples(run) // run.spec.settings["batch"])
        chasing, loss, limit = (table[name].to_numpy() for name in ("chasing", "loss", "limit"))
        tested = (chasing[:-1] == 0) & (table["iteration"].to_numpy()[:-1] > n)
        started = chasing[1:] == 1
        agreed.append(float((started == (loss[:-1] > limit[:-1]))[tested].mean()) if tested.any() else 1.0)
        chases += int((started & tested).sum())
        mean = table["mean"].to_numpy()[np.isfinite(limit)]
        falls.append((mean[len(mean) // 2] - mean[-1], mean[0] - mean[len(mean) // 2]))
    ids = [run.id for run in runs]
    note = f"stand-in: {runs[0].spec.settings['model']['name']}; {chases} chases in {len(runs)} runs"
    yield "above-limit", point(min(agreed), kind="proxy", runs=ids, note=note)
    steps = [min(fall[i] for fall in falls) for i in range(2)]
    yield "decline", point([float(v) for v in steps], kind="proxy", runs=ids, note=note)


def _examples(run: Run) -> int:
    from suite.data.catalogue import DATASETS

    return DATASETS[run.spec.settings["data"]["name"]].sizes["train"]


def draw_chart(evidence: Evidence, figure: Figure) -> None:
    run = evidence.runs("isgd")[0]
    table = run.curve("updates").sort_values("update")
    axes = figure.subplots()
    plain, chased = table[table["chasing"] == 0], table[table["chasing"] == 1]
    axes.plot(plain["update"], plain["loss"], ".", markersize=1.5, alpha=0.4, label="batch loss", rasterized=True)
    axes.plot(chased["update"], chased["loss"], "x", markersize=3, color="C3", label="loss while chasing the limit")
    axes.plot(table["update"], table["mean"], color="C1", label="mean of the last epoch")
    axes.plot(table["update"], table["limit"], color="C2", label="limit: mean + 3 deviations")
    axes.set_yscale("log")
    axes.set_xlabel("gradient evaluations")
    axes.set_ylabel("loss (nats)")
    axes.legend(fontsize="small")


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
        found[group] = (_column(run, "update") * each, 1 - _column(run, "test_error"), run)
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


def _cycle_groups(profile: str) -> dict[str, Any]:
    return {
        "iid": settings.cycles(profile, "balanced"),
        "single": settings.cycles(profile, "single-class"),
    }


def _isgd_only(profile: str) -> dict[str, Any]:
    """Fig. 2's stand-in: the CIFAR-10 runs of Fig. 5b, or the embedded digits."""
    pairs = settings.cifar_pairs(profile) or settings.mnist_pairs(profile)
    return {"isgd": pairs["isgd"]}


ARTIFACTS = (
    Artifact(
        "isgd/fig1a",
        "Loss traces of ten i.i.d. CIFAR-10 batches trained in a fixed cycle",
        lambda profile: {"iid": settings.cycles(profile, "balanced")},
        (measure_iid,),
        draw_traces("iid"),
        "Ten loss curves, one per batch, falling together at different speeds.",
    ),
    Artifact(
        "isgd/fig1b",
        "Loss traces of ten single-class CIFAR-10 batches trained in a fixed cycle",
        _cycle_groups,
        (measure_single,),
        draw_traces("single"),
        "Ten loss curves, one per single-class batch, falling independently.",
    ),
    Artifact(
        "isgd/fig2",
        "Control chart over training: batch losses, running mean and limit (stand-in for AlexNet)",
        _isgd_only,
        (measure_chart,),
        draw_chart,
        "Batch losses as dots with the running mean and the control limit falling.",
    ),
    Artifact(
        "isgd/fig5a",
        "MNIST test accuracy, SGD and ISGD",
        settings.mnist_pairs,
        (measure_speed, measure_accuracy),
        draw_accuracy,
        "Test accuracy of SGD and ISGD against gradient evaluations; the curves nearly coincide.",
    ),
    Artifact(
        "isgd/fig5b",
        "CIFAR-10 test accuracy, SGD and ISGD",
        settings.cifar_pairs,
        (measure_speed, measure_accuracy),
        draw_accuracy,
        "Test accuracy of SGD and ISGD on CIFAR-10 against gradient evaluations.",
    ),
    Artifact(
        "isgd/fig5d",
        "MNIST training error, SGD and ISGD",
        settings.mnist_pairs,
        (measure_training_error,),
        draw_error,
        "Training error of SGD and ISGD on MNIST on log-log axes.",
    ),
    Artifact(
        "isgd/fig5e",
        "CIFAR-10 training error, SGD and ISGD",
        settings.cifar_pairs,
        (measure_training_error,),
        draw_error,
        "Training error of SGD and ISGD on CIFAR-10 on log-log axes.",
    ),
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
