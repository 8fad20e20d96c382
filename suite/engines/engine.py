"""The job that an engine is asked for, and the three methods that it has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

# What a word of a command may hold, for the engine to fill in where the worker runs
INDEX = "{index}"  # the number of the worker, from 0
VARIABLE = re.compile(r"\{env:(\w+)\}")  # an environment variable, such as the node's name


class EngineError(ValueError):
    """An engine refused what it was asked to do."""


@dataclass(frozen=True)
class Job:
    """``workers`` equal workers, each of which runs ``commands`` one after another.

    ``memory`` is bytes. ``logs`` is a folder that is there. ``after`` names jobs that must have ended. ``options``
    are the user's, for this engine.
    """

    name: str
    commands: Sequence[Sequence[str]]
    logs: Path
    workers: int = 1
    cores: int = 1
    memory: int = 0
    gpus: int = 0
    after: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """What starts workers. Every method raises EngineError in a sentence that the user can act on."""

    def script(self, job: Job) -> str:
        """What ``submit`` would hand over, for ``--dry-run``; raises for options that it does not know."""
        ...

    def submit(self, job: Job) -> str:
        """Hand a job over and return the name under which the engine knows it."""
        ...

    def states(self, jobs: Sequence[str]) -> Mapping[str, int]:
        """How many workers of these jobs are in which state (``running``, ``pending``, ...), less those gone."""
        ...
