"""How quantities are read from a frame: named results, epochs to accuracy, and methods compared seed by seed.

**The accuracy at which runs are compared** is printed at the paper's scale, below it the top of a ladder they all
reach. Stand-ins end at accuracies of their own, so the printed 80 and 88% mean nothing to them. Runs are compared
at the highest rung of ``LADDER`` that every run of the comparison reaches, by the paper's metric (median of the
last five epochs). The rule asks how far all got and not who got there first, so it favours none of them.

It replaces targets set by hand and moved "where they separate the methods", once pilots had been seen: from 90 to
97% for the digits, and from 90 to 85% for LeNet, of which 16 learners passed 85% at epoch 8 of a pilot. The ladder
was written down before ResNet-32's runs and most of LeNet's existed; LeNet's numbers of epochs are still those cut
to the pilot.

**What stands in.** Below the ``paper`` profile another network, or the first epochs on a part of the images, stands
in for ResNet-32's training; the figure's claims are decided at ``paper`` alone.

**Time** is epochs x time per epoch: the second factor is the ratio of throughputs that the experiment
``crossbow/throughput`` measured side by side, so no clock time of one run is held against another's. Times measured
on a CPU are no evidence about a GPU and decide nothing.

**Drawings** show tidy frames: accuracy by epoch, arrival at a target, throughput.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from paper_figures.crossbow import settings
from suite.claims.intervals import Interval, at_least, mean_interval
from suite.papers.figure import Artifact, Frame, Missing, Quantity, Run, pd

THROUGHPUT = "throughput"  # the group of the run that times learners of the network that is trained
WINDOW = 5  # epochs, of whose test accuracies the metric takes the median
LADDER = (*(share / 100 for share in range(30, 100, 5)), 0.97, 0.98, 0.99)  # share correct
STAND_INS = {
    "digits_lenet": "a small LeNet on scikit-learn's digits",
    "crossbow_lenet": "LeNet on 2,000 images of MNIST",
    "crossbow_resnet32": "ResNet-32 on 10,000 images of CIFAR-10",
}

# ---------------------------------------------------------------- runs of a frame


def on_gpu(run: Run) -> bool:
    return run.environment.get("execution", {}).get("device") == "cuda"


def on_device(run: Run) -> str:
    """The network that a run timed, and whether on a GPU."""
    return f"{run.spec.settings['model']} on {'a GPU' if on_gpu(run) else 'a CPU'}"


def told(panel: Artifact, **claims: str) -> None:
    """Quantities of a panel that are deterministic results of the algebra of Algorithm 1, by claim."""
    for claim, name in claims.items():
        panel.quantities[claim.replace("_", "-")] = result("algebra", name)


def result(group: str, name: str) -> Quantity:
    """A result of a group's only run."""
    return Quantity(lambda frame: frame.one(group)[name], (group,))


# ---------------------------------------------------------------- epochs to an accuracy


def accuracies(frame: Frame, group: str) -> list[list[float]]:
    """Test accuracy (share correct) of every run of a group at the end of each of its epochs."""
    tables = [run.curve("evaluations") for run in frame.runs_of(group)]
    return [(1 - table["test_error"][table["update"] > 0]).tolist() for table in tables]


def medians(accuracies: Sequence[float]) -> pd.Series:
    """The median of the last ``WINDOW`` accuracies at each epoch's end; NaN before so many, and where one is NaN."""
    return pd.Series(accuracies, dtype=float).rolling(WINDOW).median()


def epochs_to_accuracy(accuracies: Sequence[float], target: float) -> float:
    """Epochs until the median of the last ``WINDOW`` test accuracies is at least ``target``; infinite if never.

    Section 5.1: TTA(x) is the time taken for the median test accuracy of the last 5 epochs to be equal to or above x.
    ``accuracies[i]`` belongs to the end of epoch i + 1 (the untrained model is not among them), in the unit of
    ``target``; as many images as the target asks for are enough.
    """
    reached = at_least(medians(accuracies), target)
    return float(reached.argmax() + 1) if reached.any() else math.inf


