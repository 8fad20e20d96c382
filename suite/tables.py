"""What settings name by a word: solvers, schedules, orders, data sets, networks, exchanges, algorithms.

Each such table is open. A package of one's own adds to it by a plain assignment where it is imported,

    from suite.training.build import SOLVERS
    SOLVERS["lion"] = Lion

or by an entry point, which is found without an import::

    [project.entry-points."sgd_suite.solvers"]
    lion = "my_package.lion:Lion"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from functools import cached_property
from importlib import metadata
from typing import TypeVar

Value = TypeVar("Value")


class UnknownName(ValueError, KeyError):
    """A word that a table does not know; the message says which it knows."""

    def __str__(self) -> str:
        return str(self.args[0])


class Table(MutableMapping[str, Value]):
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
        self.kind, self._values = kind, dict(built_in)
        self.group = f"sgd_suite.{group or kind.replace(' ', '') + 's'}"

    @cached_property
    def _entries(self) -> dict[str, metadata.EntryPoint]:
        return {entry.name: entry for entry in metadata.entry_points(group=self.group)}

    def __getitem__(self, name: str) -> Value:
        if name not in self._values:
            if name not in self._entries:
                raise UnknownName(f"no {self.kind} is called {name!r}; there are {', '.join(self)}")
            self._values[name] = self._entries[name].load()
        return self._values[name]

    def __setitem__(self, name: str, value: Value) -> None:
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._values, *self._entries]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    __hash__ = object.__hash__
