"""From specifications to stored runs, readable top to bottom: claim, resume or start, run, commit.

An earlier session's work on a run is gone on with to the same bits where code and native build are those that it was
begun with. With another native build, which was compared with autograd, it goes on as one more execution and names
all its builds. By other code, without a sound record of its execution or with a damaged checkpoint it begins anew,
and the run's report says what was lost.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from suite.experiment import CHECKPOINT_SECONDS, Context, Experiment, OutOfTime, RunSpec
from suite.files import read_note, sync_folder, write_whole
from suite.interruption import asked_to_stop, deferred
from suite.runner.autotune import decide, until
from suite.runner.calibration import host_seconds
from suite.runner.gc_tuning import spare_imports
from suite.runner.status_file import FAILURE, charge, charged_seconds, note_in, present, processor_seconds
from suite.runner.workers import NOT_BEGUN, RunReport, WorkerPool
from suite.runs import environment
from suite.runs.lease import Lease
from suite.runs.run import DamagedRun, Outcome, UnreadableRun, encode
from suite.runs.store import Store
from suite.training import checkpoint_file
from suite.training.numerics import choose, record, recorded, same_bits

PROBED_SECONDS = 30.0  # of a processor from which on a run is worth a probe of its host, of a third of a second

Resolve = Callable[[str], Experiment]


@dataclass(frozen=True)
class RunnerConfig:
    """What all runs of one call share; nothing here may change a number except what execution records."""

    store: Path
    device: str = "cpu"
    threads: int = 1
    data: Path | None = None
    deadline: float | None = None  # time.monotonic() after which nothing is begun and what runs is checkpointed
    checkpoint_seconds: float = CHECKPOINT_SECONDS

    def late(self) -> bool:
        """Whether the deadline has passed; never without one."""
        return self.deadline is not None and time.monotonic() > self.deadline


@dataclass(frozen=True)
class LeasedRun:
    """A run that this process holds and is about to compute."""

    spec: RunSpec
    context: Context
    begun: Mapping[str, str]  # when (UTC), by which code
    claim: Lease
    why: str


def execute(
    spec: RunSpec, resolve: Resolve, around: RunnerConfig, progress: Callable[[float], None] = lambda f: None
) -> RunReport:
    """Compute one run unless the store has it, from its checkpoint if it left one, and commit it once.

    A damaged folder of that name is moved aside and computed again; one that cannot be read is left, and the run
    fails. A run that fails raises nothing: the report says why, its traceback stays in its partial folder, and the
    other runs go on. Raises StoreError when the store cannot be written.
    """
    store = Store(around.store, create=True)
    reached = 0.0

    def advance(fraction: float) -> None:
        nonlocal reached
        reached = fraction
        progress(fraction)

    with contextlib.ExitStack() as held:
        with until(around.late):
            found = _open(held, store, spec, resolve, around, advance, lambda: reached)
        if isinstance(found, LeasedRun):
            advance(reached)  # its execution is chosen: it is under way
            with same_bits(around.device) as unordered:
                found = _close(store, found, _compute(found, resolve), unordered)
    advance(1.0)
    return found


def _open(
    claims: contextlib.ExitStack,
    store: Store,
    spec: RunSpec,
    resolve: Resolve,
    around: RunnerConfig,
    progress: Callable[[float], None],
    fraction: Callable[[], float],
) -> LeasedRun | RunReport:
    """Claim a run until ``claims`` closes and fix its execution, or say why there is nothing to compute.

    Until then it gives signs of life, with what ``fraction`` returns.
    """
    if asked_to_stop():
        return RunReport(spec, "late", NOT_BEGUN)
    told: list[str] = []  # what became of earlier work on it
    try:
        if (status := _stored(store, spec.id)) is not None:
            return RunReport(spec, "present", status)
        claim = claims.enter_context(store.claim(spec.id))
    except UnreadableRun as error:
        return RunReport(spec, "failed", why=str(error))
    except OSError as error:
        return RunReport(spec, "failed", why=f"its lock cannot be taken ({error.strerror}: {error.filename})")
    if claim is None:
        return RunReport(spec, "busy")
    try:
        if (status := _stored(store, spec.id, told)) is not None:  # meanwhile
            return RunReport(spec, "present", status)
        if around.late():
            return RunReport(spec, "late", NOT_BEGUN, _sentence(told))
        folder, begun, lost = open_folder(claim, environment.code_digest())
        told.append(lost)
        claims.enter_context(present(folder, fraction))  # measuring the execution takes a while too
        execution: Mapping[str, Any] | None = recorded(folder)
        if execution is None:
            chosen = choose(spec, around.device, around.threads)
            execution = decide(around.store, resolve(spec.experiment), spec, chosen)
            record(folder, execution)
        fixed, changed = with_build(folder, spec, execution)
        told.append(changed)
    except OutOfTime:  # while its execution was measured
        claim.forget()
        return RunReport(spec, "late", NOT_BEGUN, _sentence(told))
    except UnreadableRun as error:
        return RunReport(spec, "failed", why=str(error))
    except Exception as error:
        return RunReport(spec, "failed", why=_sentence([explain(error), keep_traceback(claim, error), *told]))
    stop = lambda: asked_to_stop() or claim.lost
    context = Context(folder, fixed, around.data, around.deadline, progress, around.checkpoint_seconds, stop)
    return LeasedRun(spec, context, begun, claim, _sentence(told))


def _stored(store: Store, run_id: str, told: list[str] | None = None) -> str | None:
    """The status of a run that is stored, or None; whoever holds it moves a damaged one aside, which is ``told``.

    Raises UnreadableRun for one that cannot be read: it may be whole, so it stays where it is.
    """
    try:
        status = store.read(run_id).status
    except KeyError:
        return None
    except DamagedRun as error:
        if told is not None:
            told.append(f"{error}; moved to {store.refuse(run_id)} and computed again")
        return None
    with contextlib.suppress(OSError):  # leftovers of a run that is there harm nothing
        store.clear(run_id)
    return status


def _sentence(parts: Iterable[str]) -> str:
    return "; ".join(filter(None, parts))


def _compute(run: LeasedRun, resolve: Resolve) -> Outcome | Exception:
    """What a run came to, or what went wrong; it is charged what was spent on it. What a kill interrupts is lost."""
    began = processor_seconds()
    try:
        body = resolve(run.spec.experiment).load()
        spare_imports(run.spec.experiment)
        with deferred():
            ended: Outcome | Exception = body(run.spec, run.context)
    except SystemExit as error:  # of a user's code: it would end the command, and leave the other runs
        ended = ValueError(f"its code called sys.exit({error.code!r})").with_traceback(error.__traceback__)
    except Exception as error:
        ended = error
    charge(run.context.folder, processor_seconds() - began)
    return ended


def _close(store: Store, run: LeasedRun, ended: Outcome | Exception, unordered: set[str]) -> RunReport:
    """Commit what a run came to, what it cost, and which kernels promised no bits."""
    spec = run.spec
    try:
        if isinstance(ended, Exception):
            raise ended
        where = environment.describe(dict(run.context.execution), run.begun)
        where["processor_seconds"] = spent = round(charged_seconds(run.context.folder), 1)
        where["load_average"] = [round(each, 2) for each in os.getloadavg()]  # of 1, 5 and 15 minutes, at its end
        if spent >= PROBED_SECONDS:
            where["host_factor"] = round(host_seconds(), 3)
        if unordered:
            where["not_deterministic"] = sorted(unordered)
        new = store.commit(spec.id, encode(spec, where, ended))
    except OutOfTime:
        return RunReport(spec, "busy" if run.claim.gone else "late", why=run.why)
    except Exception as error:
        if run.claim.gone:
            return RunReport(spec, "busy", why="another process took it over while this one stood still")
        return RunReport(spec, "failed", why=_sentence([explain(error), keep_traceback(run.claim, error), run.why]))
    run.claim.forget()
    return RunReport(spec, "stored", ended.status, run.why) if new else RunReport(spec, "present", ended.status)


def explain(error: Exception) -> str:
    """An error in one sentence; its type is named unless it was written for the user."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return f"needs the Python package {package}, which is not installed here: pip install {package}"
    return str(error) if isinstance(error, ValueError) and str(error) else f"{type(error).__name__}: {error}"


