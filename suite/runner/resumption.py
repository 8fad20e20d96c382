"""Whether an earlier session's work on a run can be gone on with, and what is said where it cannot.

To the same bits where code and native build are those that it was begun with. With another native build, which was
compared with autograd, it goes on as one more execution and names all its builds. By other code, without a sound
record of its execution or with a damaged checkpoint it begins anew, and the run's report says what was lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suite.files import read_note, sync_folder, write_whole
from suite.runner.status_file import note_in
from suite.runs.lease import Lease
from suite.runs.run import UnreadableRun
from suite.spec import RunSpec
from suite.training import checkpoint_file
from suite.training.numerics import record, recorded

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
