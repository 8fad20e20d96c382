"""The command ``run``: plan, check that it can run, compute, say what became of each run."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from paper_figures.planning import missing_data, plan
from paper_figures.registry import experiment
from paper_figures.selection import select
from suite.data.catalogue import DataError
from suite.execute import Surroundings, execute_all
from suite.progress import Progress
from suite.store import Store

PATIENCE = 600.0  # seconds to wait for runs that another process is computing


def pick_device(device: str) -> str:
    """``auto`` is CUDA where there is one. Raises ValueError when CUDA is asked for and absent."""
    if device == "cpu":
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if device == "cuda":
        raise ValueError("--device cuda: this machine has no usable CUDA device; use --device cpu")
    return "cpu"


def run_selection(
    selectors: Sequence[str],
    profile: str,
    store: Path,
    data: Path | None,
    device: str,
    workers: int,
    budget: float | None,
) -> int:
    """Compute what is not stored. Returns 0, or 1 when a run failed.

    Raises DataError before anything is written when a data set is missing.
    """
    planned = plan(select(selectors), profile)
    if absent := missing_data(planned, data):
        name, why = next(iter(absent.items()))
        raise DataError(f"profile {profile} needs the data set {name}: {why}")
    Store(store, create=True)
    around = Surroundings(
        store=store,
        device=pick_device(device),
        data=data,
        deadline=time.time() + budget if budget else None,
    )
    weights = {p.spec.id: p.seconds for p in planned}
    names = {p.spec.id: p.artifacts[0] for p in planned}
    todo = [p.spec for p in planned]
    counts = {"stored": 0, "present": 0, "late": 0, "failed": 0}
    waited = 0.0
    with Progress(weights) as progress:
        while todo:
            busy = []
            for report in execute_all(todo, experiment, around, workers=workers, progress=progress.update):
                if report.state == "busy":
                    busy.append(report.spec)
                    continue
                counts[report.state] += 1
                ending = f"{report.state} {report.status}".strip() + (f": {report.why}" if report.why else "")
                progress.finish(report.spec.id, f"{names[report.spec.id]} {report.spec.id} {ending}")
                if report.state == "failed" or report.why:
                    print(f"{report.spec.id}: {report.why}", file=sys.stderr)
            todo = busy
            if todo:
                if waited > PATIENCE or (around.deadline and time.time() > around.deadline):
                    print(f"{len(todo)} runs are being computed by another process", file=sys.stderr)
                    break
                time.sleep(0.5)
                waited += 0.5
    print(
        f"{counts['stored']} runs stored, {counts['present']} already there, {counts['late']} left for later, "
        f"{counts['failed']} failed",
        file=sys.stderr,
    )
    return 1 if counts["failed"] else 0
