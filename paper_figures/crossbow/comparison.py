"""Epochs and time to accuracy compared: methods, numbers of learners, batch sizes and intervals.

Below the ``paper`` profile another network, or the first epochs on a part of the images, stands in for ResNet-32's
training, so what is measured there is a *proxy* of the figure's claims. Runs are compared at a target that all of
them reach (:mod:`paper_figures.crossbow.targets`). Time is epochs x time per epoch: the second factor is the ratio of
throughputs that the experiment ``crossbow/throughput`` measured side by side, so no clock time of one run is held
against another's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from paper_figures.crossbow import settings
from paper_figures.crossbow.readings import accuracies, epochs, ids, on_gpu, require, several, spread
from paper_figures.crossbow.targets import common_target, rungs
from suite.claims.measured import Measured, interval, point
from suite.papers.artifact import Evidence, Quantities

NETWORK = {"smoke": "digits_lenet", "reduced": "crossbow_lenet", "paper": "crossbow_resnet32"}
STAND_INS = {
    "digits_lenet": "a small LeNet on scikit-learn's digits",
    "crossbow_lenet": "LeNet on 2,000 images of MNIST",
    "crossbow_resnet32": "ResNet-32 on 10,000 images of CIFAR-10",
}
BATCHES = {"smoke": (1, 4), "reduced": (1, 4, 8, 16), "paper": (1, 4, 16, 32)}


def kind(evidence: Evidence) -> str:
    return "measured" if evidence.profile == "paper" else "proxy"


def stand_in(evidence: Evidence, name: str) -> str:
    """What was trained in the place of the paper's run, empty at the paper's scale."""
    trained = evidence.groups[name][0].settings
    if evidence.profile == "paper" or trained["data"] == settings.MNIST:
        return ""
    return STAND_INS[trained["model"]["name"]]


def described(evidence: Evidence, name: str, target: float | None, note: str = "") -> str:
    """A note: what it is, the accuracy compared at, and what stood in."""
    aim = f"to {100 * target:g}%" if target is not None else ""
    return "; ".join(part for part in (note, aim, stand_in(evidence, name)) if part)


def paired(
    evidence: Evidence,
    a: str,
    b: str,
    combine: Callable[[float, float], float],
    note: str = "",
    *,
    target: float | None = None,
    printed: float = settings.TARGET,
) -> Measured:
    """``combine(epochs of a, epochs of b)`` seed by seed, with its interval; to their common target by default."""
    if target is None:
        target = common_target(evidence, a, b, printed=printed)
    pairs = zip(epochs(evidence, a, target), epochs(evidence, b, target), strict=True)
    values = [combine(x, y) if math.isfinite(x) and math.isfinite(y) else math.inf for x, y in pairs]
    return spread(values, kind(evidence), ids(evidence, a, b), described(evidence, a, target, note))


def less_time(a: float, b: float) -> float:
    """Per cent of b that a saves."""
    return 100 * (1 - a / b)


def seconds_ratio(evidence: Evidence, learners: int) -> float:
    """Time per epoch with so many learners over that of one, on one device of this machine."""
    from statistics import median

    require("throughput" in evidence.groups, f"a throughput run of {NETWORK[evidence.profile]}")
    found = evidence.run("throughput").results
    key = f"over_one_{learners}"
    require(key in found, f"the throughput of {learners} learners on one device")
    return 1 / median(found[key])


def measure_batches(evidence: Evidence) -> Quantities:
    """Fig. 3: epochs against batch size, paired by seed."""
    shares = BATCHES[evidence.profile]
    names = [f"s-sgd {k}" for k in shares]
    require(len(shares) == 4, "four batch sizes")
    target = common_target(evidence, *names)
    steps = [paired(evidence, a, b, lambda x, y: y - x, target=target) for a, b in pairwise(names)]
    yield "rises", several(steps)
    first, last = shares[1], shares[-1]
    slope = paired(
        evidence,
        f"s-sgd {first}",
        f"s-sgd {last}",
        lambda x, y: math.log(y / x) / math.log(last / first),
        f"batch {first} to {last} times the smallest",
        target=target,
    )
    yield "threshold", slope


def measure_target(evidence: Evidence) -> Quantities:
    """Figs. 9b and 9c: the best that plain training reaches, as the metric sees it."""
    from statistics import median

    best = [
        100 * max(median(row[i : i + 5]) for i in range(len(row) - 4))
        for row in map(accuracies, evidence.runs("s-sgd 1"))
    ]
    yield "target", spread(best, kind(evidence), ids(evidence, "s-sgd 1"), described(evidence, "s-sgd 1", None))


def measure_lenet_target(evidence: Evidence) -> Quantities:
    """Fig. 9a on all of MNIST: the best test accuracy, with the interval that 10,000 images leave."""
    from suite.claims.intervals import wilson

    run = evidence.run("s-sgd 1")
    best = max(accuracies(run))
    data = run.spec.settings["data"]["name"]
    images = 10_000 if data == "mnist" else 360
    found = wilson(round(best * images), images)
    made = "measured" if data == "mnist" else "proxy"
    note = f"best of {len(accuracies(run))} epochs on {data}, batch {run.spec.settings['batch']}"
    yield "target", interval(100 * best, 100 * found.low, 100 * found.high, kind=made, runs=[run.id], note=note)


def measure_lenet_time(evidence: Evidence) -> Quantities:
    """Fig. 10d: time to accuracy of LeNet with one and with several learners against plain training."""
    ratio = seconds_ratio(evidence, 4)
    note = f"four learners take {ratio:.2f} of one learner's time per epoch here"
    yield "m1-1gpu", _proxied(paired(evidence, "sma 1", "s-sgd 1", less_time))
    yield "best-1gpu", _proxied(paired(evidence, "sma 4", "s-sgd 1", lambda x, y: less_time(x * ratio, y), note))
    yield "speedup-intro", _proxied(paired(evidence, "sma 4", "s-sgd 1", lambda x, y: y / (x * ratio), note))


def _proxied(found: Measured) -> Measured:
    """The paper's factor holds TensorFlow's overhead, which is not here: shown, never decided."""
    return Measured(found.values, found.low, found.high, "proxy", found.n, found.runs, found.note)


def measure_resnet_time(evidence: Evidence) -> Quantities:
    """Fig. 10a on one device: four learners against plain training."""
    printed = settings.FINAL_TARGET
    ratio = seconds_ratio(evidence, 4)
    note = f"four learners take {ratio:.2f} of one learner's time per epoch here"
    saved = paired(evidence, "sma 4", "s-sgd 1", lambda x, y: less_time(x * ratio, y), note, printed=printed)
    yield "m4-1gpu", _device(evidence, saved)
    factor = paired(evidence, "sma 4", "s-sgd 1", lambda x, y: y / (x * ratio), note, printed=printed)
    yield "speedup-intro", _device(evidence, factor)


def _device(evidence: Evidence, found: Measured) -> Measured:
    """Times measured on a CPU are no evidence about a GPU."""
    return found if on_gpu(evidence.run("throughput")) else _proxied(found)


def measure_early(*levels: float) -> Callable[[Evidence], Quantities]:
    """Fig. 11: the lead at lower accuracies, as differences of log time; of log epochs where no times belong."""

    def measure(evidence: Evidence) -> Quantities:
        best = "sma 4" if "sma 4" in evidence.groups else "sma 3"
        timed = "throughput" in evidence.groups
        ratio = seconds_ratio(evidence, int(best.split()[1])) if timed else 1.0
        note = "log of times" if timed else "log of epochs, times left out"
        steps = [
            paired(evidence, best, "s-sgd 1", lambda x, y: math.log(y / (x * ratio)), note, target=level)
            for level in levels
        ]
        yield "other-thresholds", _device(evidence, several(steps)) if timed else _proxied(several(steps))

    return measure


def measure_epochs(evidence: Evidence) -> Quantities:
    """Fig. 12b: epochs with one and with four learners on one device."""
    target = common_target(evidence, "sma 1", "sma 4")
    note = described(evidence, "sma 1", target)
    for claim, group in (("epochs-m1", "sma 1"), ("epochs-m4", "sma 4")):
        yield claim, spread(epochs(evidence, group, target), kind(evidence), ids(evidence, group), note)


def measure_many_epochs(evidence: Evidence) -> Quantities:
    """Fig. 13b: 8, 16 and 32 replicas stand for 8 GPUs with 1, 2 and 4 learners."""
    require("sma 16" in evidence.groups, f"16 replicas at {evidence.profile}")
    yield "m2-neutral", paired(evidence, "sma 8", "sma 16", lambda x, y: y / x)
    require("sma 32" in evidence.groups, f"32 replicas at {evidence.profile}")
    yield "m4-worse", paired(evidence, "sma 16", "sma 32", lambda x, y: y - x)


def measure_elastic(evidence: Evidence) -> Quantities:
    """Fig. 15 in epochs: both methods take the same time per iteration."""
    printed = settings.FINAL_TARGET
    on_one = ("resnet-32 sma 4", "resnet-32 ea-sgd 4")
    one_device = on_one if on_one[0] in evidence.groups else ("sma 4", "ea-sgd 4")
    yield "1gpu", paired(evidence, *one_device, less_time, "in epochs", printed=printed)
    require("sma 16" in evidence.groups, f"16 replicas at {evidence.profile}")
    yield "8gpu", paired(evidence, "sma 16", "ea-sgd 16", less_time, "in epochs", printed=printed)
    names = ("sma 4", "ea-sgd 4", "sma 16", "ea-sgd 16")
    target = common_target(evidence, *names, printed=printed)
    few, many = (
        [
            less_time(x, y)
            for x, y in zip(
                epochs(evidence, f"sma {k}", target), epochs(evidence, f"ea-sgd {k}", target), strict=True
            )
        ]
        for k in (4, 16)
    )
    growth = [b - a if math.isfinite(a) and math.isfinite(b) else math.inf for a, b in zip(few, many, strict=True)]
    yield "gap-grows", spread(growth, kind(evidence), ids(evidence, *names), described(evidence, "sma 4", target))


def measure_interval(evidence: Evidence) -> Quantities:
    """Fig. 16 in epochs: what synchronising every fourth iteration costs, before its gain in throughput."""
    k, note = settings.TAU_LEARNERS[evidence.profile], "epochs only, throughput left out"
    pair = (f"sma {k}", f"sma {k} tau 4")
    found = paired(evidence, *pair, lambda x, y: 100 * (y / x - 1), note, printed=settings.FINAL_TARGET)
    yield "tta-tau4", _proxied(found)
    longer = found.values[0]
    yield "tau1-best", point(1.0 if longer > 0 else 4.0, kind="proxy", runs=found.runs, note="by epochs only")


def measure_momentum_helps(evidence: Evidence) -> Quantities:
    """Algorithm 1 without momentum is EA-SGD; with many learners."""
    many = settings.MANY[evidence.profile]
    pair = (f"sma {many}", f"ea-sgd {many}")
    found = paired(evidence, *pair, lambda x, y: y - x, leads(evidence, *pair), printed=settings.FINAL_TARGET)
    if evidence.profile == "reduced":  # a general statement, for which LeNet is the model itself
        found = Measured(found.values, found.low, found.high, "measured", found.n, found.runs, found.note)
    yield "momentum-helps-many", found


def leads(evidence: Evidence, a: str, b: str) -> str:
    """How many epochs a is ahead of b on average, at every rung that all their runs reach."""
    if evidence.profile == "paper":
        return ""
    steps = []
    for rung in rungs([accuracies(run) for name in (a, b) for run in evidence.runs(name)]):
        first, second = (sum(found) / len(found) for found in (epochs(evidence, name, rung) for name in (a, b)))
        steps.append(f"{100 * rung:g}%: {second - first:+.1f}")
    return "epochs ahead at each rung, " + ", ".join(steps[-6:]) if steps else ""


def measure_average_better(evidence: Evidence) -> Quantities:
    """The average model against the mean replica of the same run."""
    last, over_run = [], []
    for run in evidence.runs("followed"):
        table = run.curve("models")
        gap = 100 * (table["replica_error"] - table["centre_error"])
        last.append(float(gap.iloc[-1]))
        over_run.append(float(gap.mean()))
    made = "proxy" if evidence.profile == "smoke" else "measured"
    runs = ids(evidence, "followed")
    note = f"points of test error, {stand_in(evidence, 'followed') or 'LeNet'}"
    yield "average-better", several([spread(last, made, runs, note), spread(over_run, made, runs, note)])