def keep_traceback(claim: Lease, error: Exception) -> str:
    """Write the traceback beside the checkpoint, if the disk lets us, and say where it is."""
    path = claim.folder / FAILURE
    try:
        path.write_text("".join(traceback.format_exception(error)))
    except OSError as error:
        return f"its traceback could not be kept ({error.strerror})"
    return f"traceback in {path}"


def execute_all(
    specs: Iterable[RunSpec],
    resolve: Resolve,
    around: RunnerConfig,
    *,
    workers: int = 1,
    progress: Callable[[str, float], None] = lambda run_id, fraction: None,
    stages: Mapping[str, int] | None = None,
) -> Iterator[RunReport]:
    """Compute all runs, largest first; with several workers, in processes of ``around.threads`` threads each.

    Runs whose results are times come after the others then, one by one, so that nothing is timed beside other work.
    ``stages`` (a number by run id) are begun one after another instead, and runs without a number last. With several
    workers ``resolve`` must be importable by name. A worker that dies (killed, out of memory) has its run reported as
    failed and is replaced; the run keeps its checkpoint.
    """
    order = stages or {}
    cost = {spec: resolve(spec.experiment).seconds(spec) for spec in specs}
    todo = sorted(cost, key=lambda spec: (order.get(spec.id, math.inf), -cost[spec], spec.id))
    if workers > 1 and len(todo) > 1:
        timed = [spec for spec in todo if resolve(spec.experiment).timed]
        untimed = [spec for spec in todo if spec not in timed]
        for size, part in ((workers, untimed), (1, timed)):
            if part:
                with WorkerPool(min(size, len(part)), partial(execute, resolve=resolve, around=around)) as pool:
                    yield from pool.compute(part, progress)
        return
    for spec in todo:
        yield execute(spec, resolve, around, partial(progress, spec.id))


