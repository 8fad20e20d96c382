"""What a selection at a profile would run, cost and need; imports neither torch nor numpy."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from paper_figures.artifact import Artifact, Paper
from paper_figures.evidence import UNNAMED
from paper_figures.registry import experiment
from suite.archive import open_runs
from suite.calibration import Calibration
from suite.data.catalogue import available
from suite.spec import RunSpec
from suite.store import Store


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


def present(store: Path | None) -> set[str]:
    """Ids of the runs that ``run`` would find there and not compute again; committed evidence is not among them.

    ``None`` means the store of this folder, which may be missing. Raises StoreError for a named one that is none.
    """
    if store is None and not UNNAMED.exists():
        return set()
    return open_runs(store or UNNAMED).ids()


def calibrated(planned: Iterable[Planned], calibration: Calibration | None) -> list[Planned]:
    """The plan with its seconds as this machine was measured to take them; unchanged without a calibration."""
    if calibration is None:
        return list(planned)
    return [replace(item, seconds=item.seconds * calibration.factor(item.spec)) for item in planned]


def folder_for_calibration(store: Path) -> Path:
    """The store, created where there is none. Raises ValueError for a file, StoreError where it cannot be made."""
    if store.is_file():
        raise ValueError(f"--store {store} is an exported file; a calibration is kept in a folder: name one")
    Store(store, create=True)
    return store


def calibrate(planned: Iterable[Planned], store: Path, device: str, data: Path | None, seconds: float) -> Calibration:
    """Measure this machine for about ``seconds`` on the runs of a plan, and keep the result in the store.

    Imports torch. Raises ValueError for a device that is not there.
    """
    from paper_figures.running import pick_device
    from suite import calibration

    note = partial(print, file=sys.stderr)
    made = calibration.here([item.spec for item in planned], experiment, pick_device(device), data, seconds, note)
    calibration.keep(store, made)
    return made


def missing_data(planned: Iterable[Planned], root: Path | None) -> dict[str, str]:
    """Data sets that the plan needs and that are not there, with the reason."""
    names = {name for item in planned for name in item.data}
    return {name: why for name in sorted(names) for ok, why in [available(name, root)] if not ok}
