"""Fig. 5: ISGD against SGD in training, on MNIST, CIFAR-10 and ImageNet.

The paper shows test accuracy against time (a: MNIST, slightly sooner; b: CIFAR-10, 75% after 287 s instead of 392 s;
c, f: ImageNet, top-1 and top-5, 18.75 h instead of 23.75 h) and training error (d, e), below SGD's at the same time.
Here time is counted in gradient evaluations, in which both methods cost the same per step. The ImageNet runs need
the user's copy of it; below the paper's profile the CIFAR-10 pairs stand in, and no claim on ImageNet is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paper_figures.isgd import readings, settings
from paper_figures.isgd.readings import embedded, evaluations, pairs
from paper_figures.isgd.settings import TEST_EVERY_SECONDS
from suite.claims.estimate import exact, over_seeds, point
from suite.claims.intervals import TIE, at_least, mean_interval
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities
from suite.papers.counterfeits import as_if, counterfeit, edited, forged, genuine
from suite.papers.published import printed_value
from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = {"mnist": (0.97, 0.995), "cifar10": (0.72, 0.78)}  # accuracies of Figs. 5a and 5b
VISIBLE = 0.05  # points; a smaller difference of accuracy is a tie: Fig. 5a's axis, 97 to 99.5%, cannot show it


def imagenet_runs(profile: str) -> Groups:
    """Both methods for 60 epochs at the paper's profile; below it the pairs on CIFAR-10 in their place."""
    if profile != "paper":
        return settings.cifar_pairs(profile)
    return {"sgd": (settings.imagenet(1000, 60, stop=0),), "isgd": (settings.imagenet(1000, 60),)}


def measure_speed(evidence: Evidence) -> Quantities:
    """Who reaches an accuracy first, in gradient evaluations."""
    yield from readings.speed(evidence)


def measure_accuracy(evidence: Evidence) -> Quantities:
    """Who is above, who is steadier."""
    import numpy as np

    sgd, isgd, data, ids = pairs(evidence)
    plain, ours = (1 - np.array([evaluations(run, "test_error") for run in group]) for group in (sgd, isgd))
    leads = 100 * (ours - plain)[:, 1:]  # [seeds, tests], points; the first test is before training
    proxy = embedded(data)
    ahead, behind = (int((sign * leads.mean(0) > VISIBLE + TIE).sum()) for sign in (1, -1))
    note = (
        f"mean over seeds visibly ahead at {ahead} of {leads.shape[1]} tests, behind at {behind}; "
        f"{len(sgd)} paired seeds"
    )
    for name in ("isgd-at-least-sgd", "isgd-above-sgd"):
        yield name, over_seeds(mean_interval(leads.mean(1).tolist()), ids, note, proxy=proxy)
    falls = []
    for curve in (plain, ours):
        half = curve.shape[1] // 2
        falls.append((np.maximum.accumulate(curve, 1) - curve)[:, half:].max(1))
    yield "sgd-dent", over_seeds(mean_interval((falls[0] - falls[1]).tolist()), ids, proxy=proxy)
    yield "expected-top", over_seeds(mean_interval((100 * plain.max(1)).tolist()), ids, proxy=proxy)


def stays_from(run: Run, error: float) -> float:
    """Gradient evaluations at the first test from which on no test has a larger error. Raises Missing without one."""
    table = run.curve("evaluations")
    above = ~at_least(-table["test_error"].to_numpy(), -error)
    if above[-1]:
        raise Missing(f"a run that ends at {1 - error:.0%} accuracy or more")
    return float(table["update"].iloc[above.nonzero()[0][-1] + 1])  # the first test, before training, is above


def measure_gain(evidence: Evidence) -> Quantities:
    """Per cent of SGD's gradient evaluations that ISGD saves until its accuracy stays above the printed one."""
    sgd, isgd, data, ids = pairs(evidence)
    error = 1 - printed_value("isgd/fig5b/expected-top") / 100
    gains = [saved(stays_from(a, error), stays_from(b, error)) for a, b in zip(sgd, isgd, strict=True)]
    yield "gain", over_seeds(mean_interval(gains), ids, proxy=embedded(data))


