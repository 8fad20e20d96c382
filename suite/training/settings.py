"""The settings that a training knows, by path, and what each may be; nothing here imports torch.

:mod:`suite.training.loop` says what they mean. An experiment of more settings adds them to the same table, and names
the whole in :class:`suite.experiment.Experiment`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from suite.spec import RunSpec, thaw, trainings
from suite.tables import KINDS, likely

Kind = type | int | float  # of a value, or the least that a number may be: of a whole one a whole number
# A part of which single settings stand here has no others. Those of the other parts belong to what the part names.
TRAINING: dict[str, Kind] = {
    **dict.fromkeys(("algorithm", "augment", "descent", "exchange", "model", "order", "schedule", "warmstart"), dict),
    **dict.fromkeys(("path", "precision"), str),
    "updates": 0,
    "batch": 1,
    "workers": 1,
    "rate": 0.0,
    "drops": list,
    "restart": bool,
    "data": dict,
    **dict.fromkeys(("data.name", "data.transform", "data.digest"), str),
    **dict.fromkeys(("data.subset", "data.size", "data.examples", "data.enlarge"), 1),
    "evaluate": dict,
    "evaluate.every": 1,
    "evaluate.test_examples": 1,
    "evaluate.train_examples": 0,
    "evaluate.recompute": 0,
    "record": dict,
    "record.every": 1,
    "stop": dict,
    "stop.metric": str,
    "stop.below": float("-inf"),
    "stop.median": 1,
    "stop.after": 0,
}
SERVED: dict[str, Kind] = {**TRAINING, "server": dict}  # of a training whose turns a server decides
STREAMED: dict[str, Kind] = {**TRAINING, "crop": 1, "side": 1, "evaluate.examples": 1}  # of one on ImageNet
REQUIRED = (
    *("algorithm.name", "data.name", "descent.rule", "evaluate.every", "exchange.name"),
    *("model.name", "order.kind", "stop.metric", "stop.below", "warmstart.updates"),
)
METRICS = (  # columns of the evaluations that a rule may stop a run by
    *("test_error", "test_loss", "train_error", "train_loss"),
    *("update", "seconds", "sent", "virtual_seconds", "epoch"),
)
COUNTS = (  # of simulations and measurements, of which there must be at least one
    *("cases", "d", "draws", "every", "examples", "hosts", "images", "iterations", "limit", "lost_runs", "machines"),
    *("numbers", "repeats", "repetitions", "rounds", "runs", "settling_runs", "steps", "turns", "width"),
)
COMMON: dict[str, Kind] = {
    **{path: kind for path, kind in TRAINING.items() if not isinstance(kind, type)},
    **dict.fromkeys(COUNTS, 1),
    "drops": list,
    "warmstart": dict,
}
FROZEN: dict[type, Any] = {list: list | tuple, dict: Mapping}  # as what a specification may hold it
NAMES = {**{types[0]: name for types, name in KINDS.values()}, list: "a list", dict: "settings by name"}


def check_settings(settings: Mapping[str, Any], known: Mapping[str, Kind] | None = None) -> None:
    """Raise ValueError where a setting is of another kind or too small, is not known or lacks a part of it.

    Without a table of those ``known`` what any experiment has is looked at.
    """
    if known is not None:
        closed = {path.partition(".")[0] for path in known if "." in path}
        there = dict(by_path(settings, closed))
        if unknown := [path for path in there if path not in known]:
            names = {*known, *dict(by_path(settings))} - set(unknown)
            raise ValueError(f"there is no setting {unknown[0]!r}; {likely(unknown[0], names)}")
    table = COMMON if known is None else known
    for path, kind in table.items():
        part, _, name = path.rpartition(".")
        inside = settings.get(part, {}) if part else settings
        if isinstance(inside, Mapping) and name in inside:
            check_kind(path, inside[name], kind)
    for path in REQUIRED:
        part, _, name = path.partition(".")
        inside = settings.get(part)
        if isinstance(inside, Mapping) and name not in inside and (part in table or path in table):
            raise ValueError(f"{part} has no {name}; set {path} beside {', '.join(inside) or 'it'}")
    check_drops(settings.get("drops", ()))
    if known is not None:
        check_metric(settings)


def check_run(spec: RunSpec, known: Mapping[str, Kind] | None) -> None:
    """Check the settings of a run, and those of the warm start before it."""
    check_settings(spec.settings, known)
    for stage in trainings(spec)[:-1]:
        check_settings(stage.settings, known)


def by_path(settings: Mapping[str, Any], parts: Collection[str] | None = None) -> Iterator[tuple[str, Any]]:
    """All settings by path, with those inside ``parts``, by default of every part."""
    for name, value in settings.items():
        yield name, value
        if isinstance(value, Mapping) and (parts is None or name in parts):
            yield from ((f"{name}.{inner}", each) for inner, each in value.items())


def check_kind(path: str, value: Any, kind: Kind) -> None:
    """Raise ValueError for a value that a setting of this kind cannot have."""
    shown = thaw(value) if isinstance(value, Mapping | tuple) else value
    if isinstance(kind, type):
        if not isinstance(value, FROZEN.get(kind, kind)):
            raise ValueError(f"{path}={shown!r} must be {NAMES[kind]}")
    elif isinstance(value, bool) or not isinstance(value, int | type(kind)) or not kind <= value < math.inf:
        least = f", {kind:g} or more" if kind > float("-inf") else ""
        raise ValueError(f"{path}={shown!r} must be a {'whole ' if type(kind) is int else ''}number{least}")


def check_drops(drops: Sequence[Any]) -> None:
    """Raise ValueError for anything but turns in their order, each with what multiplies the rate from there on."""
    last = -1
    for each in drops:
        match each:
            case [int(turn), int(factor) | float(factor)] if turn > last and factor >= 0:
                last = turn
            case _:
                raise ValueError(
                    f"drops={thaw(tuple(drops))} must be pairs of a turn, later than the one before, and of what "
                    "multiplies the rate from there on, 0 or more, such as [[1000, 0.1], [2000, 0.01]]"
                )


def check_metric(settings: Mapping[str, Any]) -> None:
    """Raise ValueError for a rule that reads what no evaluation of the run has."""
    metric = settings.get("stop", {}).get("metric")
    if metric is not None and metric not in METRICS:
        raise ValueError(f"stop.metric={metric!r} is no column of evaluations; {likely(metric, METRICS)}")
    if str(metric).startswith("train_") and not settings.get("evaluate", {}).get("train_examples"):
        raise ValueError(f"stop.metric={metric!r} needs evaluate.train_examples, the images that it is read from")
