"""Short trainings by each paper's algorithm, whose numbers must not move unless somebody meant them to.

They stop early, where the loss falls smoothly and a wrong learning rate moves every seed alike.

    python -m ci.canaries                 train, compare with the baseline, exit 1 when the numbers moved
    python -m ci.canaries --accept        train and make this the baseline of this machine class

On the processor and the versions that made the baseline every run must end in the same bits, curves included. On
others it must end within what the spread over the seeds explains, either way (``suite.runs.comparison``).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suite.papers.catalogue import experiment
from suite.runner.execute import RunnerConfig, execute_all
from suite.runs.archive import Runs, export, open_runs
from suite.runs.comparison import compare_runs, lines
from suite.runs.environment import machine_class, provenance
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.speed.baselines import FOLDER as BASELINES

SEEDS = 8
FIXED = ("torch", "numpy")  # packages whose version decides the bits

_TRAINING: Mapping[str, Any] = {
    "data": {"name": "digits", "size": 8},
    "model": {"name": "digits_lenet", "input_size": 8, "kernel": 3},
    "descent": {"rule": "torch", "momentum": 0.9, "decay": 5e-4},
    "rate": 0.005,
    "batch": 16,
    "updates": 60,
    "evaluate": {"every": 30, "train_examples": 400},
    "record": {"every": 10},
    "path": "looped",  # named, so that no measurement on the spot may choose one with other bits
}
_SERVER = {
    "architecture": "base",
    "machines": 4,
    "memory": [1e-6, 5e10],
    "model_bytes": 100_000,
    "network": [1e-6, 1e9],
    "seconds": {"crowding": 0.2, "jitter": 0.05, "per_call": 0.004, "per_example": 0.001},
    "update_seconds": 0.001,
}
CANARIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "isgd": ("train", {**_TRAINING, "algorithm": {"name": "isgd", "batches": "epoch", "stop": 3, "zeta": 0.01}}),
    "inverse_law": (
        "inverse_law/sweep",
        {
            "data": {"name": "digits", "labels": "digits", "transform": "standardise-global"},
            "model": {"name": "digits_lenet"},
            "descent": {"rule": "torch", "decay": 0.0},
            "rate": 0.01,
            "batch": 16,
            "path": "looped",
            "growth": 0.01,
            "every": 1,
            "limit": 400,
            "monitors": {"training": [0.6]},
            "sample": None,
            "share": 0.2,
        },
    ),
    "rudra": (
        "rudra/train",
        {
            **_TRAINING,
            "algorithm": {"name": "rudra", "workers": 4, "n": 2, "history": 9},
            "rate": 0.005,
            "workers": 4,
            "server": _SERVER,
            "order": {"kind": "with-replacement"},
        },
    ),
    "matex_agd": (
        "train",
        {
            **_TRAINING,
            "algorithm": {"name": "matex_agd", "delay": 1},
            "batch": 8,
            "workers": 2,
            "order": {"kind": "partitioned"},
        },
    ),
    "crossbow": (
        "train",
        {
            **_TRAINING,
            "algorithm": {"name": "crossbow", "alpha": 0.25, "momentum": 0.9, "tau": 1},
            "batch": 8,
            "workers": 4,
            "order": {"kind": "shuffled", "share": "pool"},
        },
    ),
}


def specs() -> list[RunSpec]:
    """The canaries of each paper at every seed."""
    return [RunSpec(name, settings, s) for name, settings in CANARIES.values() for s in range(SEEDS)]


def train(store: Path, device: str = "cpu") -> Store:
    """Train all canaries into a store. Raises RuntimeError naming the first that failed."""
    for report in execute_all(specs(), experiment, RunnerConfig(store, device=device)):
        if report.state not in ("stored", "present"):
            raise RuntimeError(f"canary {report.spec.experiment} {report.spec.id} {report.state}: {report.why}")
    return Store(store)


def same_arithmetic(base: Runs, new: Runs) -> bool:
    """Whether two sources of runs were computed on like processors by like versions, and so in the same bits."""

    def facts(runs: Runs) -> set[str]:
        found = set()
        for run_id in runs.ids():
            made = runs.read(run_id).environment
            chosen = [made["machine"]["cpu"], made["device"], [made["versions"].get(name) for name in FIXED]]
            found.add(repr(chosen))
        return found

    return facts(base) == facts(new)


def check(base: Runs, new: Runs) -> tuple[list[str], list[str]]:
    """(what is red, what else there is to say) of canaries against their baseline, in sentences."""
    found = compare_runs(base, new, either_way=True)
    red = [f"REGRESSION {line}" for line in found["regressions"]]
    if found["only_in_base"] or found["only_in_new"]:
        red.append("the canaries are not those of the baseline: accept them anew with --accept")
    exact = same_arithmetic(base, new)
    if exact and found["differ"]:
        red.append(
            f"REGRESSION {len(found['differ'])} of {found['compared']} runs differ in their bits, with the same "
            "processor and versions: if that was meant, mark the change **numbers** in the changelog and --accept"
        )
    how = "same processor and versions, so to the bit" if exact else "within the spread over the seeds"
    said = [f"{found['compared']} canaries compared {how}; {len(found['differ'])} differ in their bits"]
    return red, [*said, *(line for line in lines(found)[1:] if red and line.startswith("~"))]


def accept(store: Store, wanted: str) -> Path:
    """Write a store's canaries as the baseline of a machine class."""
    path = BASELINES / wanted / "canaries.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    export({spec.id: store.files(spec.id) for spec in specs()}, path, provenance())
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    chosen = parser.parse_args()
    wanted = machine_class(chosen.device)
    with tempfile.TemporaryDirectory() as folder:
        store = train(Path(folder, "store"), chosen.device)
        if chosen.accept:
            print(f"baseline written to {accept(store, wanted)}")
            return 0
        own = BASELINES / wanted / "canaries.zip"
        # That of any other machine class still bounds the spread.
        path = own if own.exists() else next(iter(sorted(BASELINES.glob("*/canaries.zip"))), None)
        if path is None:
            print(f"no baseline of canaries in {BASELINES}: make one with --accept", file=sys.stderr)
            return 2
        red, said = check(open_runs(path), store)
    print("\n".join([f"baseline {path}", *said, *red]))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