@counterfeit("isgd/fig5b/gain")
def isgd_as_sgd(evidence: Evidence) -> Evidence:
    return as_if(evidence, "isgd", "sgd")


@genuine("isgd/fig5b/gain")
def isgd_as_fast_as_printed(evidence: Evidence) -> Evidence:
    """ISGD came to what SGD did in as much less time as is printed."""

    def faster(run: Run) -> Run:
        table = run.curve("evaluations")
        share = 1 - printed_value("isgd/fig5b/gain") / 100
        return forged(run, evaluations=table.assign(update=share * table["update"]))

    return edited(as_if(evidence, "isgd", "sgd"), faster, "isgd")


@counterfeit("isgd/fig5b/expected-top")
def half_the_error(evidence: Evidence) -> Evidence:
    return readings.shifted(evidence, "sgd", readings.HALF)


@genuine("isgd/fig5b/expected-top")
def top_as_printed(evidence: Evidence) -> Evidence:
    """SGD's best accuracies lie about the printed one as they lie about their mean."""
    tops = [1 - evaluations(run, "test_error").min() for run in evidence.runs("sgd")]
    apart = sum(tops) / len(tops) - printed_value("isgd/fig5b/expected-top") / 100

    def moved(run: Run) -> Run:
        table = run.curve("evaluations")
        return forged(run, evaluations=table.assign(test_error=table["test_error"] + apart))

    return edited(evidence, moved, "sgd")


def measure_training_error(evidence: Evidence) -> Quantities:
    """SGD's training error minus ISGD's over the second half of the tests."""
    sgd, isgd, data, ids = pairs(evidence)
    leads = mean_interval(readings.error_leads(sgd, isgd))
    yield "isgd-lower", over_seeds(leads, ids, "on the first training images", proxy=embedded(data))