BEGUN = "begun.json"  # in the folder of a run under way: when, by which code, under which rules
FIELDS = {"code": str, "started": str}


def open_folder(claim: Lease, code: str) -> tuple[Path, dict[str, str], str]:
    """The folder to work in, with an earlier claim's work where it can be gone on with.

    Args:
        claim: The claim on the run.
        code: Digest of the source that computes it now.

    Returns:
        The folder, how the run was begun, and a sentence on what was lost; empty where nothing was.

    Raises:
        UnreadableRun: What there is cannot be read now; it is left as it is.
    """
    losses: list[str] = []

    def keep(left: Path) -> bool:
        try:
            why = refusal(left, code)
            if why and (lost := achieved(left)):
                losses.append(f"{why}, so it begins anew; lost: {lost}")
        except OSError as error:
            raise UnreadableRun(f"what was begun of run {claim.root.name}", error) from error
        return not why

    folder = claim.open(keep)
    (folder / FAILURE).unlink(missing_ok=True)  # of an earlier claim: the run is under way again
    begun = read_note(folder / BEGUN, FIELDS)
    if begun is not None:
        return folder, begun, ""
    begun = {"code": code, "started": datetime.now(UTC).isoformat(timespec="seconds")}
    write_whole(folder / BEGUN, json.dumps(begun).encode())
    for parent in (claim.root, claim.root.parent):
        sync_folder(parent)
    return folder, begun, "; ".join(losses)


def refusal(left: Path, code: str) -> str:
    """Why nobody can go on with what lies in a folder; empty where this code can. Raises OSError."""
    begun = read_note(left / BEGUN, FIELDS)
    if begun is None:
        return f"its {BEGUN} is missing or damaged"
    if begun["code"] != code:
        return f"it was begun by other code ({begun['code']}, here {code})"
    if recorded(left) is None:
        return "the record of its execution is missing or damaged"
    try:
        checkpoint_file.read(left)
    except checkpoint_file.DamagedCheckpoint:
        return "its checkpoint is damaged"
    return ""


def achieved(left: Path) -> str:
    """How far the work in a folder had come; empty where there is none."""
    if (note := note_in(left)) and note["fraction"] > 0:
        return f"{note['fraction']:.0%} of its updates"
    return "its checkpoint" if (left / checkpoint_file.NAME).exists() else ""


def with_build(folder: Path, spec: RunSpec, execution: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The execution with the native build of this machine, and a sentence where it is another than before.

    A run that has a checkpoint of another build names all its builds in order from then on.

    Raises:
        NativeError: There is no native step here that agrees with autograd.
    """
    if execution["path"] != "native":
        return execution, ""
    from suite.runner.autotune import native_build
    from suite.training.machine_code import NativeError

    before = execution["build"]
    try:
        build = native_build(spec, execution)
    except NativeError as error:
        cure = f"run it where there is one, or remove {folder} to begin anew"
        raise NativeError(f"it was begun with a native step, and here {error}; {cure}") from error
    if build == before:
        return execution, ""
    execution = {**execution, "build": build}
    why = ""
    if checkpoint_file.read(folder) is not None:
        execution["builds"] = [*execution.get("builds", [before]), build]
        why = f"it goes on with the native build {build}, where it came from {before}: no other run has its bits"
    record(folder, execution)
    return execution, why
