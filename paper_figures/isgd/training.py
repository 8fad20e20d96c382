"""ISGD against SGD in training: Figs. 1, 2, 5, 6 and the claims on batch size that need runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paper_figures.artifact import Artifact, Evidence, Missing, Quantities
from paper_figures.isgd import settings
from suite.measured import Measured, exact, interval, point
from suite.statistics import Interval, mean_interval
from suite.store import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ACCURACIES = {"mnist": (0.97, 0.975, 0.98, 0.985), "cifar": (0.60, 0.65, 0.70, 0.72), "digits": (0.85, 0.90)}


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
    reached = table.loc[table["test_error"] <= error, "update"]
    return float(reached.iloc[0]) if len(reached) else float("inf")


def speed_steps(sgd: Sequence[Run], isgd: Sequence[Run], accuracies: Sequence[float]) -> list[float]:
    """Per seed: mean over the accuracies both reach of log(updates SGD / updates ISGD)."""
    import math

    steps = []
    for a, b in zip(sgd, isgd, strict=True):
        times = [(first_below(a, 1 - acc), first_below(b, 1 - acc)) for acc in accuracies]
        logs = [math.log(x / y) for x, y in times if math.isfinite(x) and math.isfinite(y)]
        if not logs:
            raise Missing("no accuracy of the list was reached by both methods")
        steps.append(math.fsum(logs) / len(logs))
    return steps


def mean_gain(sgd: Sequence[Run], isgd: Sequence[Run], column: str, sign: float) -> list[float]:
    """Per seed: mean over all tests after the first epoch of sign x (ISGD - SGD), in percentage points."""
    gains = []
    for a, b in zip(sgd, isgd, strict=True):
        updates = _column(a, "update")
        batches = b.spec.settings["updates"] / max(1.0, b.results["updates"] / len(updates))
        later = updates > updates[-1] / max(batches, 2)
        gains.append(float(100 * sign * (_column(b, column) - _column(a, column))[later].mean()))
    return gains


def measure_accuracy(evidence: Evidence) -> Quantities:
    """Figs. 5a, 5b: who reaches an accuracy first, who is above, who is steadier."""
    import math

    import numpy as np

    sgd, isgd, data, runs = _pairs(evidence)
    kind = _kind(data)
    faster = mean_interval(speed_steps(sgd, isgd, ACCURACIES[data if data != "cifar10" else "cifar"]))
    gain = 1 - math.exp(-faster.mean)
    note = f"ISGD needs {100 * gain:+.1f}% fewer gradient evaluations on average over {len(sgd)} paired seeds"
    yield "slightly-faster", _measured(faster, kind, runs, note)
    above = _measured(mean_interval(mean_gain(sgd, isgd, "test_error", -1.0)), kind, runs, "percentage points")
    yield "isgd-at-least-sgd", above
    yield "isgd-above-sgd", above
    rough = []
    for a, b in zip(sgd, isgd, strict=True):
        tail = [np.diff(_column(run, "test_error")[len(_column(run, "update")) // 4 :]).std() for run in (a, b)]
        rough.append(math.log(tail[0] / tail[1]))
    yield "sgd-dent", _measured(mean_interval(rough), kind, runs, "log ratio of test-to-test deviations, SGD / ISGD")
    yield "gain", _measured(mean_interval([100 * (1 - math.exp(-s)) for s in [faster.mean]]), "proxy", runs)
    reached = [first_below(r, 0.25) for r in (*sgd, *isgd)] if data == "cifar10" else []
    if reached:
        best = [100 * (1 - _column(r, "test_error").min()) for r in sgd]
        yield "expected-top", _measured(mean_interval(best), "proxy", runs, "best SGD accuracy at this length")


def measure_training_error(evidence: Evidence) -> Quantities:
    """Figs. 5d, 5e: SGD's training error minus ISGD's over the last quarter of the tests."""
    sgd, isgd, data, runs = _pairs(evidence)
    steps = []
    for a, b in zip(sgd, isgd, strict=True):
        last = len(_column(a, "update")) // 4
        steps.append(float(100 * (_column(a, "train_error")[-last:] - _column(b, "train_error")[-last:]).mean()))
    yield "isgd-lower", _measured(mean_interval(steps), _kind(data), runs, "percentage points of training error")


def measure_faster(evidence: Evidence) -> Quantities:
    """Alg. 1's headline claim on MNIST, counted in gradient evaluations."""
    for name, value in measure_accuracy(evidence):
        if name == "slightly-faster":
            yield "isgd-faster", value


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