def measure_training_error_by_iteration(evidence: Evidence) -> Quantities:
    """As ``measure_training_error``, but after as many visits of a batch: ISGD's extra steps cost nothing here."""
    import numpy as np

    sgd, isgd, data, ids = pairs(evidence)
    leads, extra = [], []
    for plain, ours in zip(sgd, isgd, strict=True):
        at = evaluations(ours, "update")[1:]  # the first test is before training
        visits = 1 + ours.curve("updates")["iteration"].to_numpy()[at.astype(int) - 1]
        known = np.interp(visits, evaluations(plain, "update"), evaluations(plain, "train_error"))
        lead = known - evaluations(ours, "train_error")[1:]
        leads.append(float(lead[len(lead) // 2 :].mean()))
        extra.append(float(1 - visits[-1] / at[-1]))
    note = f"{np.mean(extra):.2%} of ISGD's gradient evaluations are extra steps"
    yield "lower-by-iteration", over_seeds(mean_interval(leads), ids, note, proxy=embedded(data))


def imagenet_tests(evidence: Evidence, column: str) -> tuple[list[Any], list[str]]:
    """Updates and accuracies (per cent) [2, tests] of SGD and ISGD on ImageNet, and the runs. Raises Missing."""
    if evidence.profile != "paper":
        raise Missing("runs on ImageNet")
    stored = [evidence.run("sgd"), evidence.run("isgd")]
    tables = [run.curve("evaluations") for run in stored]
    return [(t["update"].to_numpy(), 100 * (1 - t[column].to_numpy())) for t in tables], [run.id for run in stored]


def gain_at(tests: list[Any], level: float) -> float:
    """Per cent of SGD's updates that ISGD saves until an accuracy in per cent. Raises Missing below it."""
    if not all(at_least(accuracy.max(), level) for _, accuracy in tests):
        raise Missing(f"two runs that reach {level:.1f}%")
    return saved(*(float(updates[at_least(accuracy, level).argmax()]) for updates, accuracy in tests))


def measure_imagenet_top1(evidence: Evidence) -> Quantities:
    """Fig. 5c on ImageNet: who is ahead."""
    tests, ids = imagenet_tests(evidence, "test_error")
    (_, plain), (_, ours) = tests
    yield "isgd-above-sgd", point(float((ours > plain)[1:].mean()), runs=ids)


def measure_imagenet_top5(evidence: Evidence) -> Quantities:
    """Fig. 5f on ImageNet: what both reach, and updates saved until 80.9%."""
    tests, ids = imagenet_tests(evidence, "top5_error")
    (_, plain), (_, ours) = tests
    yield "target", point((plain.max(), ours.max()), runs=ids)
    yield "gain", point(gain_at(tests, printed_value("isgd/fig5f/target")), runs=ids)


def measure_stand_in(evidence: Evidence) -> Quantities:
    """Without ImageNet: ISGD's lead in test accuracy on the CIFAR-10 stand-in, averaged over tests and seeds."""
    if evidence.profile == "paper":
        return
    sgd, isgd, _, ids = pairs(evidence)
    leads = [
        float((evaluations(a, "test_error") - evaluations(b, "test_error")).mean())
        for a, b in zip(sgd, isgd, strict=True)
    ]
    lead = 100 * sum(leads) / len(leads)
    note = f"CIFAR-10 stand-in: ISGD ahead by {lead:+.3f} points on average"
    share = sum(value > TIE for value in leads) / len(leads)
    yield "isgd-above-sgd", point(share, proxy=True, n=len(sgd), runs=ids, note=note)


def measure_test_interval(_: Evidence) -> Quantities:
    yield "test-interval", exact(tuple(TEST_EVERY_SECONDS.values()), note="as set for the experiments here")


def saved(slow: float, fast: float) -> float:
    """Per cent of the slow time that the fast one saves."""
    return 100 * (slow - fast) / slow


def measure_cifar_arithmetic(_: Evidence) -> Quantities:
    """The gain that the two printed times give."""
    yield "gain-arithmetic", exact(saved(printed_value("isgd/fig5b/sgd-392s"), printed_value("isgd/fig5b/isgd-287s")))


def measure_imagenet_arithmetic(_: Evidence) -> Quantities:
    """The gain that the two printed times give, and the times in tests."""
    hours = printed_value("isgd/fig5f/sgd-hours"), printed_value("isgd/fig5f/isgd-hours")
    yield "gain-arithmetic", exact(saved(*hours))
    yield "test-grid", exact([time * 3600 / TEST_EVERY_SECONDS["ImageNet"] for time in hours])


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per method, seed and test after training began: gradient evaluations, accuracies, training error."""
    import pandas as pd

    tables = []
    for method in ("sgd", "isgd"):
        for run in evidence.runs(method):
            table = run.curve("evaluations").iloc[1:]
            shown = {"top-1 accuracy": 1 - table["test_error"], "updates": table["update"]}
            if "train_error" in table:
                shown["training error"] = table["train_error"]
            if "top5_error" in table:
                shown["top-5 accuracy"] = 1 - table["top5_error"]
            tables.append(pd.DataFrame(shown).assign(method=method.upper(), seed=run.spec.seed))
    return pd.concat(tables, ignore_index=True)


def draw_methods(evidence: Evidence, axes: Axes, column: str) -> None:
    """Both methods against gradient evaluations: the mean over seeds, the band from the lowest to the highest."""
    import seaborn as sns

    table = frame(evidence)
    sns.lineplot(table, x="updates", y=column, hue="method", style="method", errorbar=("pi", 100), ax=axes)
    axes.set(xlabel="gradient evaluations")
    seeds = table["seed"].nunique()
    axes.legend(title=f"mean and range of {seeds} seeds" if seeds > 1 else "one seed", loc="lower right")
    axes.set_title(where(evidence))


def where(evidence: Evidence) -> str:
    """The data set that was trained on, said to be a stand-in where it is one."""
    settings_ = evidence.runs("sgd")[0].spec.settings
    names = {"mnist": "MNIST", "cifar10": "CIFAR-10", "digits": "stand-in: scikit-learn's digits"}
    return names[settings_["data"]["name"]] if "data" in settings_ else "ImageNet"


def draw_accuracy(evidence: Evidence, figure: Figure, claim: str = "") -> None:
    """Accuracy on the paper's axis, begun lower where ours is lower, with a printed level across."""
    axes = figure.subplots()
    draw_methods(evidence, axes, "top-1 accuracy")
    axes.set_ylabel("validation accuracy")
    data = pairs(evidence).data
    if data in AXES:
        low, high = AXES[data]
        reached = float(frame(evidence)["top-1 accuracy"].quantile(0.2))
        axes.set_ylim(min(low, reached), high)
    if claim and data in AXES:
        level = printed_value(claim) / 100
        axes.axhline(level, color="0.3", linestyle=":", label="_")
        label = f"printed: {level:.0%}\n"
        axes.text(0.01, level, label, transform=axes.get_yaxis_transform(), va="center", linespacing=1.6)


def draw_cifar_accuracy(evidence: Evidence, figure: Figure) -> None:
    draw_accuracy(evidence, figure, "isgd/fig5b/expected-top")


def draw_training_error(evidence: Evidence, figure: Figure) -> None:
    """Training error on log-log axes as in the paper."""
    from matplotlib.ticker import NullFormatter

    axes = figure.subplots()
    draw_methods(evidence, axes, "training error")
    axes.set(xscale="log", yscale="log", ylabel="training error")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc="lower left")


def draw_imagenet(evidence: Evidence, figure: Figure, column: str, levels: Mapping[str, str]) -> None:
    """ImageNet's accuracy with the printed levels across. Raises Missing where ImageNet was not trained on."""
    if evidence.profile != "paper":
        raise Missing("runs on ImageNet: accuracy on another data set is another quantity")
    axes = figure.subplots()
    draw_methods(evidence, axes, column)
    for name, claim in levels.items():
        level = printed_value(claim) / 100
        axes.axhline(level, color="0.3", linestyle=":")
        axes.text(0.01, level, f"printed, {name}: {level:.1%}", transform=axes.get_yaxis_transform(), va="bottom")


def draw_top1(evidence: Evidence, figure: Figure) -> None:
    levels = {"compared at": "isgd/fig5c/target-56", "Caffe's best": "isgd/fig5c/caffe-best-top1"}
    draw_imagenet(evidence, figure, "top-1 accuracy", levels)


def draw_top5(evidence: Evidence, figure: Figure) -> None:
    levels = {"compared at": "isgd/fig5f/target", "Caffe's best": "isgd/fig5f/caffe-best-top5"}
    draw_imagenet(evidence, figure, "top-5 accuracy", levels)


ARTIFACTS = (
    Artifact(
        "isgd/fig5a",
        "MNIST test accuracy, SGD and ISGD",
        settings.mnist_pairs,
        (measure_speed, measure_accuracy, measure_test_interval),
        draw_accuracy,
        "Test accuracy of SGD and ISGD against gradient evaluations; the curves nearly coincide.",
        frame=frame,
    ),
    Artifact(
        "isgd/fig5b",
        "CIFAR-10 test accuracy, SGD and ISGD",
        settings.cifar_pairs,
        (measure_speed, measure_accuracy, measure_gain, measure_cifar_arithmetic),
        draw_cifar_accuracy,
        "Test accuracy of SGD and ISGD on CIFAR-10 against gradient evaluations; the printed 75% across.",
        frame=frame,
    ),
    Artifact(
        "isgd/fig5c",
        "ImageNet top-1 accuracy, SGD and ISGD",
        imagenet_runs,
        (measure_imagenet_top1, measure_stand_in),
        draw_top1,
        "Top-1 accuracy of SGD and ISGD against gradient evaluations, with the printed levels across.",
        frame=frame,
    ),
    Artifact(
        "isgd/fig5d",
        "MNIST training error, SGD and ISGD",
        settings.mnist_pairs,
        (measure_training_error, measure_training_error_by_iteration),
        draw_training_error,
        "Training error of SGD and ISGD on MNIST on log-log axes.",
        frame=frame,
    ),
    Artifact(
        "isgd/fig5e",
        "CIFAR-10 training error, SGD and ISGD",
        settings.cifar_pairs,
        (measure_training_error,),
        draw_training_error,
        "Training error of SGD and ISGD on CIFAR-10 on log-log axes.",
        frame=frame,
    ),
    Artifact(
        "isgd/fig5f",
        "ImageNet top-5 accuracy, SGD and ISGD",
        imagenet_runs,
        (measure_imagenet_top5, measure_imagenet_arithmetic),
        draw_top5,
        "Top-5 accuracy of SGD and ISGD against gradient evaluations, with the printed levels across.",
        frame=frame,
    ),
)
