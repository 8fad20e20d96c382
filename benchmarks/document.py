"""The document that benchmarks write: one JSON file of a machine class, completed workload by workload."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.floors import faster
from benchmarks.workloads import WORKLOADS
from suite.runs import environment
from suite.speed.baselines import FORMAT, GateError, check, read, write

DIGITS = 5  # significant, of stored seconds: timing is no better
PLACES = {workload.name: place for place, workload in enumerate(WORKLOADS)}


class Book:
    """A document on disk. Every addition is written at once, so that a benchmark cut short leaves what it has."""

    def __init__(self, path: Path, device: str):
        """Goes on with a document that exists. Raises GateError for another machine class or other versions."""
        self.path = path
        machine = {**environment.machine(), "class": environment.machine_class(device)}
        if device == "cuda":
            machine["gpu"] = environment.device_facts(device)["name"]
        self.document: dict[str, Any] = {
            "format": FORMAT,
            "machine": machine,
            "versions": environment.versions(),
            "started": load(),
            "ended": load(),
            "floors": {},
            "workloads": {},
        }
        if path.exists():
            found = read(path)
            for key in ("class", "python"):
                if found["machine"].get(key) != machine[key]:
                    raise GateError(
                        f"{path} was measured on {found['machine'].get(key)}, not on {machine[key]}; "
                        "name another --out"
                    )
            if found["versions"] != self.document["versions"]:
                raise GateError(f"{path} was measured with other versions of packages; name another --out")
            self.document = found

    def add_floor(self, key: str, floor: dict[str, Any]) -> None:
        """Note a device's speed; of two measurements the higher is kept."""
        known = self.document["floors"].get(key)
        self.document["floors"][key] = faster(known, floor) if known else floor
        self.write()

    def add(self, name: str, workload: Mapping[str, Any]) -> None:
        """Add a workload, or replace it."""
        self.document["workloads"][name] = dict(workload)
        self.document["ended"] = load()
        check(self.document, name)
        self.write()

    def write(self) -> None:
        """Write the whole document, its workloads in their order, whenever each was measured."""
        known = self.document["workloads"].items()
        workloads = dict(sorted(known, key=lambda row: PLACES.get(row[0], len(PLACES))))
        write(self.path, {**self.document, "workloads": workloads})


def load() -> dict[str, float]:
    """How busy the machine is."""
    return {"load_average": round(os.getloadavg()[0], 2)}


def entry(family: str, sides: Mapping[str, Mapping[str, Any]], **facts: Any) -> dict[str, Any]:
    """A workload of the document; ``facts`` replace what is not known of it."""
    return {
        "family": family,
        "unit": "seconds per update",
        "examples": 0,
        "flops": 0.0,
        "bytes": 0.0,
        "telemetry": {},
        **facts,
        "sides": {name: rounded(side) for name, side in sides.items()},
    }


def rounded(side: Mapping[str, Any]) -> dict[str, Any]:
    """A side with its samples at the digits that mean something."""
    samples = {key: side[key] for key in ("seconds", "processor") if side.get(key)}
    return {**side, **{key: [float(f"{v:.{DIGITS}g}") for v in values] for key, values in samples.items()}}
