"""What the drawings show, as tidy frames: accuracy by epoch, arrival at a target, throughput."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from paper_figures.crossbow import server, settings
from paper_figures.crossbow.readings import LADDER, accuracies, epochs, on_gpu, seconds_ratio, stand_in, stored
from suite.lazy import pd
from suite.model_averaging.time_to_accuracy import epochs_to_accuracy
from suite.papers.artifact import Missing
from suite.papers.catalogue import printed_value
from suite.papers.panel import Frame
from suite.runs.store import Run


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


def whole(frame: Frame) -> list[str]:
    """The groups of which every run is stored, in the order of the plan."""
    return [group for group in frame.groups if frame.whole(group)]


def of_experiment(frame: Frame, name: str) -> list[str]:
    """The whole groups of an experiment. Raises Missing where there is none."""
    found = [group for group in whole(frame) if stored(frame, group)[0].spec.experiment == name]
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
        for run in stored(frame, name):
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
    groups = [accuracies(frame, name) for name in names]

    def most(curves: list[list[float]], rung: float) -> bool:
        return 2 * sum(epochs_to_accuracy(curve, rung) is not None for curve in curves) > len(curves)

    return max((rung for rung in LADDER if all(most(curves, rung) for curves in groups)), default=LADDER[0])


def arrival_table(frame: Frame, printed: float, speed: Mapping[str, float] | None = None) -> pd.DataFrame:
    """A row per group and seed: ``epochs`` to the ``target`` (%), NaN where it was never reached in ``trained``.

    Each network has a target of its own. ``speed`` is the throughput of a group over that of one learner, by which
    its epochs are divided into ``time``, in epochs of one learner; 1 without. Given, only its groups are shown.
    """
    chosen = [name for name in trained(frame) if speed is None or name in speed]
    if not chosen:
        raise Missing(f"lacks training runs at {frame.profile}")
    places: dict[str, list[str]] = {}
    for name in chosen:
        places.setdefault(stand_in(frame, name), []).append(name)
    rows: list[dict[str, Any]] = []
    for place, alike in places.items():
        target = shown_target(frame, alike, printed)
        for name in alike:
            counts, curves = epochs(frame, name, target), accuracies(frame, name)
            for run, count, curve in zip(stored(frame, name), counts, curves, strict=True):
                found = count if math.isfinite(count) else math.nan
                about = {
                    "group": titled(run),
                    "stand_in": place,
                    "method": method_of(run),
                    "learners": learners_of(run),
                }
                about |= {"images": run.spec.settings["batch"] * learners_of(run), "target": 100 * target}
                about |= {"seed": run.spec.seed, "trained": len(curve), "epochs": found}
                rows.append(about | {"time": found / (speed or {}).get(name, 1.0)})
    return pd.DataFrame(rows)


def timed_table(frame: Frame, printed: float) -> pd.DataFrame:
    """Arrivals on one device, with the throughput that was measured there for so many learners."""
    speed = {name: 1 / seconds_ratio(frame, learners_of(stored(frame, name)[0])) for name in trained(frame)}
    return arrival_table(frame, printed, speed)


def network(run: Run) -> str:
    return settings.NETWORKS.get(run.spec.settings["model"], "a small LeNet")


def throughput_table(frame: Frame) -> pd.DataFrame:
    """A row per network, way, number of learners and repeat: throughput ``over_one`` learner's.

    ``way`` is "k learners" or "k times the batch"; of the second only the median ratio to the first is stored, so
    it has one row.
    """
    rows: list[dict[str, Any]] = []
    for name in of_experiment(frame, "crossbow/throughput"):
        (run,) = stored(frame, name)
        fixed = {"network": network(run), "device": "GPU" if on_gpu(run) else "CPU"}
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
    printed = {(1, 1): printed_value("crossbow/fig17/tau1"), (1, None): printed_value("crossbow/fig17/nosync")}
    fitted = {*printed, (4, 1), (4, None)}  # m = 4: by the printed factor of Fig. 12a and gain of no synchronisation
    rows = [
        {
            "learners": m,
            "interval": "none" if tau is None else str(tau),
            "images_per_second": server.throughput(m, tau),
            "calibrated": (m, tau) in fitted,
            "printed": printed.get((m, tau), math.nan),
        }
        for m in (1, 2, 4)
        for tau in (1, 2, 4, None)
    ]
    return pd.DataFrame(rows)


def every_iteration() -> pd.DataFrame:
    """The modelled throughput with synchronisation in every iteration; ``relative`` to one learner on each GPU."""
    table = modelled_table().query("interval == '1'")
    return table.assign(relative=table["images_per_second"] / table["images_per_second"].iloc[0])
