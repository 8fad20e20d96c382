"""How quantities are read from stored runs: named results, epochs to accuracy, and methods compared seed by seed.

**The accuracy at which runs are compared** is printed at the paper's scale, below it the top of a ladder they all
reach. Stand-ins end at accuracies of their own, so the printed 80 and 88% mean nothing to them. Runs are compared at
the highest rung of ``LADDER`` that every run of the comparison reaches, by the paper's metric (median of the last
five epochs). The rule asks how far all got and not who got there first, so it favours none of them.

It replaces targets set by hand and moved "where they separate the methods", once pilots had been seen: from 90 to
97% for the digits, and from 90 to 85% for LeNet, of which 16 learners passed 85% at epoch 8 of a pilot. The ladder
was written down before ResNet-32's runs and most of LeNet's existed; LeNet's numbers of epochs are still those cut to
the pilot.

**What stands in.** Below the ``paper`` profile another network, or the first epochs on a part of the images, stands
in for ResNet-32's training, so what is measured there is a *proxy* of the figure's claims.

**Time** is epochs x time per epoch: the second factor is the ratio of throughputs that the experiment
``crossbow/throughput`` measured side by side, so no clock time of one run is held against another's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from paper_figures.crossbow import settings
from suite.claims.estimate import Estimate, exact, interval, over_seeds
from suite.model_averaging.time_to_accuracy import epochs_to_accuracy
from suite.papers.artifact import Evidence, Missing, Quantities
from suite.papers.counterfeits import edited, forged

if TYPE_CHECKING:
    from suite.runs.store import Run

LADDER = (*(share / 100 for share in range(30, 100, 5)), 0.97, 0.98, 0.99)  # share correct
STAND_INS = {
    "digits_lenet": "a small LeNet on scikit-learn's digits",
    "crossbow_lenet": "LeNet on 2,000 images of MNIST",
    "crossbow_resnet32": "ResNet-32 on 10,000 images of CIFAR-10",
}


def require(condition: bool, what: str) -> None:
    """Stop measuring for want of ``what``."""
    if not condition:
        raise Missing(f"lacks {what}")


def ids(evidence: Evidence, *names: str) -> list[str]:
    return [run.id for name in names for run in evidence.runs(name)]


def on_gpu(run: Run) -> bool:
    return run.environment.get("execution", {}).get("device") == "cuda"


def results(evidence: Evidence, group: str, names: Mapping[str, str | tuple[str, ...]]) -> Quantities:
    """Deterministic results of a group's only run as exact quantities: claim -> one result, or several in order."""
    run = evidence.run(group)
    for claim, keys in names.items():
        found: list[float] = []
        for key in (keys,) if isinstance(keys, str) else keys:
            value = run.results[key]
            found += value if isinstance(value, list) else [value]
        yield claim, exact(found, runs=(run.id,))


def telling(evidence: Evidence, group: str, **said: float | list[float]) -> Evidence:
    """A world in which the only run of a group came to other results."""
    return edited(evidence, lambda run: forged(run, said), group)


def accuracies(run: Run) -> list[float]:
    """Test accuracy (share correct) at the end of every epoch of a training run."""
    table = run.curve("evaluations")
    return [1 - float(error) for error in table["test_error"][table["update"] > 0]]


def epochs(evidence: Evidence, group: str, target: float) -> list[float]:
    """Epochs to the target of every run of a group, in the order of its seeds; infinite if never reached."""
    found = [epochs_to_accuracy(accuracies(run), target) for run in evidence.runs(group)]
    return [math.inf if count is None else float(count) for count in found]


def late_arrival(accuracies: Sequence[float]) -> float:
    """Epochs to the paper's 99% of LeNet; a curve that ends before counts as there in the epoch after its last."""
    found = epochs_to_accuracy(list(accuracies), settings.LENET_TARGET)
    return float(settings.LENET_LENGTH + 1 if found is None else found)


