"""Epochs and time to accuracy compared: methods, numbers of learners, batch sizes and intervals.

Below the ``paper`` profile another network stands in for ResNet-32, so what is measured there is a *proxy* of the
figure's claims. Time is epochs x time per epoch: the second factor is the ratio of throughputs that the experiment
``crossbow/throughput`` measured side by side, so no clock time of one run is held against another's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from paper_figures.artifact import Evidence, Quantities
from paper_figures.crossbow import settings
from paper_figures.crossbow.readings import accuracies, epochs, ids, on_gpu, require, several, spread
from suite.measured import Measured, interval, point

NETWORK = {"smoke": "digits_lenet", "reduced": "crossbow_lenet", "paper": "crossbow_resnet32"}
STAND_IN = {
    "smoke": "a small LeNet on scikit-learn's digits",
    "reduced": "LeNet on 2,000 images of MNIST",
    "paper": "",
}
BATCHES = {"smoke": (1, 4), "reduced": (1, 4, 8, 16), "paper": (1, 4, 16, 32)}


def kind(evidence: Evidence) -> str:
    return "measured" if evidence.profile == "paper" else "proxy"


def paired(
    evidence: Evidence, a: str, b: str, target: float, combine: Callable[[float, float], float], note: str = ""
) -> Measured:
    """``combine(epochs of a, epochs of b)`` seed by seed, with its interval."""
    pairs = zip(epochs(evidence, a, target), epochs(evidence, b, target), strict=True)
    values = [combine(x, y) if math.isfinite(x) and math.isfinite(y) else math.inf for x, y in pairs]
    full = "; ".join(part for part in (note, STAND_IN[evidence.profile]) if part)
    return spread(values, kind(evidence), ids(evidence, a, b), full)


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
    shares, target = BATCHES[evidence.profile], settings.TARGET[evidence.profile]
    names = [f"s-sgd {k}" for k in shares]
    require(len(shares) == 4, "four batch sizes")
    steps = [paired(evidence, a, b, target, lambda x, y: y - x) for a, b in pairwise(names)]
    yield "rises", several(steps)
    first, last = shares[1], shares[-1]
    slope = paired(
        evidence,
        f"s-sgd {first}",
        f"s-sgd {last}",
        target,
        lambda x, y: math.log(y / x) / math.log(last / first),
        f"batch {first} to {last} times the smallest",
    )
    yield "threshold", slope


def measure_target(evidence: Evidence) -> Quantities:
    """Figs. 9b and 9c: the best that plain training reaches, as the metric sees it."""
    from statistics import median

    best = [
        100 * max(median(row[i : i + 5]) for i in range(len(row) - 4))
        for row in map(accuracies, evidence.runs("s-sgd 1"))
    ]
    yield "target", spread(best, kind(evidence), ids(evidence, "s-sgd 1"), STAND_IN[evidence.profile])


def measure_lenet_target(evidence: Evidence) -> Quantities:
    """Fig. 9a on all of MNIST: the best test accuracy, with the interval that 10,000 images leave."""
    from suite.statistics import wilson

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
    target = settings.FINAL_TARGET[evidence.profile]
    ratio = seconds_ratio(evidence, 4)
    note = f"four learners take {ratio:.2f} of one learner's time per epoch here"
    yield "m1-1gpu", _proxied(paired(evidence, "sma 1", "s-sgd 1", target, less_time))
    yield (
        "best-1gpu",
        _proxied(paired(evidence, "sma 4", "s-sgd 1", target, lambda x, y: less_time(x * ratio, y), note)),
    )
    yield "speedup-intro", _proxied(paired(evidence, "sma 4", "s-sgd 1", target, lambda x, y: y / (x * ratio), note))


def _proxied(found: Measured) -> Measured:
    """The paper's factor holds TensorFlow's overhead, which is not here: shown, never decided."""
    return Measured(found.values, found.low, found.high, "proxy", found.n, found.runs, found.note)


def measure_resnet_time(evidence: Evidence) -> Quantities:
    """Fig. 10a on one device: four learners against plain training."""
    target = settings.FINAL_TARGET[evidence.profile]
    ratio = seconds_ratio(evidence, 4)
    note = f"four learners take {ratio:.2f} of one learner's time per epoch here"
    yield (
        "m4-1gpu",
        _device(evidence, paired(evidence, "sma 4", "s-sgd 1", target, lambda x, y: less_time(x * ratio, y), note)),
    )
    yield (
        "speedup-intro",
        _device(evidence, paired(evidence, "sma 4", "s-sgd 1", target, lambda x, y: y / (x * ratio), note)),
    )


def _device(evidence: Evidence, found: Measured) -> Measured:
    """Times measured on a CPU are no evidence about a GPU."""
    return found if on_gpu(evidence.run("throughput")) else _proxied(found)


def measure_early(*levels: float) -> Callable[[Evidence], Quantities]:
    """Fig. 11: the lead at lower accuracies, as differences of log time."""

    def measure(evidence: Evidence) -> Quantities:
        best = "sma 4" if "sma 4" in evidence.groups else "sma 3"
        ratio = seconds_ratio(evidence, int(best.split()[1]))
        steps = [
            paired(evidence, best, "s-sgd 1", level, lambda x, y: math.log(y / (x * ratio)), "log of times")
            for level in levels
        ]
        yield "other-thresholds", _device(evidence, several(steps))

    return measure


def measure_epochs(evidence: Evidence) -> Quantities:
    """Fig. 12b: epochs with one and with four learners on one device."""
    target = settings.TARGET[evidence.profile]
    note = STAND_IN[evidence.profile]
    for claim, group in (("epochs-m1", "sma 1"), ("epochs-m4", "sma 4")):
        yield claim, spread(epochs(evidence, group, target), kind(evidence), ids(evidence, group), note)


def measure_many_epochs(evidence: Evidence) -> Quantities:
    """Fig. 13b: 8, 16 and 32 replicas stand for 8 GPUs with 1, 2 and 4 learners."""
    target = settings.TARGET[evidence.profile]
    require("sma 16" in evidence.groups, f"16 replicas at {evidence.profile}")
    yield "m2-neutral", paired(evidence, "sma 8", "sma 16", target, lambda x, y: y / x)
    require("sma 32" in evidence.groups, f"32 replicas at {evidence.profile}")
    yield "m4-worse", paired(evidence, "sma 16", "sma 32", target, lambda x, y: y - x)


def measure_elastic(evidence: Evidence) -> Quantities:
    """Fig. 15 in epochs: both methods take the same time per iteration."""
    target = settings.FINAL_TARGET[evidence.profile]
    yield "1gpu", paired(evidence, "sma 4", "ea-sgd 4", target, less_time, "in epochs")
    require("sma 16" in evidence.groups, f"16 replicas at {evidence.profile}")
    yield "8gpu", paired(evidence, "sma 16", "ea-sgd 16", target, less_time, "in epochs")
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
    runs = ids(evidence, "sma 4", "ea-sgd 4", "sma 16", "ea-sgd 16")
    yield "gap-grows", spread(growth, kind(evidence), runs, STAND_IN[evidence.profile])


def measure_interval(evidence: Evidence) -> Quantities:
    """Fig. 16 in epochs: what synchronising every fourth iteration costs, before its gain in throughput."""
    k, target = settings.TAU_LEARNERS[evidence.profile], settings.FINAL_TARGET[evidence.profile]
    found = paired(
        evidence,
        f"sma {k}",
        f"sma {k} tau 4",
        target,
        lambda x, y: 100 * (y / x - 1),
        "epochs only, throughput left out",
    )
    yield "tta-tau4", _proxied(found)
    longer = found.values[0]
    yield "tau1-best", point(1.0 if longer > 0 else 4.0, kind="proxy", runs=found.runs, note="by epochs only")


def measure_momentum_helps(evidence: Evidence) -> Quantities:
    """Algorithm 1 without momentum is EA-SGD; with many learners."""
    many, target = settings.MANY[evidence.profile], settings.FINAL_TARGET[evidence.profile]
    found = paired(evidence, f"sma {many}", f"ea-sgd {many}", target, lambda x, y: y - x)
    if evidence.profile == "reduced":  # a general statement, for which LeNet is the model itself
        found = Measured(found.values, found.low, found.high, "measured", found.n, found.runs, found.note)
    yield "momentum-helps-many", found


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
    note = f"points of test error, {STAND_IN[evidence.profile] or 'LeNet'}"
    yield "average-better", several([spread(last, made, runs, note), spread(over_run, made, runs, note)])
