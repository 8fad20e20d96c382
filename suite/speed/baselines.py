"""Benchmark documents, and what is kept of them as the baseline of a machine class.

A document holds, for each workload, the seconds per update of all sides in interleaved rounds: values of the same
place were measured in the same round. Of these, log(ours / rival) of each round is kept, session by session (a
session is a process): what slows the whole machine divides out.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suite.files import write_whole
from suite.runs.environment import ROOT

# One folder per machine class; a runner keeps its own outside of the checkout, which is laid anew for each job
FOLDER = Path(os.environ.get("SGD_SUITE_BASELINES") or ROOT / "ci" / "baselines")
FORMAT = 1
OURS, RIVALS = "ours", ("plain", "plain, 1 thread")
CLOCKS = {"wall": "seconds", "processor": "processor"}  # by the name in a baseline: the key of a side's samples
AGAIN = "make another with `nox -s benchmark`, a baseline with `nox -s guard -- --accept --anew`"
LARGEST = 1e9  # seconds, or log ratios: more is no measurement

Sessions = list[list[float]]  # log ratios: one list per session, one value per round


class GateError(ValueError):
    """Documents that cannot be compared."""


def read(path: Path) -> dict[str, Any]:
    """A benchmark document or a baseline, whoever wrote it. Raises GateError when the file is neither."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GateError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise GateError(f"{path} cannot be read as a benchmark document: {error}; {AGAIN}") from error
    return check(document, str(path))


def check(document: Any, name: str) -> dict[str, Any]:
    """The document itself. Raises GateError naming the first thing that is not as it must be."""
    if wrong := _defect(document):
        raise GateError(f"{name} cannot be used: {wrong}; {AGAIN}")
    return dict(document)


def _defect(document: Any) -> str:
    """What, of that which is used of a document, is not as it must be; or nothing."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return f"it is no benchmark document of format {FORMAT}"
    parts: Any = document.get("machine"), document.get("versions", {}), document.get("workloads")
    if not all(isinstance(part, dict) for part in parts):
        return "machine, versions and workloads are mappings by name"
    machine, versions, workloads = parts
    if not isinstance(machine.get("class"), str) or not re.fullmatch(r"\w[\w.-]*", machine["class"]):
        return f"the machine class {machine.get('class')!r} is no name of a folder"
    if not all(isinstance(version, str) for version in versions.values()):
        return "versions are texts by the name of a package"
    kind = _odd_sessions if "sessions" in document else _odd_sides
    for name, workload in workloads.items():
        if not isinstance(workload, dict) or (wrong := kind(workload)):
            return f"workload {name!r} {wrong if isinstance(workload, dict) else 'is no mapping'}"
    return ""


def _odd_sessions(workload: Mapping[str, Any]) -> str:
    """What is wrong with a workload of a baseline."""
    for clock, sessions in workload.items():
        if clock not in CLOCKS or not isinstance(sessions, list) or not sessions:
            return f"has no sessions by {clock!r}"
        if not all(_numbers(session, least=-LARGEST) for session in sessions):
            return "has sessions that are no lists of log ratios"
    return ""


def _odd_sides(workload: Mapping[str, Any]) -> str:
    """What is wrong with a workload of a benchmark document."""
    sides = workload.get("sides")
    if not isinstance(sides, dict) or not all(isinstance(side, dict) for side in sides.values()):
        return "has no sides"
    timed = [side[key] for side in sides.values() for key in CLOCKS.values() if side.get(key) is not None]
    if not all(_numbers(values, least=1 / LARGEST) for values in timed) or len(set(map(len, timed))) > 1:
        return "has samples that are no equally long lists of positive numbers"
    return ""


def _numbers(values: Any, least: float) -> bool:
    """Whether these are one or more numbers from ``least`` to ``LARGEST``."""
    plain = lambda value: isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= LARGEST
    return isinstance(values, list) and bool(values) and all(map(plain, values))


def log_ratios(workload: Mapping[str, Any]) -> dict[str, list[float]]:
    """log(ours / rival) of each round by clock; empty where one of the two was not available.

    The rival is always the same side, the plain loop on one thread: the fastest one may be another tomorrow.
    """
    sides = workload["sides"]
    ours, rival = sides.get(OURS), next((sides[name] for name in RIVALS if name in sides), None)
    if not ours or not rival or not ours.get("seconds") or not rival.get("seconds"):
        return {}
    clocks = dict(CLOCKS)
    if not (ours.get("threads") == rival.get("threads") == 1 and ours.get("processor") and rival.get("processor")):
        del clocks["processor"]
    return {
        clock: [math.log(a / b) for a, b in zip(ours[key], rival[key], strict=True)] for clock, key in clocks.items()
    }


def baseline(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is kept of benchmark documents, or of baselines, of one machine class: log ratios by session.

    Raises GateError for documents of different classes, or none with a workload measured on both sides.
    """
    classes = {document["machine"]["class"] for document in documents}
    if len(classes) != 1:
        raise GateError(f"a baseline is of one machine class, not of {', '.join(sorted(classes)) or 'none'}")
    rows: dict[str, dict[str, Sessions]] = {}
    for document in documents:
        for name, workload in document["workloads"].items():
            if "sessions" in document:
                found = workload
            else:
                found = {clock: [[round(v, 5) for v in values]] for clock, values in log_ratios(workload).items()}
            for clock, sessions in found.items():
                rows.setdefault(name, {}).setdefault(clock, []).extend(sessions)
    if not rows:
        raise GateError("no workload of the document was measured on both sides; nothing can be compared")
    last = documents[-1]
    return {
        "format": FORMAT,
        "machine": last["machine"],
        "versions": last.get("versions", {}),
        "sessions": max(len(sessions) for row in rows.values() for sessions in row.values()),
        "unit": "log(ours / rival) of a round",
        "workloads": dict(sorted(rows.items())),
    }


def others(known: Mapping[str, Any], measured: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A baseline without the workloads that were measured anew, to be accepted with these.

    Raises GateError where these are of other versions: ratios of two versions are no one baseline.
    """
    versions = measured[-1].get("versions", {})
    if known["versions"] != versions:
        raise GateError("the baseline was made with other versions of the libraries; accept all workloads anew")
    again = {name for document in measured for name in document["workloads"]}
    return {**known, "workloads": {name: row for name, row in known["workloads"].items() if name not in again}}


def write(path: Path, made: Mapping[str, Any]) -> None:
    """Write a baseline or a benchmark document whole or not at all, a line for each workload."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({name: value for name, value in made.items() if name != "workloads"}, indent=1)[:-2]
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in made["workloads"].items())
    write_whole(path, f'{head},\n "workloads": {{\n{rows}\n }}\n}}\n'.encode())


def place(folder: Path, machine_class: str) -> Path:
    """Where the baseline of a machine class lies, whether there is one or not."""
    return folder / machine_class / "benchmark.json"


def find_baseline(folder: Path, machine_class: str) -> Path:
    """The accepted baseline of a machine class. Raises GateError saying how to make one."""
    path = place(folder, machine_class)
    if not path.exists():
        known = sorted(p.parent.name for p in folder.glob("*/benchmark.json"))
        raise GateError(
            f"no baseline of machine class {machine_class} in {folder} (there {'are' if known else 'is'} "
            f"{', '.join(known) or 'none'}); make one on that machine with `nox -s guard -- --accept`"
        )
    return path
