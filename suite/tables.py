"""What settings name by a word: solvers, schedules, orders, data sets, networks, exchanges, algorithms.

Each such table is open. A package of one's own adds to it by a plain assignment where it is imported,

    from suite.training.build import SOLVERS
    SOLVERS["lion"] = Lion

or by an entry point, which is found without an import::

    [project.entry-points."sgd_suite.solvers"]
    lion = "my_package.lion:Lion"
"""

from __future__ import annotations

import difflib
import inspect
from collections import UserDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from importlib import metadata
from typing import Any, TypeVar

Value = TypeVar("Value")
NEAR, CLOSE = 3, 0.75  # names that are said where one is not known, and how alike they must be
# Kinds that a parameter may be of, by the word of its annotation: types of its values, and their name in messages.
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "bool": ((bool,), "true or false"),
    "int": ((int,), "a whole number"),
    "float": ((float, int), "a number"),
    "str": ((str,), "a name"),
    "None": ((type(None),), "none"),
}


def likely(name: str, known: Iterable[str]) -> str:
    """The names that may be meant by one that is not known, by how alike their last parts are; or all.

    Example:
        >>> likely("algorithm.alhpa", ["algorithm.alpha", "rate"])
        'did you mean algorithm.alpha?'
    """
    names, last = sorted(known), name.rpartition(".")[2]
    alike = difflib.get_close_matches(last, {each.rpartition(".")[2] for each in names}, NEAR, CLOSE)  # closest first
    meant = [each for part in alike for each in names if each.rpartition(".")[2] == part][:NEAR]
    return f"did you mean {' or '.join(meant)}?" if meant else f"there are {', '.join(names) or 'none'}"


def check_options(
    what: str, function: Callable[..., Any], given: int, options: Mapping[str, Any], hidden: Collection[str] = ()
) -> None:
    """Raise ValueError for options that a function does not take, or lacks, beside ``given`` arguments before them.

    A value must be of the kind that the parameter's annotation names, or else of its default's. Options that are
    ``hidden`` cannot be given.

    Example:
        >>> check_options("shape", lambda turn, corners=4: corners, 1, {"cornrs": 3})
        Traceback (most recent call last):
        ValueError: shape: got an unexpected keyword argument 'cornrs'; options are corners
    """
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name not in hidden]
    try:
        inspect.Signature(parameters).bind(*range(given), **options)
    except TypeError as error:
        names = ", ".join(each.name for each in parameters[given:]) or "none"
        raise ValueError(f"{what}: {error}; options are {names}") from None
    for each in parameters:
        words = inspect.formatannotation(each.annotation).strip("'").split(" | ")
        if not KINDS.keys() >= set(words):
            word = type(each.default).__name__
            words = [{"int": "float"}.get(word, word)] if word in KINDS else []  # 1 may stand for 1.0
        value, kinds = options.get(each.name, each.default), [KINDS[word] for word in words]
        fits = not kinds or type(value) is type(each.default) or any(type(value) in types for types, _ in kinds)
        if not fits:
            raise ValueError(f"{what}: {each.name}={value!r} must be {' or '.join(name for _, name in kinds)}")


class UnknownName(ValueError, KeyError):
    """A word that a table does not know; the message says which it knows."""

    def __str__(self) -> str:
        return str(self.args[0])


class Table(UserDict[str, Value]):
    """Values by name: those built in, those that were assigned, and those of the entry points of its group.

    Args:
        kind: One of them in words, such as "data set".
        built_in: Those that the suite comes with.
        group: The last word of the group of entry points; by default ``kind`` without spaces, and an s.

    Raises:
        UnknownName: A name that is none of these is looked up.

    Example:
        >>> shapes = Table("shape", {"square": 4})
        >>> shapes["triangle"] = 3
        >>> sorted(shapes)
        ['square', 'triangle']
    """

    def __init__(self, kind: str, built_in: Mapping[str, Value], group: str = ""):
        super().__init__(built_in)
        self.kind = kind
        self.group = f"sgd_suite.{group or kind.replace(' ', '') + 's'}"

    @cached_property
    def _entries(self) -> dict[str, metadata.EntryPoint]:
        return {entry.name: entry for entry in metadata.entry_points(group=self.group)}

    def __getitem__(self, name: str) -> Value:
        if name not in self.data:
            if name not in self._entries:
                raise UnknownName(f"no {self.kind} is called {name!r}; there are {', '.join(self)}")
            self.data[name] = self._entries[name].load()
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.data, *self._entries]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    __hash__ = object.__hash__
