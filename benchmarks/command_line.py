"""The command line's start, and what a large store costs it; both sides alternating.

    python benchmarks/command_line.py [--rounds 7] [--runs 1000]

Prints the wall time of ``list`` over that of ``python -c "import typer, rich"`` (at most 3 is wanted), and of
``list`` and ``check`` on a store of ten times RUNS over RUNS runs (at most 15). Medians of alternating rounds.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from suite.environment import ROOT
from suite.spec import RunSpec
from suite.store import Outcome, Store, encode


def seconds(command: list[str]) -> float:
    """Wall time of a process; a check may find something red, and that is no failure here."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, *command], cwd=ROOT, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command} failed with exit code {done.returncode}")
    return time.perf_counter() - started


def ratio(ours: list[str], theirs: list[str], rounds: int) -> str:
    """Median ratio of alternating pairs with its quartiles, and the medians in seconds."""
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    low, middle, high = statistics.quantiles([a / b for a, b in pairs], n=4)
    slow, fast = (statistics.median(side) for side in zip(*pairs, strict=True))
    return f"{middle:.2f} [{low:.2f}, {high:.2f}] times ({slow:.2f} s against {fast:.2f} s, n = {rounds})"


def fill(root: Path, count: int) -> None:
    """A store of ``count`` real, verified runs."""
    store = Store(root, create=True)
    for i in range(count):
        spec = RunSpec("benchmark", {"number": i})
        store.commit(spec.id, encode(spec, {}, Outcome("finished", {"value": float(i)})))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=1000)
    chosen = parser.parse_args()
    imports = ["-c", "import typer, rich"]
    print("list over importing typer and rich:", ratio(["-m", "suite", "list"], imports, chosen.rounds))
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small"), Path(folder, "large")
        fill(small, chosen.runs)
        fill(large, 10 * chosen.runs)
        for command in ("list", "check"):
            sides = [["-m", "suite", command, "--store", str(root)] for root in (large, small)]
            print(f"{command}, {10 * chosen.runs} over {chosen.runs} runs:", ratio(*sides, chosen.rounds))


if __name__ == "__main__":
    main()