def measure_iid(evidence: Evidence) -> Quantities:
    """Fig. 1a: batches fall together but not equally fast; completion epochs where the run is long enough."""
    import numpy as np

    run = evidence.run("iid")
    losses = traces(run)
    data = run.spec.settings["data"]["name"]
    last = losses[-max(1, len(losses) // 10) :].mean(0)
    steady = losses[-max(2, len(losses) // 10) :].std(0).mean()
    spread = float((last.max() - last.min()) / steady)
    note = f"range over batches / fluctuation of one; correlation of changes; {len(losses)} epochs"
    yield "distinct-speeds", point((spread, mean_correlation(losses)), kind=_kind(data), runs=[run.id], note=note)
    yield "epoch400-spread", point(float(last.max() / last.min()), kind="proxy", runs=[run.id], note=note)
    if len(losses) > 2100:
        at = np.sort(losses[400])
        yield "epoch400-b4", point(float(at[0]), kind="measured", runs=[run.id], note="lowest batch at epoch 400")
        yield "epoch400-b3", point(float(at[-1]), kind="measured", runs=[run.id], note="highest batch at epoch 400")
        done = np.sort([_settled(column) for column in losses.T])
        yield "fast-batches-done", point(float(done[1]), kind="measured", runs=[run.id])
        yield "all-done", point(float(done[-1]), kind="measured", runs=[run.id])
        yield "b7-still-training", point(float(done[2] - done[1]), kind="measured", runs=[run.id])


def _settled(column: Any, level: float = 0.01) -> float:
    """First epoch from which a trace stays below ``level``; infinite if there is none."""
    above = (column > level).nonzero()[0]
    return float("inf") if len(above) and above[-1] == len(column) - 1 else float(above[-1] + 1 if len(above) else 0)


def measure_single(evidence: Evidence) -> Quantities:
    """Fig. 1b: single-class batches move independently, i.i.d. ones together."""
    single, iid = evidence.run("single"), evidence.run("iid")
    kind = _kind(single.spec.settings["data"]["name"])
    ids = [single.id, iid.id]
    apart, together = mean_correlation(traces(single)), mean_correlation(traces(iid))
    note = f"mean correlation of changes: single-class {apart:.2f}, i.i.d. {together:.2f}"
    yield "independent-speeds", point(apart, kind=kind, runs=[single.id], note=note)
    yield "less-correlated-than-iid", point(together - apart, kind=kind, runs=ids, note=note)


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
    """Fig. 2's claims on a stand-in: chases start only above the limit; mean and limit fall."""
    import numpy as np

    runs = evidence.runs("isgd")
    wrong, chases, falls = 0, 0, []
    for run in runs:
        table = run.curve("updates").sort_values("update")
        chasing, loss, limit = (table[name].to_numpy() for name in ("chasing", "loss", "limit"))
        entered = (chasing[1:] == 1) & (chasing[:-1] == 0)
        chases += int(entered.sum())
        wrong += int((entered & ~(loss[:-1] > limit[:-1])).sum())
        bounded = np.isfinite(limit)
        mean = table["mean"].to_numpy()[bounded]
        falls.append(min(mean[0] - mean[-1], limit[bounded][0] - limit[bounded][-1]))
    ids = [run.id for run in runs]
    note = f"stand-in: {runs[0].spec.settings['model']['name']}; {chases} chases"
    yield "above-limit", point(1 - wrong / max(chases, 1), kind="proxy", runs=ids, note=note)
    yield "decline", _measured(mean_interval(falls), "proxy", ids, note)


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


SATURATION = {"mnist": 500, "cifar": 300}  # images at which one card is saturated, printed with Fig. 7
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


def measure_iterations(evidence: Evidence) -> Quantities:
    """Sec. 3.4.1: iterations to one test error fall as the batch grows, at one learning rate."""
    import math

    groups = {name: evidence.runs(name) for name in ("b16", "b64", "b256")}
    ids = [run.id for runs in groups.values() for run in runs]
    if any(run.status != "finished" for runs in groups.values() for run in runs):
        yield (
            "fewer-iterations-large-batch",
            point(
                (-math.inf, -math.inf), kind="measured", runs=ids, note="a run never reached the target (censored)"
            ),
        )
        return
    steps = []
    for small, large in (("b64", "b256"), ("b16", "b64")):
        pairs = zip(groups[small], groups[large], strict=True)
        steps.append(mean_interval([math.log(a.results["updates"] / b.results["updates"]) for a, b in pairs]))
    # the claim's names run from the large batch to the small one
    total = mean_interval(
        [
            math.log(a.results["updates"] / b.results["updates"])
            for a, b in zip(groups["b16"], groups["b256"], strict=True)
        ]
    )
    shown = ", ".join(
        f"{name}: {sum(r.results['updates'] for r in runs) / len(runs):.0f}" for name, runs in groups.items()
    )
    kind = _kind(groups["b16"][0].spec.settings["data"]["name"])
    note = f"mean iterations to the target error: {shown}"
    yield "fewer-iterations-large-batch", _measured(total, kind, ids, note)
    yield (
        "fewer-iterations-each-step",
        interval(
            [s.mean for s in steps],
            [s.low for s in steps],
            [s.high for s in steps],
            kind=kind,
            n=3,
            runs=ids,
            note=note,
        ),
    )


def _cycle_groups(profile: str) -> dict[str, Any]:
    return {
        "iid": settings.cycles(profile, "balanced"),
        "single": settings.cycles(profile, "single-class"),
    }


def _isgd_only(profile: str) -> dict[str, Any]:
    """Fig. 2's stand-in: the CIFAR-10 runs of Fig. 5b, or the embedded digits."""
    pairs = settings.cifar_pairs(profile) or settings.mnist_pairs(profile)
    return {"isgd": pairs["isgd"]}


def parameters_check(evidence: Evidence) -> Quantities:
    """The networks trained are the ones of Table 1."""
    run = evidence.runs("sgd")[0]
    yield "parameters", exact(run.results["parameters"], runs=[run.id])


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
        (measure_accuracy,),
        draw_accuracy,
        "Test accuracy of SGD and ISGD against gradient evaluations; the curves nearly coincide.",
    ),
    Artifact(
        "isgd/fig5b",
        "CIFAR-10 test accuracy, SGD and ISGD",
        settings.cifar_pairs,
        (measure_accuracy,),
        draw_accuracy,
        "Test accuracy of SGD and ISGD on CIFAR-10 against gradient evaluations.",
    ),
    Artifact("isgd/fig5c", "ImageNet top-1 accuracy, SGD and ISGD"),
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
    Artifact("isgd/fig5f", "ImageNet top-5 accuracy, SGD and ISGD"),
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
    Artifact("isgd/fig6c", "ImageNet top-1 accuracy against time for five GPU and batch configurations"),
)