def epochs(frame: Frame, group: str, target: float) -> list[float]:
    """Epochs to the target of every run of a group, in the order of its seeds; infinite if never reached."""
    return [epochs_to_accuracy(curve, target) for curve in accuracies(frame, group)]


def arrivals(frame: Frame, groups: Iterable[str], target: float) -> list[float]:
    """``epochs`` of the runs of all these groups."""
    return [count for group in groups for count in epochs(frame, group, target)]


def late_arrival(accuracies: Sequence[float]) -> float:
    """Epochs to the paper's 99% of LeNet; a curve that ends before counts as there in the epoch after its last."""
    return min(epochs_to_accuracy(accuracies, settings.LENET_TARGET), settings.LENET_LENGTH + 1.0)


def rungs(curves: list[list[float]]) -> list[float]:
    """The rungs that every curve of test accuracies reaches, lowest first."""
    highest = [medians(curve).max() for curve in curves]
    return [rung for rung in LADDER if all(at_least(level, rung) for level in highest)]


def common_target(frame: Frame, *groups: str, printed: float = settings.TARGET) -> float:
    """The accuracy (share) at which the runs of these groups are compared.

    Where they have no rung in common it is the lowest, which some of them then never reach.
    """
    if frame.profile == "paper":
        return printed
    return max(rungs([curve for group in groups for curve in accuracies(frame, group)]), default=LADDER[0])


def stand_in(frame: Frame, group: str) -> str:
    """What was trained in the place of the paper's run, empty at the paper's scale."""
    trained = frame.runs_of(group)[0].spec.settings
    if frame.profile == "paper" or trained["data"] == settings.MNIST:
        return ""
    return STAND_INS[trained["model"]["name"]]


def spread(values: Iterable[float]) -> Interval:
    """A quantity with its Student interval over seeds. One seed, or one that never arrived, leaves it open."""
    every = list(values)
    arrived = [value for value in every if math.isfinite(value)]
    if all(map(math.isfinite, every)):
        return mean_interval(every)
    middle = sum(arrived) / len(arrived) if arrived else math.inf
    return Interval(middle, -math.inf, math.inf, len(every))


def less_time(a: float, b: float) -> float:
    """Per cent of b that a saves."""
    return 100 * (1 - a / b)


def steps(a: float, b: float) -> float:
    """How many more epochs b takes."""
    return b - a


Combine = Callable[[float, float], float]


def paired(frame: Frame, a: str, b: str, combine: Combine, target: float, longer: float = 1.0) -> Interval:
    """``combine(epochs of a, epochs of b)`` seed by seed; an epoch of a takes ``longer`` times one of b."""
    pairs = zip(epochs(frame, a, target), epochs(frame, b, target), strict=True)
    return spread(combine(x * longer, y) if math.isfinite(x) and math.isfinite(y) else math.inf for x, y in pairs)


def pair(
    a: str,
    b: str,
    combine: Combine,
    text: str = "",
    *,
    printed: float = settings.TARGET,
    levels: Sequence[float] = (),
    timed: int = 0,
    shown: bool = False,
) -> Quantity:
    """Two methods compared seed by seed, to their common target or to each of some ``levels`` of accuracy.

    ``timed``: in times, where a has so many learners, b one, and a run of their throughput is there.
    """

    def value(frame: Frame) -> list[Interval]:
        longer = seconds_ratio(frame, timed) if timed else 1.0
        targets = levels or [common_target(frame, a, b, printed=printed)]
        compared = [paired(frame, a, b, combine, target, longer) for target in targets]
        if frame.profile != "paper" and all(math.isinf(each.mean) for each in compared):
            raise Missing("lacks a stand-in that reaches the accuracy compared at")
        return compared

    def note(frame: Frame) -> str:
        target = levels[0] if levels else common_target(frame, a, b, printed=printed)
        aside = f"{timed} learners take {seconds_ratio(frame, timed):.2f} of one's time an epoch" if timed else ""
        return described(frame, (a, b), target, text, aside)

    return Quantity(value, (a, b), beside=("throughput",) if timed else (), note=note, shown=shown)


