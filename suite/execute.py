"""From specifications to stored runs, readable top to bottom: claim, resume or start, run, commit."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from suite import environment, execution
from suite.experiments import CHECKPOINT_SECONDS, Context, Experiment, OutOfTime
from suite.spec import RunSpec
from suite.store import DamagedRun, Store, encode

Resolve = Callable[[str], Experiment]


@dataclass(frozen=True)
class Surroundings:
    """What all runs of one call share; nothing here may change a number except what execution records."""

    store: Path
    device: str = "cpu"
    threads: int = 1
    data: Path | None = None
    deadline: float | None = None  # time.time()
    checkpoint_seconds: float = CHECKPOINT_SECONDS


@dataclass(frozen=True)
class Report:
    """What became of one run: stored, there already, busy elsewhere, out of time, or failed with a reason."""

    spec: RunSpec
    state: str  # "stored", "present", "busy", "late", "failed"
    status: str = ""
    why: str = ""


def execute(
    spec: RunSpec, resolve: Resolve, around: Surroundings, progress: Callable[[float], None] = lambda f: None
) -> Report:
    """Compute one run unless the store has it, from its checkpoint if it left one, and commit it once.

    A damaged folder of that name is moved aside and computed again. A run that fails raises nothing: the report
    says why, its traceback stays in its partial folder, and the other runs go on. Raises StoreError when the
    store cannot be written.
    """
    store = Store(around.store, create=True)
    with store.claim(spec.id) as mine:
        if not mine:
            return Report(spec, "busy")
        why = ""
        if store.has(spec.id):
            try:
                status = store.read(spec.id).status
            except DamagedRun as error:
                why = f"{error}; moved to {store.refuse(spec.id)} and computed again"
            else:
                store.forget(spec.id)
                return Report(spec, "present", status)
        deadline = None
        if around.deadline is not None:
            deadline = time.monotonic() + around.deadline - time.time()
            if deadline < time.monotonic():
                return Report(spec, "late")
        try:
            folder = partial_folder(store, spec.id)
            fixed = execution.fixed(folder, spec, around.device, around.threads)
            context = Context(folder, fixed, around.data, deadline, progress, around.checkpoint_seconds)
            outcome = resolve(spec.experiment).load()(spec, context)
            store.commit(spec.id, encode(spec, environment.describe(dict(fixed)), outcome))
        except OutOfTime:
            return Report(spec, "late")
        except Exception as error:
            return Report(spec, "failed", why=f"{explain(error)}; {keep_traceback(store, spec.id)}")
        store.forget(spec.id)
        return Report(spec, "stored", outcome.status, why)


def partial_folder(store: Store, run_id: str) -> Path:
    """The folder of a run under way; emptied first if other source code has left its checkpoint there.

    A checkpoint promises the same bits only under the code that wrote it.
    """
    folder = store.partial(run_id)
    note, source = folder / "source", environment.source_fingerprint()
    if not note.exists() or note.read_text() != source:
        store.forget(run_id)
        folder.mkdir(parents=True)
        note.write_text(source)
    return folder


def explain(error: Exception) -> str:
    """An error in one sentence; its type is named unless it was written for the user."""
    return str(error) if isinstance(error, ValueError) and str(error) else f"{type(error).__name__}: {error}"


def keep_traceback(store: Store, run_id: str) -> str:
    """Write the traceback beside the checkpoint, if the disk lets us, and say where it is."""
    path = store.partial(run_id) / "failure.txt"
    try:
        path.write_text(traceback.format_exc())
    except OSError as error:
        return f"its traceback could not be kept ({error.strerror})"
    return f"traceback in {path}"


def execute_all(
    specs: Iterable[RunSpec],
    resolve: Resolve,
    around: Surroundings,
    *,
    workers: int = 1,
    progress: Callable[[str, float], None] = lambda run_id, fraction: None,
) -> Iterator[Report]:
    """Compute all runs, largest first; with several workers, in processes of ``around.threads`` threads each.

    ``resolve`` must then be importable by name. A worker that dies (killed, out of memory) has its run reported
    as failed and is replaced; the run keeps its checkpoint.
    """
    todo = sorted(set(specs), key=lambda s: (-resolve(s.experiment).seconds(s), s.id))
    if workers > 1 and len(todo) > 1:
        from suite.crew import Crew

        with Crew(min(workers, len(todo)), partial(execute, resolve=resolve, around=around)) as crew:
            yield from crew.compute(todo, progress)
        return
    for spec in todo:
        yield execute(spec, resolve, around, partial(progress, spec.id))
