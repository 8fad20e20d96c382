"""Proof, on the machine at hand, that the guard does not cry wolf and that it bites.

    python -m ci.prove [--repeats 20] [--sessions 10] [--json FILE]

Speed: one baseline of ``--sessions`` processes; ``--repeats`` further processes of the same code must not alarm the
gate; a real slowdown of 20% must, each time. Numbers: canaries trained again must agree to the bit; trained with
sums in another order, within the spread; and with a wrong learning rate planted they must be red. The smallest
wrong factor that is caught is looked for twice: where bits can be compared, and where only the spread can.

Takes some minutes of one core. Exit 0 when everything held.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ci import canaries
from ci.planted import other_rounding, wrong_rate
from suite.runs.archive import Runs
from suite.runs.environment import ROOT, machine_class
from suite.runs.store import Run, Store
from suite.speed import baselines
from suite.speed import gate as regression

SLOWDOWN = 0.2
BITES = 3  # documents with the slowdown planted
FACTORS = (2.0, 1.2, 1.1, 1.05, 1.02)
WHISPER = 1 + 1e-6  # a wrong rate that only bits can show


def session(folder: Path, name: str, extra: float = 0.0) -> dict[str, Any]:
    """A document measured by a process of its own."""
    path = folder / f"{name}.json"
    command = [sys.executable, "-m", "ci.small_benchmark", "--json", str(path), "--extra", str(extra)]
    subprocess.run(command, cwd=ROOT, check=True)
    return baselines.read(path)


def prove_speed(folder: Path, sessions: int, repeats: int) -> dict[str, Any]:
    """How often the gate alarmed on unchanged code, and how often on code that is really 20% slower."""
    base = baselines.baseline([session(folder, f"base-{i}") for i in range(sessions)])
    say = lambda name, found: print(f"{name}: " + "; ".join(list(regression.lines(found))[1:]), flush=True)
    alarms, found_by_power = 0, []
    for i in range(repeats):
        found = regression.compare(base, baselines.baseline([session(folder, f"unchanged-{i}")]))
        alarms += bool(found["regressions"])
        found_by_power += [row["detectable"] for row in found["rows"]]
        say(f"unchanged {i + 1}/{repeats}", found)
    bites = 0
    for i in range(BITES):
        found = regression.compare(base, baselines.baseline([session(folder, f"slower-{i}", SLOWDOWN)]))
        bites += bool(found["regressions"])
        say(f"{SLOWDOWN:.0%} slower {i + 1}/{BITES}", found)
    seen = [value for value in found_by_power if value is not None]
    return {
        "sessions": sessions,
        "repeats": repeats,
        "false_alarms": alarms,
        "slowdown": SLOWDOWN,
        "planted": BITES,
        "caught": bites,
        "finds": [min(seen), max(seen)] if seen else None,
        "held": alarms == 0 and bites == BITES,
    }


class Mixed(Runs):
    """The runs of ``base``, those of some experiments' specifications replaced by ``planted``'s."""

    def __init__(self, base: Runs, planted: Runs, replaced: set[str]):
        self.base, self.planted, self.replaced = base, planted, replaced

    def ids(self) -> set[str]:
        return self.base.ids()

    def read(self, run_id: str) -> Run:
        return (self.planted if run_id in self.replaced else self.base).read(run_id)


def trained(folder: Path, name: str, how: AbstractContextManager[None]) -> Store:
    with how:
        return canaries.train(folder / f"{name}.store")


def red(base: Runs, new: Runs, *, bits: bool) -> bool:
    """Whether the canaries' check is red; without ``bits``, as if the processor were another."""
    if bits:
        return bool(canaries.check(base, new)[0])
    with patch.object(canaries, "same_arithmetic", lambda base, new: False):
        return bool(canaries.check(base, new)[0])


def caught(base: Runs, planted: dict[float, Runs]) -> Iterator[tuple[str, float | None]]:
    """For a fault in one paper's algorithm, and in all: the smallest factor caught along with all larger ones."""
    members = {paper: {spec.id for spec in specs} for paper, specs in canaries.by_paper().items()}
    members["all five"] = set().union(*members.values())
    for paper, ids in members.items():
        smallest = None
        for factor, runs in planted.items():
            if not red(base, Mixed(base, runs, ids), bits=False):
                break
            smallest = factor
        yield paper, smallest


def prove_numbers(folder: Path) -> dict[str, Any]:
    """What the canaries say to unchanged code, to other rounding, and to wrong learning rates."""
    base = trained(folder, "base", nullcontext())
    again = trained(folder, "again", nullcontext())
    rounded = trained(folder, "rounded", other_rounding())
    whisper = trained(folder, "whisper", wrong_rate(WHISPER))
    planted: dict[float, Runs] = {f: trained(folder, f"rate-{f}", wrong_rate(f)) for f in FACTORS}
    smallest = dict(caught(base, planted))
    found = {
        "unchanged_red": red(base, again, bits=True),
        "other_rounding_red": red(base, rounded, bits=False),
        "other_rounding_differs": red(base, rounded, bits=True),
        "smallest_factor_by_bits": WHISPER if red(base, whisper, bits=True) else None,
        "smallest_factor_by_spread": smallest,
    }
    found["held"] = (
        not found["unchanged_red"]
        and not found["other_rounding_red"]
        and found["smallest_factor_by_bits"] is not None
        and None not in smallest.values()
    )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        numbers = prove_numbers(Path(folder))
        print(f"numbers: {json.dumps(numbers)}", flush=True)
        speed = prove_speed(Path(folder), chosen.sessions, chosen.repeats)
    print(
        f"unchanged code: {speed['false_alarms']} false alarms in {speed['repeats']} repeats\n"
        f"{speed['slowdown']:.0%} slower: {speed['caught']} of {speed['planted']} caught\n"
        f"wrong learning rate: caught from x{numbers['smallest_factor_by_bits']} by bits; by the spread over seeds "
        + ", ".join(f"{paper} x{factor}" for paper, factor in numbers["smallest_factor_by_spread"].items())
    )
    if chosen.json:
        document = {"machine_class": machine_class(), "speed": speed, "numbers": numbers}
        chosen.json.write_text(json.dumps(document, indent=1) + "\n")
    held = speed["held"] and numbers["held"]
    print("proved" if held else "NOT PROVED")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
