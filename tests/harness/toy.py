"""A sixth paper, for the tests alone: cheap experiments that fail, diverge or die as their settings ask.

As a script it is the command line with this paper in place of the five; worker processes import it too.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import live_register
import pandas as pd

from suite.claims.intervals import Interval
from suite.experiment import Context, Experiment, OutOfTime
from suite.files import write_whole
from suite.papers import catalogue, register
from suite.papers.artifact import Artifact, Frame, Groups, Paper, Quantity
from suite.papers.catalogue import entries as claims_of
from suite.runs.run import Outcome, encode
from suite.spec import RunSpec, seed

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]


def body(spec: RunSpec, context: Context) -> Outcome:
    """A curve that depends on the seed alone; ``does`` says what else happens."""
    log(os.environ.get("TOY_LOG"), spec)
    does = spec.settings.get("does", "")
    sleep(spec.settings.get("sleep", 0.0), context)
    context.report(0.5)
    if does == "raise":
        raise KeyError("no such thing")
    if does == "refuse":
        raise ValueError("size=7 must be even; use 6 or 8")
    if does == "exit":
        sys.exit("no data")
    if does == "late" and context.deadline is not None:
        raise OutOfTime
    if does == "die" and not (context.folder / "died").exists():
        (context.folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    draws = [seed(spec.seed, "draw", i) / 2**63 for i in range(5)]
    status = "diverged" if does == "diverge" else "finished"
    value = float("nan") if does == "diverge" else spec.settings.get("value", 0.0) + draws[0]
    log(os.environ.get("TOY_DONE"), spec)
    return Outcome(status, {"value": value}, {"draws": pd.DataFrame({"draw": draws})})


def log(path: str | None, spec: RunSpec) -> None:
    """Add a run to a list of those begun or done."""
    if path:
        with open(path, "a") as stream:  # one write of a short line is atomic
            stream.write(f"{spec.id}\n")


def sleep(seconds: float, context: Context) -> None:
    """Work of a kind: in steps, with a checkpoint that a later call goes on from."""
    kept = context.folder / "slept"
    done = float(kept.read_text()) if kept.exists() else 0.0
    while done < seconds:
        step = min(0.1, seconds - done)
        time.sleep(step)
        done += step
        context.report(0.5 * done / seconds)
        if context.late:
            write_whole(kept, str(done).encode())
            raise OutOfTime


def specs(**settings: object) -> tuple[RunSpec, ...]:
    return tuple(RunSpec("toy/draw", settings, s) for s in range(int(os.environ.get("TOY_RUNS", "3"))))


def runs(profile: str) -> Groups:
    does = {"does": os.environ["TOY_DOES"]} if "TOY_DOES" in os.environ else {}
    return {"draws": specs(profile=profile, sleep=float(os.environ.get("TOY_SLEEP", "0")), **does)}


def mean(frame: Frame) -> Interval:
    values = frame["draws"]["value"]
    return Interval(values.mean(), values.mean() - 0.01, values.mean() + 0.01, len(values))


QUANTITIES = {
    "seven": Quantity(lambda frame: 7),
    "mean": Quantity(mean, ("draws",), shown=lambda frame: frame.profile == "smoke"),
    "share": Quantity(lambda frame: 1.0, ("draws",)),
}


def training(profile: str) -> Groups:
    return {"train": (digits(updates=int(os.environ.get("TOY_UPDATES", "200"))),)}


def digits(updates: int = 60, rate: float = 0.05, **changes: object) -> RunSpec:
    """ISGD with a small network on the embedded digits."""
    settings = {
        "data": {"name": "digits", "size": 8},
        "model": {"name": "digits_lenet", "input_size": 8, "kernel": 3},
        "algorithm": {"name": "isgd", "batches": "epoch", "stop": 2, "zeta": 0.01},
        "descent": {"rule": "torch", "momentum": 0.9, "decay": 0.0},
        "rate": rate,
        "batch": 16,
        "updates": updates,
        "evaluate": {"every": 20},
    }
    return RunSpec("train", settings | changes, 1)


def nothing(profile: str) -> Groups:
    return {"imagined": (RunSpec("toy/needs", {"profile": profile}),)} if profile == "paper" else {}


PAPER = Paper(
    "toy",
    "A toy",
    "Nobody, nowhere, never.",
    (
        Artifact("toy/table1", "Draws", runs, quantities=QUANTITIES),
        Artifact("toy/fig1", "Training", training),
        Artifact("toy/fig2", "Elsewhere", nothing),
    ),
    {
        "toy/draw": Experiment(lambda: body, lambda spec: 1.0 + spec.seed),
        "toy/needs": Experiment(lambda: body, data=lambda spec: ("imagenet",)),
    },
)


def resolve(name: str) -> Experiment:
    """An experiment of this paper's, in worker processes too."""
    return PAPER.experiments[name]


def install() -> None:
    """Put this paper in the place of the five, in this process."""
    catalogue.paper.cache_clear()
    claims_of.cache_clear()
    catalogue.PAPERS.clear()
    catalogue.PAPERS["toy"] = catalogue.Registered(lambda: PAPER, HERE)
    committed = Path(os.environ.get("TOY_EVIDENCE", HERE / "nothing committed"))
    catalogue.folders = lambda: [committed]
    register.read = live_register.read


def environment(**variables: str) -> dict[str, str]:
    """The environment of a child process: the checkout importable, one thread."""
    path = os.pathsep.join([str(CHECKOUT), str(HERE), str(HERE.parent)])
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SGD_SUITE", "TOY", "PYTEST"))}
    return kept | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "error"} | variables


def files_of(spec: RunSpec, status: str = "finished", **results: object) -> dict[str, bytes]:
    """A run folder's files without computing anything."""
    return encode(spec, {"machine": {"cpu": "none"}}, Outcome(status, results))


if __name__ in ("__main__", "__mp_main__"):
    install()

if __name__ == "__main__":
    from suite.commands.main import main

    main()
