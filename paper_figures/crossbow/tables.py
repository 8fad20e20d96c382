"""What the drawings show, as tidy frames: accuracy by epoch, arrival at a target, throughput, timelines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from paper_figures.crossbow import server_model, settings
from paper_figures.crossbow.readings import (
    LADDER,
    accuracies,
    epochs,
    on_gpu,
    require,
    seconds_ratio,
    stand_in,
)
from suite.model_averaging.time_to_accuracy import epochs_to_accuracy
from suite.papers.artifact import Evidence, Missing
from suite.papers.catalogue import printed_value

if TYPE_CHECKING:
    import pandas as pd

METHODS = {"sma": "SMA", "ea-sgd": "EA-SGD", "s-sgd": "S-SGD"}
ON_RESNET32 = "resnet-32 "  # before the name of a group that stands beside LeNet's


def titled(name: str) -> str:
    """How a group is called in a drawing: ``sma 8 tau 4`` is SMA, k = 8, tau = 4."""
    method, k, *option = name.removeprefix(ON_RESNET32).split()
    if not option:
        return f"{METHODS[method]}, k = {k}"
    kind, value = option
    return f"{METHODS[method]}, k = {k}, " + (f"{value} devices" if kind == "devices" else f"{kind} = {value}")


def trained(evidence: Evidence) -> list[str]:
    """The groups of training runs that are stored, without those that measure throughput.

    A drawing shows what has been trained; ResNet-32's runs, the longest, may come after LeNet's.
    """
    names = [name for name in evidence.groups if name.split()[-1].isdigit() and stored(evidence, name)]
    require(bool(names), f"training runs at {evidence.profile}")
    return names


def stored(evidence: Evidence, name: str) -> bool:
    try:
        return bool(evidence.runs(name))
    except Missing:
        return False


def accuracy_table(evidence: Evidence) -> pd.DataFrame:
    """A row per group, seed and epoch: ``test`` and ``training`` accuracy (%), and what stands in."""
    import pandas as pd

    parts = []
    for name in trained(evidence):
        for run in evidence.runs(name):
            table = run.curve("evaluations")
            table = table[table["update"] > 0]
            rows = {"test": 100 * (1 - table["test_error"]), "training": 100 * (1 - table["train_error"])}
            named = {"group": titled(name), "stand_in": stand_in(evidence, name), "seed": run.spec.seed}
            parts.append(pd.DataFrame({**named, "epoch": range(1, len(table) + 1), **rows}))
    return pd.concat(parts, ignore_index=True)


def shown_target(evidence: Evidence, names: Sequence[str], printed: float) -> float:
    """The accuracy (share) that arrivals are drawn for: the highest rung that most runs of every group reach.

    Verdicts compare at the highest rung that all runs reach, which one run that never learned puts at the foot of
    the ladder, where every other run takes the metric's least number of epochs. Like theirs, this rule asks how far
    runs got and not which got there first. At the paper's scale it is the printed target.
    """
    if evidence.profile == "paper":
        return printed

    groups = [[accuracies(run) for run in evidence.runs(name)] for name in names]

    def most(curves: list[list[float]], rung: float) -> bool:
        return 2 * sum(epochs_to_accuracy(curve, rung) is not None for curve in curves) > len(curves)

    return max((rung for rung in LADDER if all(most(curves, rung) for curves in groups)), default=LADDER[0])


def arrival_table(
    evidence: Evidence, printed: float, names: Sequence[str] | None = None, speed: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """A row per group and seed: ``epochs`` to the ``target`` (%), NaN where it was never reached in ``trained``.

    Each network has a target of its own. ``speed`` is the throughput of a group over that of one learner, by which
    its epochs are divided into ``time``, in epochs of one learner; 1 without.
    """
    import pandas as pd

    chosen = trained(evidence) if names is None else [name for name in names if stored(evidence, name)]
    require(bool(chosen), f"training runs at {evidence.profile}")
    places: dict[str, list[str]] = {}
    for name in chosen:
        places.setdefault(stand_in(evidence, name), []).append(name)
    rows: list[dict[str, Any]] = []
    for place, alike in places.items():
        target = shown_target(evidence, alike, printed)
        for name in alike:
            method, k = name.removeprefix(ON_RESNET32).split()[:2]
            fixed = {"group": titled(name), "stand_in": place, "method": METHODS[method], "learners": int(k)}
            every = evidence.groups[name][0].settings
            fixed |= {"images": every["batch"] * every.get("workers", 1), "target": 100 * target}
            for run, count in zip(evidence.runs(name), epochs(evidence, name, target), strict=True):
                found = count if math.isfinite(count) else math.nan
                ended = {"seed": run.spec.seed, "trained": len(accuracies(run))}
                rows.append(fixed | ended | {"epochs": found, "time": found / (speed or {}).get(name, 1.0)})
    return pd.DataFrame(rows)


def timed_table(evidence: Evidence, printed: float) -> pd.DataFrame:
    """Arrivals on one device, with the throughput that was measured there for so many learners."""
    speed = {name: 1 / seconds_ratio(evidence, int(name.split()[1])) for name in trained(evidence)}
    return arrival_table(evidence, printed, speed=speed)


def eight_gpus_table(evidence: Evidence, printed: float, names: Mapping[int, str]) -> pd.DataFrame:
    """Arrivals with the replicas of 8 GPUs, by learners per GPU; throughput by the cost model of its server."""
    alone = server_model.throughput(1)
    speed = {name: server_model.throughput(m) / alone for m, name in names.items()}
    return arrival_table(evidence, printed, list(names.values()), speed)


def network(name: str) -> str:
    return settings.NETWORKS.get(name, "a small LeNet")


def throughput_table(evidence: Evidence) -> pd.DataFrame:
    """A row per network, way, number of learners and repeat: throughput ``over_one`` learner's.

    ``way`` is "k learners" or "k times the batch"; of the second only the median ratio to the first is stored, so
    it has one row. Groups of throughput runs bear the names of networks.
    """
    import pandas as pd

    names = [name for name in evidence.groups if not name[-1].isdigit() or name in settings.NETWORKS]
    require(bool(names), f"throughput runs at {evidence.profile}")
    rows: list[dict[str, Any]] = []
    for name in names:
        run = evidence.run(name)
        fixed = {"network": network(name), "device": "GPU" if on_gpu(run) else "CPU"}
        for k in run.spec.settings["learners"]:
            each = run.results[f"over_one_{k}"]
            rows += [fixed | {"way": "k learners", "learners": k, "over_one": value} for value in each]
            large = median(each) / median(run.results[f"over_batch_{k}"])
            rows.append(fixed | {"way": "k times the batch", "learners": k, "over_one": large})
    return pd.DataFrame(rows)


def modelled_table() -> pd.DataFrame:
    """Throughput (images/s) on 8 GPUs by the cost model, printed values beside: a row per learners and interval.

    ``calibrated`` marks the points that the model's constants were solved from, which it therefore meets.
    """
    import pandas as pd

    printed = {(1, 1): printed_value("crossbow/fig17/tau1"), (1, None): printed_value("crossbow/fig17/nosync")}
    fitted = {*printed, (4, 1), (4, None)}  # m = 4: by the printed factor of Fig. 12a and gain of no synchronisation
    rows = [
        {
            "learners": m,
            "interval": "none" if tau is None else str(tau),
            "images_per_second": server_model.throughput(m, tau),
            "calibrated": (m, tau) in fitted,
            "printed": printed.get((m, tau), math.nan),
        }
        for m in (1, 2, 4)
        for tau in (1, 2, 4, None)
    ]
    return pd.DataFrame(rows)


def results_table(evidence: Evidence, group: str, names: Mapping[str, str]) -> pd.DataFrame:
    """Deterministic results of a group's only run: ``quantity`` as ``names`` call it, and its ``value``."""
    import pandas as pd

    found = evidence.run(group).results
    values = [(said, value) for name, said in names.items() for value in _listed(found[name])]
    return pd.DataFrame(values, columns=["quantity", "value"])


def _listed(value: Any) -> list[float]:
    return list(value) if isinstance(value, list) else [value]
