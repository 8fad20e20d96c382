"""What became of a run."""

from __future__ import annotations

from dataclasses import dataclass

from suite.spec import RunSpec

NOT_BEGUN = "not begun"  # status of a run that is late before anything of it was computed


@dataclass(frozen=True)
class RunReport:
    """What became of one run: stored, there already, busy elsewhere, out of time, or failed with a reason."""

    spec: RunSpec
    state: str  # "stored", "present", "busy", "late", "failed"
    status: str = ""
    why: str = ""
