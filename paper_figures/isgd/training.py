"""ISGD against SGD in training: the control chart of Fig. 2 and the comparisons of Fig. 5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paper_figures.isgd import settings
from suite.claims.intervals import Interval, mean_interval
from suite.claims.measured import Measured, interval, point
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.runs.store import Run

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


def kind_of(data: str) -> str:
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
        yield name, _measured(mean_interval(steps), kind_of(data), runs, note)
    if data == "cifar10" and error <= 0.25:
        yield "gain", _measured(mean_interval(gain), kind_of(data), runs, note)


def measure_accuracy(evidence: Evidence) -> Quantities:
    """Figs. 5a, 5b: who is above, who is steadier."""
    import numpy as np

    sgd, isgd, data, runs = _pairs(evidence)
    plain, ours = (1 - np.array([_column(run, "test_error") for run in group]) for group in (sgd, isgd))
    lead = (ours - plain).mean(0)[1:]  # the first test is before training
    n, kind = len(sgd), kind_of(data)
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
    yield "isgd-lower", _measured(mean_interval(steps), kind_of(data), runs, "on the first training images")


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


def _isgd_only(profile: str) -> dict[str, Any]:
    """Fig. 2's stand-in: the CIFAR-10 runs of Fig. 5b, or the embedded digits."""
    pairs = settings.cifar_pairs(profile) or settings.mnist_pairs(profile)
    return {"isgd": pairs["isgd"]}


ARTIFACTS = (
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
)