def rungs(curves: list[list[float]]) -> list[float]:
    """The rungs that every curve of test accuracies reaches, lowest first."""
    return [rung for rung in LADDER if all(epochs_to_accuracy(row, rung) is not None for row in curves)]


def common_target(evidence: Evidence, *names: str, printed: float = settings.TARGET) -> float:
    """The accuracy (share) at which the runs of these groups are compared.

    Where they have no rung in common it is the lowest, which some of them then never reach. Raises Missing where a
    run is not stored.
    """
    if evidence.profile == "paper":
        return printed
    reached = rungs([accuracies(run) for name in names for run in evidence.runs(name)])
    return reached[-1] if reached else LADDER[0]


def short(evidence: Evidence) -> bool:
    """Whether trainings are too short for an epoch of theirs to be one of the paper's."""
    return evidence.profile != "paper"


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


def as_proxy(found: Estimate) -> Estimate:
    """Shown, never decided."""
    return replace(found, proxy=True)


def of_device(evidence: Evidence, found: Estimate) -> Estimate:
    """Times measured on a CPU are no evidence about a GPU."""
    return found if on_gpu(evidence.run("throughput")) else as_proxy(found)


def spread(values: Sequence[float], runs: Sequence[str], note: str = "", *, proxy: bool = False) -> Estimate:
    """A quantity with its Student interval over seeds. One seed, or one that never arrived, leaves it open."""
    from suite.claims.intervals import mean_interval

    arrived = [value for value in values if math.isfinite(value)]
    if len(arrived) < len(values):
        missed = len(values) - len(arrived)
        note = f"{note}; {missed} of {len(values)} runs never reached the target".lstrip("; ")
        middle = sum(arrived) / len(arrived) if arrived else math.inf
        return Estimate((middle,), (-math.inf,), (math.inf,), len(values), tuple(runs), note, proxy)
    found = mean_interval(values)
    return over_seeds(found, runs, note, proxy=proxy)


def several(parts: Sequence[Estimate]) -> Estimate:
    """Quantities as one with several values, under the note of the first; a proxy where one is."""
    return interval(
        [value for part in parts for value in part.values],
        [value for part in parts for value in part.low],
        [value for part in parts for value in part.high],
        n=min(part.n for part in parts),
        runs=dict.fromkeys(run for part in parts for run in part.runs),
        note=parts[0].note,
        proxy=any(part.proxy for part in parts),
    )


def paired(
    evidence: Evidence,
    a: str,
    b: str,
    combine: Callable[[float, float], float],
    note: str = "",
    *,
    target: float | None = None,
    printed: float = settings.TARGET,
) -> Estimate:
    """``combine(epochs of a, epochs of b)`` seed by seed, with its interval; to their common target by default."""
    if target is None:
        target = common_target(evidence, a, b, printed=printed)
    pairs = zip(epochs(evidence, a, target), epochs(evidence, b, target), strict=True)
    values = [combine(x, y) if math.isfinite(x) and math.isfinite(y) else math.inf for x, y in pairs]
    return spread(values, ids(evidence, a, b), described(evidence, a, target, note), proxy=short(evidence))


def less_time(a: float, b: float) -> float:
    """Per cent of b that a saves."""
    return 100 * (1 - a / b)


def seconds_ratio(evidence: Evidence, learners: int) -> float:
    """Time per epoch with so many learners over that of one, on one device of this machine."""
    require("throughput" in evidence.groups, f"a throughput run of {settings.NETWORK[evidence.profile]}")
    found = evidence.run("throughput").results
    key = f"over_one_{learners}"
    require(key in found, f"the throughput of {learners} learners on one device")
    return 1 / median(found[key])


def fastest(run: Run) -> int:
    """The number of learners with the largest median throughput, those within 2% of it counted as the same."""
    counts = run.spec.settings["learners"]
    speed = {k: median(run.results[f"over_one_{k}"]) for k in counts}
    top = max(speed.values())
    return min(k for k in counts if speed[k] >= 0.98 * top)
