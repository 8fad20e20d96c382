"""The main job: run, check, figures, report, and whether every verdict equals the committed one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from paper_figures.checking import judge_selection, lines
from paper_figures.drawing import draw_selection
from paper_figures.evidence import COMMITTED, with_committed
from paper_figures.report import write_report
from paper_figures.running import run_selection
from suite.archive import open_runs
from suite.claims import Verdict


def committed_verdicts(profile: str) -> dict[str, str]:
    """Claim id -> verdict as committed for a profile; empty when none is."""
    path = COMMITTED / f"verdicts-{profile}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def changes(found: Sequence[Verdict], expected: dict[str, str], *, whole: bool) -> list[str]:
    """Claims whose verdict is not the committed one; of a ``whole`` selection also those that are gone.

    A claim that rests on times of the machine at hand must only be decided again, not decided alike.
    """
    different = [
        f"{v.claim.id}: {v.verdict}, committed {expected.get(v.claim.id, 'nothing')} ({v.why})"
        for v in found
        if v.verdict != expected.get(v.claim.id) and (not v.claim.timed or v.verdict == "not run")
    ]
    gone = set(expected) - {v.claim.id for v in found} if whole else set()
    return different + [f"{claim}: no such claim, committed {expected[claim]}" for claim in sorted(gone)]


def write_verdicts(profile: str, found: Sequence[Verdict]) -> Path:
    """Commit the verdicts of a profile beside the evidence (``--accept``)."""
    path = COMMITTED / f"verdicts-{profile}.json"
    known = committed_verdicts(profile) | {v.claim.id: v.verdict for v in found}
    path.write_text(json.dumps(dict(sorted(known.items())), indent=0) + "\n")
    return path


def reproduce_selection(
    selectors: Sequence[str],
    profile: str,
    store: Path,
    data: Path | None,
    device: str,
    workers: int,
    budget: float | None,
    out: Path,
    accept: bool = False,
) -> int:
    """Run the main job; 0 when nothing failed and every verdict at this profile equals the committed one."""
    failed = run_selection(selectors, profile, store, data, device, workers, budget)
    found = judge_selection(selectors, profile, open_runs(store))
    print("\n".join(lines(found)[-2:]))
    source = with_committed(store)
    drawn = list(draw_selection(selectors, source, out / "figures", "svg", None))
    print(f"{len(drawn)} artifacts drawn or explained, drawings in {out / 'figures'}", file=sys.stderr)
    print(write_report(source, out))
    if accept:
        print(f"verdicts written to {write_verdicts(profile, found)}")
        return failed
    different = changes(found, committed_verdicts(profile), whole=not selectors)
    for line in different:
        print(f"changed: {line}", file=sys.stderr)
    if not different:
        print(f"all {len(found)} verdicts at {profile} equal the committed ones")
    return 1 if failed or different else 0
