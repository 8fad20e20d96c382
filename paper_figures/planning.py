"""What a selection at a profile would run, cost and need; imports neither torch nor numpy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from paper_figures.artifact import Artifact, Paper
from paper_figures.registry import experiment
from suite.data.catalogue import available
from suite.spec import RunSpec


@dataclass(frozen=True)
class Planned:
    """One run of a plan: estimated seconds on one core, peak bytes, data sets, artifacts that want it."""

    spec: RunSpec
    seconds: float
    memory: int
    data: tuple[str, ...]
    artifacts: tuple[str, ...]


def plan(selection: Iterable[tuple[Paper, list[Artifact]]], profile: str) -> list[Planned]:
    """All runs of the selected artifacts at a profile, each once."""
    wanted: dict[str, tuple[RunSpec, list[str]]] = {}
    for _, artifacts in selection:
        for artifact in artifacts:
            for specs in artifact.runs(profile).values():
                for spec in specs:
                    wanted.setdefault(spec.id, (spec, []))[1].append(artifact.id)
    planned = []
    for spec, users in wanted.values():
        kind = experiment(spec.experiment)
        planned.append(
            Planned(spec, kind.seconds(spec), kind.memory(spec), kind.data(spec), tuple(dict.fromkeys(users)))
        )
    return planned


def missing_data(planned: Iterable[Planned], root: Path | None) -> dict[str, str]:
    """Data sets that the plan needs and that are not there, with the reason."""
    names = {name for item in planned for name in item.data}
    return {name: why for name in sorted(names) for ok, why in [available(name, root)] if not ok}
