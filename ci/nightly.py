"""One training per paper on real data, with a seed of the night: does it still take as many updates to its target?

    python -m ci.nightly --data DIR --store D               tonight's seed; exit 1 for one outside of its spread
    python -m ci.nightly --data DIR --store D --accept 10   so many seeds become what later nights are compared with

A training that fails ends the job with 2.

Canaries compare bits, within one version of torch and one kind of machine. This compares what a user sees, across
versions and machines: updates to 4% test error on MNIST by each paper's algorithm. A night's count is outside of the
spread where it leaves the prediction interval of one further observation, of normal log counts, at 99.9%: one false
alarm in 200 nights for five trainings. Tests stand EVERY updates apart, so a spread is taken to be at least what that
grid alone makes of equal trainings. A training that misses its target within LIMIT updates is outside.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ci.gpu import lacks_cuda
from paper_figures.rudra.settings import cifar_server
from suite.claims.intervals import quantile
from suite.data.catalogue import available
from suite.models.settings import caffe
from suite.papers.catalogue import experiment
from suite.runner.execute import RunnerConfig, execute
from suite.runs.environment import machine_class, revision, versions
from suite.runs.store import Store
from suite.spec import RunSpec
from suite.training.numerics import pick_device

KNOWN = Path(__file__).with_name("nightly.json")
TARGET, LIMIT, EVERY = 0.04, 4000, 50  # test error, updates at most, updates between tests
CONFIDENCE = 0.999
FIRST_NIGHT_SEED = 1_000_000  # far from the seeds of every other run
LENET = caffe("caffe_lenet", 0.0005, 0.01, data={"name": "mnist", "transform": "scale"})


def trainings(seed: int) -> dict[str, RunSpec]:
    """Paper -> a training of Caffe's LeNet by its algorithm."""
    return {
        "isgd": _training(
            seed,
            {"name": "isgd", "batches": "epoch", "margin": 3.0, "stop": 5, "zeta": 0.01},
            batch=64,
            order={"kind": "fixed-cycle"},
        ),
        "inverse_law": _training(seed, {"name": "sgd"}, batch=16, order={"kind": "shuffled"}),
        "rudra": _training(
            seed,
            {"name": "rudra", "n": 1, "workers": 4, "history": 8},
            batch=16,
            workers=4,
            order={"kind": "with-replacement"},
            server=cifar_server(4),
            experiment="rudra/train",
        ),
        "matex_agd": _training(
            seed, {"name": "matex_agd", "delay": 1}, batch=16, workers=4, order={"kind": "partitioned"}
        ),
        "crossbow": _training(
            seed,
            {"name": "crossbow", "alpha": 0.25, "momentum": 0.9, "tau": 1},
            batch=16,
            workers=4,
            order={"kind": "shuffled", "share": "pool"},
        ),
    }


def _training(seed: int, algorithm: dict[str, Any], experiment: str = "train", **more: Any) -> RunSpec:
    stop = {"metric": "test_error", "below": TARGET}
    length = {"updates": LIMIT, "evaluate": {"every": EVERY}, "stop": stop}
    return RunSpec(experiment, {**LENET, "algorithm": algorithm, **length, **more}, seed)


def updates(spec: RunSpec, store: Path, data: Path | None, device: str) -> int | None:
    """Updates to the target, None where it was missed. Raises RuntimeError for a run that failed."""
    here, why = available(spec.settings["data"]["name"], data)  # before the execution is measured
    if not here:
        raise RuntimeError(f"the training failed: {why}")
    report = execute(spec, experiment, RunnerConfig(store=store, data=data, device=pick_device(device)))
    if report.state == "failed":
        raise RuntimeError(f"the training failed: {report.why}")
    run = Store(store).read(spec.id)
    return int(run.results["update"]) if run.status == "finished" else None


def bounds(counts: Sequence[int]) -> tuple[float, float]:
    """Between which updates a further training lies, with CONFIDENCE. Raises ValueError for fewer than three."""
    if len(counts) < 3:
        raise ValueError(f"{len(counts)} seeds have no spread; accept at least 3")
    logs = [math.log(count) for count in counts]
    grid = EVERY / fmean(counts) / math.sqrt(12)  # standard deviation of a place within one step, as a share
    reach = quantile(len(counts) - 1, 1 - CONFIDENCE) * max(stdev(logs), grid)
    reach *= math.sqrt(1 + 1 / len(counts))
    return math.exp(fmean(logs) - reach), math.exp(fmean(logs) + reach)


def outside(found: int | None, counts: Sequence[int]) -> bool:
    low, high = bounds(counts)
    return found is None or not low <= found <= high


def night(seed: int, known: dict[str, list[int]], store: Path, data: Path | None, device: str) -> Iterator[str]:
    """A line for each training; those outside their spread begin with OUTSIDE."""
    for name, spec in trainings(seed).items():
        found = updates(spec, store, data, device)
        low, high = bounds(known[name])
        said = f"{'missed' if found is None else found} updates to {TARGET:.0%}, seeds known {low:.0f} to {high:.0f}"
        yield f"{'OUTSIDE' if outside(found, known[name]) else 'inside '} {name:<12} {said}"


def accept(count: int, store: Path, data: Path | None, device: str, path: Path) -> None:
    """Write the counts of seeds 0 .. count - 1. Raises RuntimeError where one misses the target."""
    known: dict[str, list[int]] = {}
    for seed in range(count):
        for name, spec in trainings(seed).items():
            found = updates(spec, store, data, device)
            if found is None:
                raise RuntimeError(f"{name}, seed {seed}: {TARGET:.0%} was not reached in {LIMIT} updates")
            known.setdefault(name, []).append(found)
            print(f"{name}, seed {seed}: {found}", flush=True)
    made = {"class": machine_class(), "versions": versions(), **revision()}
    path.write_text(json.dumps({"target": TARGET, "updates": known, "made": made}, indent=1) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of data sets; default $SGD_SUITE_DATA")
    parser.add_argument("--store", type=Path, default=Path("runs.store"))
    parser.add_argument("--device", choices=("cpu", "cuda", "auto"), default="auto")
    parser.add_argument("--seed", type=int, help="default: the number of the night")
    parser.add_argument("--accept", type=int, metavar="SEEDS")
    chosen = parser.parse_args(arguments)
    if lacks_cuda(chosen.device, "ci.nightly"):
        return 2
    Store(chosen.store, create=True)
    if chosen.accept:
        accept(chosen.accept, chosen.store, chosen.data, chosen.device, KNOWN)
        return 0
    seed = FIRST_NIGHT_SEED + int(time.time() // 86_400) if chosen.seed is None else chosen.seed
    known = json.loads(KNOWN.read_text())["updates"]
    red = False
    try:
        for line in night(seed, known, chosen.store, chosen.data, chosen.device):
            print(line, flush=True)
            red |= line.startswith("OUTSIDE")
    except RuntimeError as error:
        print(f"ci.nightly: {error}", file=sys.stderr)
        return 2
    return int(red)


if __name__ == "__main__":
    sys.exit(main())
