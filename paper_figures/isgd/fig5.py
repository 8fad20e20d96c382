"""Fig. 5: ISGD against SGD in training, on MNIST, CIFAR-10 and ImageNet.

The paper shows test accuracy against time (a: MNIST, slightly sooner; b: CIFAR-10, 75% after 287 s instead of 392 s;
c, f: ImageNet, top-1 and top-5, 18.75 h instead of 23.75 h) and training error (d, e), below SGD's at the same time.
Here time is counted in gradient evaluations, in which both methods cost the same per step. The ImageNet runs need
the user's copy of it; at the reduced profile a narrow AlexNet on CIFAR-100 stands in, and no claim on ImageNet is
decided. The abstract attaches the gain of (f) to top-1 accuracy, by which the stand-in is compared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from paper_figures.isgd import pairs, settings
from paper_figures.isgd.pairs import PAIR, column, common_error, data_of, tests
from suite.claims.intervals import TIE, Interval, at_least, mean_interval, share_above
from suite.lazy import Axes, Figure, np, pd, sns
from suite.papers.artifact import ALL, FIRST, Artifact, Frame, Groups, Missing, Quantity
from suite.papers.catalogue import printed_value
from suite.report.style import plain_numbers

ACCURACIES = {"mnist": (0.97, 0.995), "cifar10": (0.72, 0.78)}  # of the axes of Figs. 5a and 5b
VISIBLE = 0.05  # points; a smaller difference of accuracy is a tie: Fig. 5a's axis, 97 to 99.5%, cannot show it
NAMES = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "stand-in for ImageNet: narrow AlexNet, CIFAR-100",
    "digits": "stand-in: scikit-learn's digits",
    "imagenet": "ImageNet",
}


def imagenet_runs(profile: str) -> Groups:
    """Both methods for 60 epochs at the paper's profile; below it the stand-in's pairs."""
    if profile != "paper":
        return settings.narrow_pairs(profile)
    return {"sgd": (settings.imagenet(1000, 60, stop=0),), "isgd": (settings.imagenet(1000, 60),)}


def panel(letter: str, title: str, runs: Callable[[str], Groups], alt: str) -> Artifact:
    return Artifact(f"isgd/fig5{letter}", f"{title}, SGD and ISGD", runs, alt=alt)


MNIST_ACCURACY = panel("a", "MNIST test accuracy", settings.mnist_pairs,
    "Test accuracy of SGD and ISGD against gradient evaluations; the curves nearly coincide.")  # fmt: skip
CIFAR_ACCURACY = panel("b", "CIFAR-10 test accuracy", settings.cifar_accuracy,
    "Test accuracy of SGD and ISGD on CIFAR-10 against gradient evaluations; the printed 75% across.")  # fmt: skip
TOP1 = panel("c", "ImageNet top-1 accuracy", imagenet_runs,
    "Top-1 accuracy of SGD and ISGD against gradient evaluations, with the printed levels across.")  # fmt: skip
MNIST_TRAINING = panel("d", "MNIST training error", settings.mnist_pairs,
    "Training error of SGD and ISGD on MNIST on log-log axes.")  # fmt: skip
CIFAR_TRAINING = panel("e", "CIFAR-10 training error", settings.cifar_pairs,
    "Training error of SGD and ISGD on CIFAR-10 on log-log axes.")  # fmt: skip
TOP5 = panel("f", "ImageNet top-5 accuracy", imagenet_runs,
    "Accuracy of SGD and ISGD against gradient evaluations, with the levels of comparison across.")  # fmt: skip
ARTIFACTS = (MNIST_ACCURACY, CIFAR_ACCURACY, TOP1, MNIST_TRAINING, CIFAR_TRAINING, TOP5)


# ---------------------------------------------------------------- quantities: a value per seed


def leads(frame: Frame) -> pd.DataFrame:
    """ISGD's lead in test accuracy in points [seeds, tests], without the test before training."""
    return pd.DataFrame(100 * pairs.error_lead(frame, "isgd", "test_error")[:, 1:])


