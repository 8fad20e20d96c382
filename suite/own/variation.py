"""An artifact's runs with other settings: which settings there are, and what a run is when some are changed."""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suite.papers.artifact import Groups
from suite.spec import RunSpec, thaw
from suite.tables import UnknownName, likely

MOST = 24  # variations of one sweep


class VariationError(ValueError):
    """Settings that cannot be changed as asked."""


@dataclass(frozen=True)
class Variation:
    """One set of changed settings, and the artifact's runs under it: in groups of the same names and seeds."""

    changes: Mapping[str, Any]  # path of a setting -> its value
    groups: Groups

    @property
    def label(self) -> str:
        """``zeta = 0.1, momentum = 0.5``; the whole path where two last parts are the same, and of a warm start."""
        last = {path: path.rpartition(".")[2] for path in self.changes}
        alike = [name for name in last.values() if list(last.values()).count(name) > 1]
        whole = lambda path: last[path] in alike or path.startswith("warmstart.")
        names = {path: path if whole(path) else name for path, name in last.items()}
        return ", ".join(f"{names[path]} = {_said(value)}" for path, value in self.changes.items())


def _said(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse(texts: Iterable[str]) -> dict[str, list[Any]]:
    """``["algorithm.zeta=0.1,0.3", "order.kind=shuffled"]`` as values by path; several make a sweep.

    Values are those of TOML, and words may stand without quotes. Raises VariationError.
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        path, sign, values = text.partition("=")
        if not (sign and path.strip() and values.strip()):
            raise VariationError(f"--set {text!r} must be KEY=VALUE, such as algorithm.zeta=0.1 or batch=16,32")
        if path.strip() in found:
            raise VariationError(f"{path.strip()} is set twice; several values go behind commas: {path.strip()}=1,2")
        found[path.strip()] = _values(values)
    return found


def _values(text: str) -> list[Any]:
    """Values behind commas; one list alone is the sweep itself, or one value of a setting that is a list."""
    try:
        return list(tomllib.loads(f"values = [{text}]")["values"])
    except tomllib.TOMLDecodeError:
        words = [word.strip() for word in text.split(",") if word.strip()]
        return [each for word in words for each in _values(word)] if words[1:] else words


def written(spec: RunSpec) -> dict[str, Any]:
    """The settings that stand in a specification, by path: ``{"algorithm.zeta": 0.01, "batch": 64, ...}``."""

    def parts(settings: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
        for name, value in settings.items():
            if isinstance(value, Mapping):
                yield from parts(value, f"{before}{name}.")
            else:
                yield before + name, thaw(value)

    return dict(parts(spec.settings, ""))


def unwritten(spec: RunSpec) -> dict[str, Any]:
    """Settings that a specification leaves at their defaults, with these: fields of its algorithm and solver."""
    from suite.training.build import defaults

    there = written(spec)
    return {path: default for path, default in defaults(spec.settings).items() if path not in there}


def variations(groups: Groups, asked: Mapping[str, Sequence[Any]]) -> list[Variation]:
    """The runs under each combination of the values asked for.

    A run takes up those settings that it has; one that has none of them stays as it is, and keeps its id.

    Raises:
        VariationError: a setting that no run has, naming those near it; a value of another kind; no change at all.
    """
    specs = [spec for group in groups.values() for spec in group]
    if not specs:
        raise VariationError("it has no runs here, so that there is no setting to change")
    known, values = [written(spec) for spec in specs], {}
    for path in sorted(asked, key=lambda path: not names(path)):
        values[path] = checked(path, asked[path], specs, known)
        if names(path) and len(asked) > 1:  # what a part has in place of another can be asked for, too
            others = [changed(spec, {path: value}) for spec in specs for value in values[path]]
            specs += others
            known += map(written, others)
    values = {path: values[path] for path in asked}
    combined = [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
    if len(combined) > MOST:
        raise VariationError(f"{len(combined)} combinations of values are more than {MOST}; ask for fewer at a time")
    found = []
    for changes in combined:
        varied = {name: tuple(changed(spec, changes) for spec in group) for name, group in groups.items()}
        if varied == dict(groups):
            said = Variation(changes, groups).label
            raise VariationError(f"{said} changes nothing: its runs are those of the artifact itself")
        found.append(Variation(changes, varied))
    return found


def names(path: str) -> bool:
    """Whether a setting says what a part is, and so which others there are."""
    return path.rpartition(".")[2] in ("name", "rule", "kind")


def changed(spec: RunSpec, changes: Mapping[str, Any]) -> RunSpec:
    """The specification with those of the changes that it has a place for."""
    settings, free = thaw(spec.settings), set(changes) - set(written(spec))
    named = {path: value for path, value in changes.items() if names(path) and path not in free}
    allowed = unwritten(changed(spec, named) if named.keys() < changes.keys() else spec) if free else {}
    for path, value in changes.items():
        if path in free and path not in allowed:
            continue
        *outer, last = path.split(".")
        place = settings
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = value
    for path in {"algorithm.name", "descent.rule", "order.kind"} & changes.keys():
        from suite.training.build import left_over

        part = path.partition(".")[0]
        try:
            others = left_over(settings, part) if part in settings else set()
        except UnknownName as error:
            raise VariationError(f"no run can have {path} = {changes[path]}: {error}") from None
        for name in others:
            if f"{part}.{name}" not in changes:
                del settings[part][name]
    return RunSpec(spec.experiment, settings, spec.seed)


def checked(path: str, values: Sequence[Any], specs: Sequence[RunSpec], known: Sequence[dict[str, Any]]) -> list[Any]:
    """The values, of the kind that the setting has. Raises VariationError."""
    present = [settings[path] for settings in known if path in settings]
    if not present:
        left = list(map(unwritten, specs))
        present = [defaults[path] for defaults in left if path in defaults]
        if not present:
            raise VariationError(unknown(path, set().union(*known, *left)))
    if len(values) == 1 and isinstance(values[0], list) and not any(isinstance(old, list) for old in present):
        values = values[0]
    if not values:
        raise VariationError(f"{path} is no list, and [] holds no value for it")
    return [_like(path, value, present[0]) for value in values]


def _like(path: str, value: Any, old: Any) -> Any:
    """The value as the setting holds it: 1 as 1.0 where a fraction stands. Raises VariationError for another kind."""
    if isinstance(old, float) and type(value) is int:
        value = float(value)
    if type(old) is int and isinstance(value, float):
        raise VariationError(f"{path} is a whole number ({old}), and {_said(value)} is none: write its digits")
    if old is not None and _kind(value) != _kind(old):
        raise VariationError(f"{path} is {_kind(old)} ({_said(old)}), and {value!r} is {_kind(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise VariationError(f"{path} cannot be {value}: it must be a finite number")
    if _kind(value) == "a number" and value < 0 <= (old or 0):
        raise VariationError(f"{path} cannot be {_said(value)}: it must be 0 or more")
    return value


def _kind(value: Any) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a name", list: "a list"}
    return kinds.get(type(value), "of no kind that a setting has")


def unknown(path: str, known: Iterable[str]) -> str:
    """That there is no such setting, and which may be meant."""
    warm = path.partition(".")[0] == "warmstart"
    names = (name for name in known if warm or not name.startswith("warmstart."))
    return f"no run has a setting {path!r}; {likely(path, names)}"
