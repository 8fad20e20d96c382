"""The guard as one job: canaries, then the benchmark and its gate, with more sessions while the gate cannot tell.

    python -m ci.guard [--only REGEX] [--out DIR]
    python -m ci.guard --first                       make the baselines where this machine class has none
    python -m ci.guard --accept                      make the baselines of this machine class; with --only, those
                                                     of some workloads, beside what there is of the others
    python -m ci.guard --accept --anew               the same, and what has become slower since is wanted

The fastest baseline of each workload is kept beside the last: a slowdown that crept in by steps, each of them
accepted, is a regression too.

Each session is a process of its own, so that what differs between processes is seen. Exit 0 when all is well, 1 for
a regression, 2 without a baseline or the device asked for, 3 when ``MOST`` sessions were not enough to tell.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from ci.canaries import BASELINES
from ci.gpu import NO_TESTS, lacks_cuda
from suite.runs.environment import ROOT, machine_class
from suite.speed import baselines
from suite.speed import gate as regression

MOST, SESSIONS = 4, 10  # sessions of a judgement at most, and of a new baseline


def measure(path: Path, only: str, *, whole: bool = False) -> Path:
    """One session: a benchmark document of a process of its own.

    Raises GateError where no workload is meant, none was written, or it must be ``whole`` and a workload failed.
    """
    command = [sys.executable, "-m", "pytest", "benchmarks/test_updates.py::test_update", "-q"]
    command += ["--rivals", "plain", "--seconds", "6", "--only", only, "--out", str(path)]
    done = subprocess.run(command, cwd=ROOT)
    if done.returncode == NO_TESTS:
        raise baselines.GateError(f"no workload's name has {only!r}")
    if not path.exists():
        raise baselines.GateError(f"the benchmark wrote no {path.name} (exit code {done.returncode})")
    if whole and done.returncode:
        raise baselines.GateError(f"a workload failed (exit code {done.returncode}): no baseline is made without it")
    return path


def gate(out: Path, only: str) -> int:
    """Measure and judge ``only``; again once on an alarm, and while the gate cannot tell, what that concerns."""
    paths: list[Path] = []
    again = only
    while True:
        paths.append(measure(out / f"benchmark-{len(paths) + 1}.json", again))
        found = regression.judged(baselines.baseline(list(map(baselines.read, paths))), BASELINES, only)
        print("\n".join(regression.lines(found)), flush=True)
        (out / "gate.json").write_text(json.dumps(found, indent=1) + "\n")
        code = regression.exit_code(found)
        if code == 1 and len(paths) == 1:  # an alarm must stand in a session of its own kind
            slower = [row["workload"] for row in found["rows"] if row["slower"]]
            again = "|".join(map(re.escape, slower)) or only
            continue
        if code != 3 or found["missing"] or len(paths) == MOST:
            return code
        again = "|".join(map(re.escape, found["undecided"]))


def accept(paths: Sequence[Path], only: str, anew: bool = False) -> Path:
    """Make the documents the baseline of this machine class; with ``only``, beside what it has of other workloads.

    ``anew`` takes their level as wanted.
    """
    measured = [baselines.read(path) for path in paths]
    before = baselines.place(BASELINES, measured[0]["machine"]["class"])
    kept = [baselines.others(baselines.read(before), measured)] if only and before.exists() else []
    return regression.accept([*kept, *measured], BASELINES, anew=anew)


def nothing_to_compare(kind: str) -> tuple[str, str]:
    """Title and text of a warning: why a machine class without a baseline makes its first one now."""
    card, driver, new = kind.partition("-driver-")
    others = BASELINES.glob(f"{card}{driver}*") if driver else ()
    before = sorted(place.name.removeprefix(card + driver) for place in others)
    if before:
        return "new driver", (
            f"{card} has driver {new}, and its baselines are of {', '.join(before)}: this session makes one for the "
            "new driver and compares nothing. What the driver itself made slower is in no comparison"
        )
    return "no baseline", (
        f"{kind} had none: this session makes it and compares nothing. On a machine that keeps no files between jobs "
        "every session is such a first one; give it a folder that stays"
    )


def main(arguments: Collection[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("report") / "guard")
    parser.add_argument("--only", default="", help="workloads whose name this regular expression finds")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where the canaries are trained")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--anew", action="store_true", help="with --accept: this level is wanted")
    parser.add_argument("--first", action="store_true", help="accept if this machine class has no baseline yet")
    chosen = parser.parse_args(arguments)
    if chosen.anew and (chosen.only or not chosen.accept):
        parser.error("--anew goes with --accept of all workloads")
    if lacks_cuda(chosen.device, "ci.guard"):
        return 2
    kind = machine_class(chosen.device)
    out = chosen.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if chosen.first and not baselines.place(BASELINES, kind).exists():
        chosen.accept = True
        title, told = nothing_to_compare(kind)
        print(f"::warning title={title}::{told}", flush=True)
        (out / "gate.json").write_text(json.dumps({"rows": [], "regressions": [], "first": told}) + "\n")
    for old in out.glob("benchmark-*.json"):  # of another state of the code
        old.unlink()
    canaries = [sys.executable, "-m", "ci.canaries", "--device", chosen.device]
    numbers = subprocess.run([*canaries, *(["--accept"] if chosen.accept else [])], cwd=ROOT).returncode
    try:
        if chosen.accept:
            names = [f"benchmark-{i + 1}.json" for i in range(SESSIONS)]
            paths = [measure(out / name, chosen.only, whole=True) for name in names]
            print(f"baseline written to {accept(paths, chosen.only, chosen.anew)}")
            return numbers
        speed = gate(out, chosen.only)
    except baselines.GateError as error:
        print(f"guard: {error}", file=sys.stderr)
        speed = 2
    return 1 if 1 in (numbers, speed) else max(numbers, speed)


if __name__ == "__main__":
    sys.exit(main())
