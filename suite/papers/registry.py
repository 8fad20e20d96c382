"""The papers there are: whoever registers one under the entry-point group ``sgd_suite.papers``.

An entry names a paper and the object that holds it, ``isgd = "paper_figures.isgd:PAPER"``. The top-level package of
that module is the paper's home: its folder ``published`` holds the printed values and the register, ``evidence``
exported runs; its code counts in the digest of the source. In a checkout that is not installed the same table is read
from ``pyproject.toml``. Nothing here imports a paper before it is asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from suite.runs import source
from suite.runs.environment import ROOT

if TYPE_CHECKING:
    from suite.experiment import Experiment
    from suite.papers.artifact import Paper

GROUP = "sgd_suite.papers"


class RegistryError(ValueError):
    """A registered paper that cannot be used."""


@dataclass(frozen=True)
class Registered:
    """Where a paper comes from: what imports it, and the folder of its printed values and evidence."""

    load: Callable[[], Paper]
    home: Path


def registered() -> dict[str, Registered]:
    """All papers by short name: the checkout's in its own order, then installed ones in alphabetical order."""
    places: dict[str, str] = {}
    if (project := ROOT / "pyproject.toml").is_file():
        places |= tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"].get(GROUP, {})
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        places.setdefault(entry.name, entry.value)
    return {name: _registered(place) for name, place in places.items()}


def _registered(place: str) -> Registered:
    module, _, attribute = place.partition(":")
    top = importlib.util.find_spec(module.partition(".")[0])  # finds the package without importing it
    if top is None or top.origin is None:
        raise ModuleNotFoundError(f"the paper at {place} is registered, but its package cannot be found", name=module)
    return Registered(lambda: getattr(importlib.import_module(module), attribute), Path(top.origin).parent)


try:
    PAPERS: dict[str, Registered] = registered()
except ModuleNotFoundError as error:
    raise RegistryError(f"{error}; install it anew, or uninstall what registers it") from error

for each in PAPERS.values():
    source.include(each.home.name, each.home.parent)


def papers_of(home: Path) -> list[str]:
    """The papers of a home, in their order."""
    return [name for name, each in PAPERS.items() if each.home.resolve() == home.resolve()]


def homes() -> list[Path]:
    """The folders that papers come from, each once."""
    return list(dict.fromkeys(each.home for each in PAPERS.values()))


@cache
def paper(name: str) -> Paper:
    """A paper by its short name. Raises KeyError for another, RegistryError for one that calls itself otherwise."""
    found = PAPERS[name].load()
    if found.name != name:
        raise RegistryError(
            f"the entry point {name!r} of {GROUP} leads to the paper {found.name!r}; give both the same name"
        )
    return found


def experiment(name: str) -> Experiment:
    """The experiment that executes specifications of this name. Raises KeyError for another."""
    if name == "train":
        from suite.runner.cost import TRAIN

        return TRAIN
    return paper(name.partition("/")[0]).experiments[name]
