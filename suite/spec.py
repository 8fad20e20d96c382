"""What a run is: its specification, its name, and every random seed it may use.

A specification holds plain values only (numbers, strings, booleans, lists, mappings). Its canonical JSON is
hashed into the run's id, so two runs with the same id are the same run on any machine.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

SCHEMA = 1  # of run folders and exports; raised whenever a reader of the old form would be misled
ID_LENGTH = 20  # hex digits of SHA-256: 80 bits, no collision among any number of runs one can store


class SpecError(ValueError):
    """A specification that cannot be run as written."""


_LEAVES = frozenset({str, int, bool, type(None)})  # types whose values JSON always holds


def check_plain(settings: Mapping[str, Any]) -> None:
    """Raise SpecError for anything that JSON cannot hold exactly (NaN, infinities, objects), saying where it is."""
    pending: list[tuple[str, Any]] = [("settings", settings)]
    seen: set[int] = set()
    for where, value in pending:  # to which the parts of each value are added
        if id(value) in seen:  # it may hold itself
            continue
        seen.add(id(value))
        parts: Iterable[tuple[Any, Any]] = ()
        named = isinstance(value, Mapping)
        if named:
            parts = value.items()
        elif isinstance(value, list | tuple):
            parts = enumerate(value)
        elif not isinstance(value, int | str) and not (isinstance(value, float) and math.isfinite(value)):
            raise SpecError(f"{where}: {value!r} is not a plain finite value; use numbers, strings, lists, dicts")
        for key, part in parts:
            if named and not isinstance(key, str):
                raise SpecError(f"{where}: keys must be strings, not {key!r}")
            # Thousands of specifications are made before anything runs, so the places of leaves are not named.
            if type(part) not in _LEAVES and not (type(part) is float and math.isfinite(part)):
                pending.append((f"{where}.{key}" if named else f"{where}[{key}]", part))


def _frozen(value: Any) -> Any:
    """What JSON reads, from the inside out, immutable: mappings become read-only, lists become tuples."""
    named = isinstance(value, dict)
    for key, part in value.items() if named else enumerate(value):
        if isinstance(part, list):
            value[key] = _frozen(part)
    return MappingProxyType(value) if named else tuple(value)


# The one JSON text of a plain value: sorted keys, no spaces, shortest round-trip floats. A read-only mapping is not a
# dict to json, which therefore asks what to make of it.
canonical: Callable[[Any], str] = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=dict
).encode


def thaw(value: Any) -> Any:
    """The value as plain dicts and lists."""
    return json.loads(canonical(value))


@dataclass(frozen=True, eq=False)
class RunSpec:
    """One run, in full. ``experiment`` names the function that executes it, ``settings`` are its read-only arguments.

    Two specifications are equal when their ids are: ``1``, ``1.0`` and ``True`` are three different settings.
    Raises SpecError for values that JSON cannot hold exactly.
    """

    experiment: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    text: str = field(init=False, repr=False)  # canonical JSON, whose hash is the id
    id: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.settings, Mapping):
            raise SpecError(f"settings must be a mapping, not {self.settings!r}")
        check_plain(self.settings)
        if not self.experiment or not isinstance(self.experiment, str):
            raise SpecError(f"experiment must be a name, not {self.experiment!r}")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise SpecError(f"seed must be a non-negative integer, not {self.seed!r}")
        try:
            text = canonical({**vars(self), "schema": SCHEMA})
        except (ValueError, RecursionError) as error:  # they hold themselves, or are nested a thousand times
            raise SpecError(f"settings cannot be written as JSON: {error}") from None
        named = hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]
        vars(self).update(text=text, id=named, settings=json.loads(text, object_hook=_frozen)["settings"])

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, RunSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __reduce__(self) -> tuple[Any, ...]:
        return RunSpec.from_json, (self.text,)

    @classmethod
    def from_json(cls, text: str) -> RunSpec:
        """The specification of a ``text``. Raises SpecError for another schema or a text of another shape."""
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SpecError(f"not a run specification: {error}") from error
        if not isinstance(raw, dict) or set(raw) != {"experiment", "schema", "seed", "settings"}:
            raise SpecError("not a run specification: it must hold experiment, schema, seed, settings and no more")
        if raw["schema"] != SCHEMA:
            raise SpecError(f"specification of schema {raw['schema']!r}; this version reads {SCHEMA}")
        return cls(raw["experiment"], raw["settings"], raw["seed"])


def seed(*coordinates: int | str) -> int:
    """A 63-bit seed that depends on the named coordinates alone, e.g. ``seed(run_seed, "batches", worker)``.

    No global stream is ever drawn from, so the order in which things happen cannot change a run.
    """
    text = json.dumps(coordinates, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def trainings(spec: RunSpec) -> list[RunSpec]:
    """The trainings that a training run is made of: its warm start, if it has one, and its own.

    A warm start has the run's settings but for those it names, and no stopping rule, drops or schedule unless it
    names them. It is evaluated at its ends.
    """
    settings = thaw(spec.settings)
    before = settings.pop("warmstart", None)
    if before is None:
        return [spec]
    own = {name: value for name, value in settings.items() if name not in ("stop", "drops", "schedule")}
    own["evaluate"] = {"every": before.get("updates", settings.get("updates"))}
    warm = RunSpec(spec.experiment, overlaid(own, before), seed(spec.seed, "warmstart"))
    return [warm, RunSpec(spec.experiment, settings, spec.seed)]


def overlaid(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with others in their place; of a part, its own stay unless the changes name its kind.

    Example:
        >>> overlaid({"algorithm": {"name": "rudra", "n": 1}, "rate": 0.1}, {"algorithm": {"n": 0}})
        {'algorithm': {'name': 'rudra', 'n': 0}, 'rate': 0.1}
    """
    found = {**settings, **changes}
    for name, value in changes.items():
        if isinstance(value, Mapping) and not {"name", "rule", "kind"} & set(value):
            found[name] = {**settings.get(name, {}), **value}
    return found