def refuse_floor(frame: Frame, groups: Sequence[str], target: float) -> None:
    """Raise Missing where most runs of a stand-in take the least epochs that the metric can tell."""
    found = arrivals(frame, groups, target)
    if frame.profile != "paper" and 2 * found.count(float(WINDOW)) > len(found):
        raise Missing(f"lacks a stand-in that takes more than {WINDOW} epochs, the least that the metric can tell")


def described(frame: Frame, groups: Sequence[str], target: float, *texts: str) -> str:
    """A note: what it is, the accuracy compared at, what stood in, and how many runs never got there."""
    found = arrivals(frame, groups, target)
    missed = len(found) - sum(map(math.isfinite, found))
    late = f"{missed} of {len(found)} runs never reached the target" if missed else ""
    least = found.count(float(WINDOW))
    early = f"{least} of {len(found)} took {WINDOW} epochs, the least that the metric can tell" if least else ""
    return "; ".join(filter(None, (*texts, f"to {100 * target:g}%", stand_in(frame, groups[0]), late, early)))


# ---------------------------------------------------------------- throughput


def seconds_ratio(frame: Frame, learners: int) -> float:
    """Time per epoch with so many learners over that of one, on one device of this machine.

    The first epochs of ResNet-32 at ``reduced`` have no times, which are then left out. Raises Missing at the paper's
    scale where they are not a GPU's.
    """
    if frame.profile == "reduced" and frame[THROUGHPUT].empty:
        return 1.0
    return 1 / median(of_gpu(frame).results[f"over_one_{learners}"])


def fastest(run: Run) -> int:
    """The number of learners with the largest median throughput, those within 2% of it counted as the same."""
    speed = {k: median(run.results[f"over_one_{k}"]) for k in run.spec.settings["learners"]}
    top = max(speed.values())
    return min(k for k in speed if speed[k] >= 0.98 * top)


def of_gpu(frame: Frame, group: str = THROUGHPUT) -> Run:
    """A run of throughput. Raises Missing at the paper's scale where it is not a GPU's."""
    run = frame.run(group)
    if frame.profile == "paper" and not on_gpu(run):
        raise Missing("lacks the throughput of learners on a GPU")
    return run


def method_of(run: Run) -> str:
    algorithm = run.spec.settings["algorithm"]
    if algorithm["name"] == "sgd":
        return "S-SGD"
    return "SMA" if algorithm["momentum"] else "EA-SGD"


def learners_of(run: Run) -> int:
    return int(run.spec.settings.get("workers", 1))


def titled(run: Run) -> str:
    """How the runs of a group are called in a drawing, such as ``SMA, k = 8, tau = 4``."""
    algorithm, parts = run.spec.settings["algorithm"], [method_of(run), f"k = {learners_of(run)}"]
    if devices := algorithm.get("devices"):
        parts.append(f"{devices} devices")
    if (tau := algorithm.get("tau", 1)) > 1:
        parts.append(f"tau = {tau}")
    return ", ".join(parts)


def of_experiment(frame: Frame, name: str) -> list[str]:
    """The groups of an experiment of which every run is stored. Raises Missing where there is none."""
    whole = filter(frame.whole, frame.groups)
    found = [group for group in whole if frame.runs_of(group)[0].spec.experiment == name]
    if not found:
        what = "training runs" if name == "train" else f"runs of {name}"
        raise Missing(f"lacks {what} at {frame.profile}")
    return found


def trained(frame: Frame) -> list[str]:
    """The groups of training runs that are stored.

    A drawing shows what has been trained; ResNet-32's runs, the longest, may come after LeNet's.
    """
    return of_experiment(frame, "train")


