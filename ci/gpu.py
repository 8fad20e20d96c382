"""Everything a GPU is borrowed for, in one go and within a budget: tests, benchmarks, canaries, claims, one folder.

    python -m ci.gpu --budget 840 --data DIR [--out gpu-results] [--store runs.store] [--stages tests,runs,...]
                     [--profile reduced] [--only 'isgd/fig1*,rudra/table3'] [--workers 1] [--after gpu-results]
    python -m ci.gpu --claims --budget 1800 --data DIR

Runs from the source tree; nothing need be installed but torch, numpy, pandas, pyarrow, scipy, scikit-learn, pillow,
psutil, safetensors, simpy, typer, rich and pytest (``datasets`` is read around; ``nvidia-ml-py`` and others are used
where they are there). Each stage is ended when its share of the budget is spent; what it has
written by then is kept, and what it leaves over is the next stages'. Runs come last, most valuable first
(``suite.commands.planning``), and go on where the last call stopped. OUT then holds ``summary.json``, a log per
stage, the benchmark document, ``runs.zip`` and, with the checkpoints of runs under way, ``unfinished.zip``;
``--after`` takes both from an earlier OUT, so that the next card goes on.

``--claims`` spends the budget on claims alone, at the papers' sizes. It times pieces of the runs on this card, prints
what the budget should decide, computes the first seed of everything and then the other seeds, as many runs side by
side as the card's memory holds, eight at most (sharing it by NVIDIA's MPS where that can be started), and prints what
became of the promise.

Exit 0 when every stage succeeded or only ran out of time, 1 otherwise, 2 without CUDA. A test that failed before the
time was up is a failure too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from suite.clock import counted
from suite.commands import planning
from suite.lazy import torch
from suite.papers.catalogue import committed_ids, select
from suite.runs.archive import pack, take
from suite.runs.environment import ROOT, provenance
from suite.runs.store import Store

PYTHON = (sys.executable, "-m")
EXPORT_SECONDS = 20.0  # kept back to write the runs into one file
GRACE = 15.0  # seconds beyond its budget for a stage that stops by itself
MARK, SLOW = "pytest.mark." + "gpu", "pytest.mark." + "slow"
NO_TESTS = 5  # pytest's exit code
SHOWN, RED = ("-v", "-ra"), r"::.* (FAILED|ERROR) +\["  # pytest's options, and its line of a test that failed
# Runs side by side on one card. On an H100 twelve did 13% more in all than seven; each ended later, some too late.
MOST = 8


@dataclass(frozen=True)
class Stage:
    """A command, its share of the time beside the stages after it, and the exit codes that are no failure."""

    name: str
    share: float
    command: Callable[[float], Sequence[str]]  # seconds it has -> arguments
    fine: tuple[int, ...] = (0,)
    red: str = ""  # a regular expression: in the log of a stage whose time was up, it tells that the stage had failed


@dataclass
class Ended:
    """What became of a stage; ``code`` is None when its time was up."""

    name: str
    seconds: float
    budget: float
    code: int | None
    failed: bool


def stages(chosen: argparse.Namespace, workers: int) -> list[Stage]:
    """The stages in order; ``export`` is apart, since it must always run."""
    device, document = chosen.device, chosen.out / "benchmark.json"
    common = [*listed(chosen.only), "--profile", chosen.profile, "--device", device, "--store", str(chosen.store)]
    common += ["--data", str(chosen.data)] if chosen.data else []

    def run(*more: str) -> Callable[[float], Sequence[str]]:
        spent = lambda s: ("--budget", f"{max(s - GRACE, 1):.0f}")
        return lambda s: [*PYTHON, "suite", "run", *common, "--workers", str(workers), *spent(s), *more]

    canaries = Stage("canaries", 0.05, lambda s: [*PYTHON, "ci.canaries", "--device", device], (0, 2))
    if chosen.claims:
        return [canaries, Stage("first", 0.65, run("--seeds", "1")), Stage("runs", 0.30, run())]
    # the libraries of a borrowed machine are not those pinned: what they warn of is no failure
    tests = [*gpu_tests(), "-m", "gpu", "--slow", "--require", "gpu", "-W", "default"]
    timings = ["benchmarks", "--out", str(document)]
    return [
        Stage("tests", 0.25, lambda s: [*PYTHON, "pytest", *tests, *SHOWN], (0, NO_TESTS), RED),
        canaries,
        Stage("benchmark", 0.30, lambda s: [*PYTHON, "pytest", *timings, *SHOWN], red=RED),
        Stage("gate", 0.05, lambda s: [*PYTHON, "suite", "gate", str(document)], (0, 2, 3)),
        Stage("runs", 0.35, run()),
    ]


def side_by_side(device: str, peak: int) -> int:
    """How many runs of at most ``peak`` bytes fit on the card, or in memory, with a core for each."""
    free = torch.cuda.mem_get_info()[0] if device == "cuda" else psutil.virtual_memory().available
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, int(0.9 * free / max(peak, 1)), MOST if device == "cuda" else cores))


@contextlib.contextmanager
def shared_card(device: str, workers: int) -> Iterator[None]:
    """Have several processes share a card by NVIDIA's MPS, whose daemon ends with the block.

    Without it, or where it cannot be started, their kernels take turns.
    """
    program = shutil.which("nvidia-cuda-mps-control")
    if device != "cuda" or workers < 2 or program is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="mps") as folder:  # the path of a socket must be short
        variables = dict.fromkeys(("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"), folder)
        if subprocess.run([program, "-d"], env=os.environ | variables, check=False).returncode:
            print("MPS cannot be started here: processes take turns on the card", file=sys.stderr)
            yield
            return
        os.environ.update(variables)
        try:
            yield
        finally:
            subprocess.run([program], input="quit\n", text=True, check=False, timeout=60)
            for name in variables:
                del os.environ[name]


def promise(chosen: argparse.Namespace) -> tuple[list[planning.Stage], int]:
    """What first seeds decide within the budget (suite.commands.planning.Stage), with so many runs side by side.

    Times pieces of the runs here, in a fortieth of the budget.
    """
    store, data, device, profile = chosen.store, chosen.data, chosen.device, chosen.profile
    selection = select(listed(chosen.only))
    planned = planning.plan(selection, profile, 1)
    lacking = planning.missing_data(planned, data)
    planned = [p for p in planned if not lacking.keys() & set(p.data)]
    there = Store(store, create=True).ids()
    todo = [p for p in planned if p.spec.id not in there]
    if todo:
        planned = planning.calibrated(planned, planning.calibrate(todo, store, device, data, chosen.budget / 40))
    workers = chosen.workers or side_by_side(device, max((p.memory for p in todo), default=1))
    made = planning.ranked(selection, planned, profile, device, there | committed_ids())
    return planning.within([stage for stage in made if stage.claims], chosen.budget, workers)[0], workers


def kept(promised: Sequence[planning.Stage], store: Path) -> str:
    """What is stored now of what was promised."""
    there = Store(store, create=True).ids()
    done = [stage for stage in promised if all(run.spec.id in there for run in stage.runs)]
    count = sum(len(stage.claims) for stage in done)
    return f"promised {len(promised)} artifacts; the runs of {len(done)} are stored, for {count} claims"


def gpu_tests() -> list[str]:
    """The test files with tests that need CUDA, those with slow ones last, which may be what time runs out for.

    Collecting the others would import what need not be there.
    """
    texts = {path: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    return [str(path) for path in sorted(texts, key=lambda path: (SLOW in texts[path], path)) if MARK in texts[path]]


def perform(stage: Stage, seconds: float, log: Path, data: Path | None) -> Ended:
    """Run a stage in a process group of its own, with its output in ``log``; end the whole group when time is up."""
    began = time.monotonic()
    variables = os.environ | ({"SGD_SUITE_DATA": str(data)} if data else {}) | {"OMP_NUM_THREADS": "1"}
    with log.open("w") as stream:
        process = subprocess.Popen(
            stage.command(seconds),
            cwd=ROOT,
            env=variables,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
            end(process)
        except BaseException:  # interrupted: no stage outlives this job
            end(process)
            raise
    if code is None:
        failed = bool(stage.red and re.search(stage.red, log.read_text(errors="replace")))
    else:
        failed = code not in stage.fine
    return Ended(stage.name, time.monotonic() - began, seconds, code, failed)


def end(process: subprocess.Popen) -> None:
    """Interrupt a process group, and kill what has not left after a while; stores survive that at any instant."""
    for sent in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
            process.wait(GRACE / 3)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def go(planned: Sequence[Stage], budget: float, out: Path, data: Path | None) -> list[Ended]:
    """All stages within ``budget`` seconds, and ``summary.json`` after each of them."""
    began, ended = time.monotonic(), []
    for place, stage in enumerate(planned):
        left = budget - EXPORT_SECONDS - (time.monotonic() - began)
        seconds = left * stage.share / sum(later.share for later in planned[place:])
        if seconds < 1:
            ended.append(Ended(stage.name, 0.0, 0.0, None, False))
        else:
            ended.append(perform(stage, seconds, out / f"{stage.name}.log", data))
        document = {**provenance(), "stages": [asdict(each) for each in ended]}
        (out / "summary.json").write_text(json.dumps(document, indent=1) + "\n")
        last = ended[-1]
        how = "out of time" if last.code is None else f"exit code {last.code}"
        print(f"{stage.name}: {how} after {last.seconds:.0f} of {last.budget:.0f} s", flush=True)
    return ended


def lacks_cuda(device: str, program: str) -> bool:
    """Whether ``device`` is cuda and torch finds none here, which is then said on stderr."""
    lacking = device == "cuda" and not torch.cuda.is_available()
    if lacking:
        print(
            f"{program}: torch finds no usable CUDA device here; take a machine with a driver, or --device cpu",
            file=sys.stderr,
        )
    return lacking


def take_home(store: Path, out: Path, profile: str) -> None:
    """Write finished runs and those under way into a file each."""
    if any((store / "runs").iterdir()):
        export = ["suite", "export", "--store", str(store), "--profile", profile, "--out", str(out / "runs.zip")]
        subprocess.run([*PYTHON, *export], cwd=ROOT, check=True)
    if begun := pack(store, out / "unfinished.zip"):
        print(f"{counted(len(begun), 'run')} under way; --after {out} goes on with them", flush=True)


def go_on(before: Path, store: Path) -> None:
    """Take what ``take_home`` wrote into a store."""
    if (runs := before / "runs.zip").exists():
        subprocess.run([*PYTHON, "suite", "merge", str(runs), "--store", str(store)], cwd=ROOT, check=True)
    if (unfinished := before / "unfinished.zip").exists():
        take(unfinished, store)


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=840.0, help="seconds for everything")
    parser.add_argument("--data", type=Path, help="folder of data sets as the Hub or torchvision lays them out")
    parser.add_argument("--out", type=Path, default=Path("gpu-results"))
    parser.add_argument("--store", type=Path, default=Path("runs.store"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--claims", action="store_true", help="spend the budget on claims, first seeds first")
    parser.add_argument("--after", type=Path, help="OUT of an earlier call, here or elsewhere, to go on from")
    parser.add_argument("--profile", choices=("smoke", "reduced", "paper"), help="default: reduced, paper for claims")
    parser.add_argument("--workers", type=int, help="runs side by side; default: 1, for claims as many as fit")
    parser.add_argument("--stages", default="", help="only these, with commas between; none: all")
    parser.add_argument("--only", default="", help="what to run, with commas between: as for `suite run`")
    return parser


def listed(text: str) -> list[str]:
    """The words between commas."""
    return [part for part in text.split(",") if part]


def main() -> int:
    parser = arguments()
    chosen = parser.parse_args()
    if lacks_cuda(chosen.device, "ci.gpu"):
        return 2
    out, store = chosen.out, chosen.store = chosen.out.resolve(), chosen.store.resolve()
    data = chosen.data = chosen.data.resolve() if chosen.data else None
    out.mkdir(parents=True, exist_ok=True)
    chosen.profile = chosen.profile or ("paper" if chosen.claims else "reduced")
    workers = chosen.workers or 1

    # Take up what earlier calls left, and say what the rest of the budget should decide.
    began = time.monotonic()
    if chosen.after:
        go_on(chosen.after.resolve(), store)
    promised = None
    if chosen.claims:
        promised, workers = promise(chosen)
        print("\n".join(planning.forecast(promised, chosen.budget, workers)), flush=True)

    planned = stages(chosen, workers)
    names = [stage.name for stage in planned]
    wanted = listed(chosen.stages) or names
    if unknown := set(wanted).difference(names):
        parser.error(f"--stages {','.join(sorted(unknown))}: choose among {', '.join(names)}")
    left = chosen.budget - (time.monotonic() - began)
    with shared_card(chosen.device, workers):
        ended = go([stage for stage in planned if stage.name in wanted], left, out, data)
    if promised is not None:
        print(kept(promised, store), flush=True)
    if "runs" in wanted and (store / "runs").is_dir():
        take_home(store, out, chosen.profile)
    return 1 if any(each.failed for each in ended) else 0


if __name__ == "__main__":
    sys.exit(main())