def lead(frame: Frame) -> pd.Series:
    """The lead averaged over the tests; not a number where a test is none."""
    return leads(frame).mean(axis=1, skipna=False)


def visible(frame: Frame) -> str:
    """At how many tests the mean over seeds is visibly ahead, and behind."""
    mean = leads(frame).mean()
    ahead, behind = (int((sign * mean > VISIBLE + TIE).sum()) for sign in (1, -1))
    seeds = len(frame["sgd"])
    return f"mean over seeds visibly ahead at {ahead} of {len(mean)} tests, behind at {behind}; {seeds} paired seeds"


def dent(frame: Frame) -> pd.Series:
    """Largest fall of accuracy below its running maximum in the second half, SGD's minus ISGD's."""
    falls = []
    for group in PAIR:
        accuracy = 1 - column(frame, group, "test_error")
        below = np.maximum.accumulate(accuracy, 1) - accuracy
        falls.append(below[:, accuracy.shape[1] // 2 :].max(1))
    return pd.Series(falls[0] - falls[1])


def accuracy(of: Callable[[np.ndarray], np.ndarray], group: str, frame: Frame) -> pd.Series:
    """What is taken ``of`` a group's test accuracies in per cent [seeds, tests]."""
    return pd.Series(of(100 * (1 - column(frame, group, "test_error"))))


def saved(slow: float, fast: float) -> float:
    """Per cent of the slow time that the fast one saves."""
    return 100 * (slow - fast) / slow


def stays_from(table: pd.DataFrame, error: float) -> float:
    """Gradient evaluations at the first test from which on no test has a larger error, NaN without one."""
    above = ~at_least(-table["test_error"].to_numpy(), -error)
    if above[-1]:
        return math.nan
    return float(table["update"].iloc[above.nonzero()[0][-1] + 1])  # the first test, before training, is above


def steady(frame: Frame, percent: float) -> list[pd.Series]:
    """Gradient evaluations until accuracy stays at a level [pairs], of SGD and of ISGD, NaN where it never does."""
    return [pd.Series([stays_from(each, 1 - percent / 100) for each in tests(frame, group)]) for group in PAIR]


def gain(frame: Frame) -> pd.Series:
    """Per cent of SGD's gradient evaluations that ISGD saves until its accuracy stays at the printed one.

    One run that never does makes it no number: without its pair the slowest would be left out.
    """
    gains = pd.Series(map(saved, *steady(frame, printed_value("isgd/fig5b/expected-top"))))
    return gains if gains.notna().all() else gains * math.nan


def arrivals(frame: Frame) -> str:
    """How many runs have a gain to tell."""
    runs = pd.concat(steady(frame, printed_value("isgd/fig5b/expected-top")))
    return f"{runs.count()} of {len(runs)} runs end at the printed accuracy or above"


def where_all_end(frame: Frame) -> tuple[float, Interval]:
    """The highest whole per cent at which all runs end or above; log of SGD's evaluations until then over ISGD's.

    The mean of logs, since a ratio of one pair may be large.
    """
    level = math.floor(100 * (1 - max(column(frame, group, "test_error")[:, -1].max() for group in PAIR)) + TIE)
    slow, fast = steady(frame, level)
    return float(level), mean_interval(np.log(slow / fast).tolist())


SPEED = Quantity(pairs.log_speed, PAIR, note=pairs.until)
LEAD = Quantity(lead, PAIR, note=visible)
TRAINING = Quantity(pairs.error_leads, PAIR, note="on the first training images")
for figure, quantities in {
    MNIST_ACCURACY: {"slightly-faster": SPEED, "isgd-at-least-sgd": LEAD, "sgd-dent": Quantity(dent, PAIR)},
    CIFAR_ACCURACY: {
        "isgd-above-sgd": LEAD,
        "expected-top": Quantity(partial(accuracy, lambda tests: tests.max(1), "sgd"), ("sgd",)),
        "gain": Quantity(gain, PAIR, note=arrivals),
        "where-all-end": Quantity(where_all_end, PAIR),
        "last": Quantity(partial(accuracy, lambda tests: tests[:, -1], "sgd"), ("sgd",)),
        "caffe-schedule": Quantity(partial(accuracy, lambda tests: tests[:, -1], "caffe"), ("caffe",)),
    },
    MNIST_TRAINING: {"isgd-lower": TRAINING},
    CIFAR_TRAINING: {"isgd-lower": TRAINING},
}.items():
    figure.quantities.update(quantities)


@TOP1.quantity("isgd-above-sgd", PAIR, note=lambda frame: f"ahead by {lead(frame).mean():+.3f} points on average")
def ahead(frame: Frame) -> Interval:
    """Share of tests at which the mean of ISGD is ahead, from the first at which the methods differ on.

    Of several pairs it reaches from the share of tests at which the whole interval of the lead, paired by seed, is
    ahead to the share at which some of it is. Raises Missing where the methods never differ.
    """
    each = leads(frame)
    each = each.loc[:, each.any().cummax()]
    if each.empty:
        raise Missing("lacks a test at which the methods differ")
    found = share_above([mean_interval(each[test].tolist()) for test in each], TIE)
    return found if len(each) > 1 else Interval(found.mean, found.mean, found.mean, 1)


def reached(frame: Frame) -> list[np.ndarray]:
    """Gradient evaluations of SGD and of ISGD until the accuracy that they are compared at [pairs].

    On ImageNet that is the printed top-5 accuracy; on a stand-in the highest whole per cent of top-1 accuracy that
    all runs reach.
    """
    column, error = "top5_error", 1 - printed_value("isgd/fig5f/target") / 100
    if frame.profile != "paper":
        column, error = "test_error", common_error(frame, *PAIR)
    return [np.array([pairs.first_below(table, error, column) for table in tests(frame, group)]) for group in PAIR]


def by_pair(of: Callable[[np.ndarray, np.ndarray], np.ndarray], frame: Frame) -> pd.Series | float:
    """What is taken ``of`` the gradient evaluations of SGD and ISGD, pair by pair; one pair has no interval."""
    values = of(*reached(frame))
    return pd.Series(values) if len(values) > 1 else float(values[0])


for name, of in {"gain": saved, "sooner": lambda slow, fast: np.log(slow / fast)}.items():
    TOP5.quantities[name] = Quantity(
        partial(by_pair, of), PAIR, note=lambda frame: "" if frame.profile == "paper" else pairs.until(frame)
    )


# ---------------------------------------------------------------- drawing


def table(frame: Frame) -> pd.DataFrame:
    """A row per method, seed and test after training began: accuracies, gradient evaluations, training error."""
    # pairs of the paper's length are shown before the last of them is trained: shorter ones say less
    part = frame.needed(PAIR, FIRST if frame.profile == "paper" else ALL)
    seeds = Counter(row["seed"] for row in part.rows)
    rows = replace(part, rows=[row for row in part.rows if seeds[row["seed"]] == len(PAIR)]).table("evaluations")
    rows = rows[rows["update"] > 0]
    if rows.empty:
        raise Missing("no run was tested after its first update")
    shown = {"top-1 accuracy": 1 - rows["test_error"]}
    if "top5_error" in rows:
        shown["top-5 accuracy"] = 1 - rows["top5_error"]
    rows = rows.assign(**shown, method=rows["group"].str.upper())
    rows = rows.rename(columns={"update": "updates", "train_error": "training error"})
    kept = ("top-1 accuracy", "updates", "training error", "top-5 accuracy", "method", "seed")
    return rows[[name for name in kept if name in rows]].reset_index(drop=True)


def draw_methods(frame: Frame, axes: Axes, shown: str, place: Any = "lower right") -> pd.DataFrame:
    """Both methods against gradient evaluations: the mean over seeds, the band from the lowest to the highest."""
    rows = table(frame)
    sns.lineplot(rows, x="updates", y=shown, hue="method", style="method", errorbar=("pi", 100), ax=axes)
    axes.set(xlabel="gradient evaluations")
    seeds, planned = rows["seed"].nunique(), len(frame.groups["sgd"])
    several = f"mean and range of {seeds}{f' of {planned}' if seeds < planned else ''} seeds"
    axes.legend(title=several if seeds > 1 else "one seed", loc=place, ncols=2)
    axes.set_title(NAMES[data_of(frame)])
    return rows


def draw_accuracy(claim: str, frame: Frame, figure: Figure) -> None:
    """Accuracy on the paper's axis, begun lower where ours is lower, with a printed level across."""
    axes = figure.subplots()
    rows = draw_methods(frame, axes, "top-1 accuracy", "upper right" if claim else "lower right")
    axes.set_ylabel("validation accuracy")
    if data_of(frame) not in ACCURACIES:
        return
    low, high = ACCURACIES[data_of(frame)]
    axes.set_ylim(min(low, float(rows["top-1 accuracy"].quantile(0.2))), high)
    if claim:
        draw_level(axes, printed_value(claim) / 100, "printed:")


def draw_training_error(frame: Frame, figure: Figure) -> None:
    """Training error on log-log axes as in the paper."""
    axes = figure.subplots()
    draw_methods(frame, axes, "training error", "lower left")
    axes.set(xscale="log", yscale="log", ylabel="training error")
    plain_numbers(axes.xaxis, (1,))
    plain_numbers(axes.yaxis, numbers="{x:g}")


def draw_imagenet(shown: str, levels: tuple[str, str], frame: Frame, figure: Figure) -> None:
    """ImageNet's accuracy with the printed levels across; top-1 accuracy of the stand-in, which they are not of."""
    axes = figure.subplots()
    if frame.profile == "paper":
        draw_methods(frame, axes, shown)
        for name, claim in zip(("compared at", "Caffe's best"), levels, strict=True):
            draw_level(axes, printed_value(claim) / 100, f"printed, {name}:")
        return
    draw_methods(frame, axes, "top-1 accuracy")
    if shown == "top-5 accuracy":
        level = 1 - common_error(frame, *PAIR)
        draw_level(axes, level, "compared at")
        for place, (name, times) in enumerate(zip(PAIR, reached(frame), strict=True)):
            said = f"a seed's arrival, {name.upper()}"
            axes.plot(times, [level] * len(times), "o", color=f"C{place}", markerfacecolor="none", label=said)
        legend = axes.get_legend()
        assert legend is not None
        axes.legend(title=legend.get_title().get_text(), loc="lower right", ncols=2)


def draw_level(axes: Axes, level: float, text: str) -> None:
    """An accuracy across, with its name."""
    axes.axhline(level, color="0.3", linestyle=":")
    axes.text(0.01, level, f"{text} {level:.1%}", transform=axes.get_yaxis_transform(), va="bottom")


MNIST_ACCURACY.drawing(partial(draw_accuracy, ""))
CIFAR_ACCURACY.drawing(partial(draw_accuracy, "isgd/fig5b/expected-top"))
MNIST_TRAINING.drawing(draw_training_error)
CIFAR_TRAINING.drawing(draw_training_error)
TOP1.drawing(partial(draw_imagenet, "top-1 accuracy", ("isgd/fig5c/target-56", "isgd/fig5c/caffe-best-top1")))
TOP5.drawing(partial(draw_imagenet, "top-5 accuracy", ("isgd/fig5f/target", "isgd/fig5f/caffe-best-top5")))
for figure in ARTIFACTS:
    figure.table(table)