def accuracy_table(frame: Frame) -> pd.DataFrame:
    """A row per group, seed and epoch: ``test`` and ``training`` accuracy (%), and what stands in."""
    parts = []
    for name in trained(frame):
        for run in frame.runs_of(name):
            table = run.curve("evaluations")
            table = table[table["update"] > 0]
            rows = {"test": 100 * (1 - table["test_error"]), "training": 100 * (1 - table["train_error"])}
            named = {"group": titled(run), "stand_in": stand_in(frame, name), "seed": run.spec.seed}
            parts.append(pd.DataFrame({**named, "epoch": range(1, len(table) + 1), **rows}))
    return pd.concat(parts, ignore_index=True)


def shown_target(frame: Frame, names: Sequence[str], printed: float) -> float:
    """The accuracy (share) that arrivals are drawn for: the highest rung that most runs of every group reach.

    Verdicts compare at the highest rung that all runs reach, which one run that never learned puts at the foot of
    the ladder, where every other run takes the metric's least number of epochs. Like theirs, this rule asks how far
    runs got and not which got there first. At the paper's scale it is the printed target.
    """
    if frame.profile == "paper":
        return printed
    groups = [[medians(curve).max() for curve in accuracies(frame, name)] for name in names]
    most = lambda rung, highest: 2 * sum(at_least(level, rung) for level in highest) > len(highest)
    return max((rung for rung in LADDER if all(most(rung, highest) for highest in groups)), default=LADDER[0])


def arrival_table(frame: Frame, printed: float, speed: Mapping[str, float] | None = None) -> pd.DataFrame:
    """A row per group and seed: ``epochs`` to the ``target`` (%), NaN where it was never reached in ``trained``.

    Each network has a target of its own. ``speed`` is the throughput of a group over that of one learner, by which
    its epochs are divided into ``time``, in epochs of one learner; 1 without.
    """
    places: dict[str, list[str]] = {}
    for name in trained(frame):
        places.setdefault(stand_in(frame, name), []).append(name)
    rows: list[dict[str, Any]] = []
    for place, alike in places.items():
        target = shown_target(frame, alike, printed)
        for name in alike:
            counts, curves = epochs(frame, name, target), accuracies(frame, name)
            for run, count, curve in zip(frame.runs_of(name), counts, curves, strict=True):
                found, learners = count if math.isfinite(count) else math.nan, learners_of(run)
                about = {"group": titled(run), "stand_in": place, "method": method_of(run), "learners": learners}
                about |= {"images": run.spec.settings["batch"] * learners, "target": 100 * target}
                about |= {"seed": run.spec.seed, "trained": len(curve), "epochs": found}
                rows.append(about | {"time": found / (speed[name] if speed else 1.0)})
    return pd.DataFrame(rows)


def timed_table(frame: Frame, printed: float) -> pd.DataFrame:
    """Arrivals on one device, with the throughput that was measured there for so many learners."""
    speed = {name: 1 / seconds_ratio(frame, learners_of(frame.runs_of(name)[0])) for name in trained(frame)}
    return arrival_table(frame, printed, speed)


def network(run: Run) -> str:
    return settings.NETWORKS.get(run.spec.settings["model"], "a small LeNet")


def throughput_table(frame: Frame) -> pd.DataFrame:
    """A row per network, way, number of learners and repeat: throughput ``over_one`` learner's.

    ``way`` is "m learners" or "m times the batch"; of the second only the median ratio to the first is stored, so
    it has one row.
    """
    rows: list[dict[str, Any]] = []
    for name in of_experiment(frame, "crossbow/throughput"):
        run = frame.run(name)
        fixed = {"network": network(run), "device": "GPU" if on_gpu(run) else "CPU"}
        for k in run.spec.settings["learners"]:
            each = run.results[f"over_one_{k}"]
            rows += [fixed | {"way": "m learners", "learners": k, "over_one": value} for value in each]
            large = median(each) / median(run.results[f"over_batch_{k}"])
            rows.append(fixed | {"way": "m times the batch", "learners": k, "over_one": large})
    return pd.DataFrame(rows)
