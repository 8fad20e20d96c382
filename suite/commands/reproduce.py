"""The main job: run, check, report with its figures, and whether every verdict equals the committed one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from suite.claims.board import board, lines
from suite.claims.judge import Verdict
from suite.commands.check import judge_selection
from suite.commands.run import RunOptions, run_artifacts
from suite.papers.catalogue import PAPERS, homes, published, select
from suite.papers.evidence import folders, with_committed
from suite.report.site.build import INDEX, check_place, write_site
from suite.runs.archive import open_runs

UNMEASURED = ("not run", "bound to the paper's machine")


def committed_verdicts(profile: str) -> dict[str, str]:
    """Claim id -> verdict as committed for a profile, of the claims that it measures."""
    found: dict[str, str] = {}
    for folder in folders():
        path = folder / f"verdicts-{profile}.json"
        found |= json.loads(path.read_text()) if path.exists() else {}
    return found


def changes(found: Sequence[Verdict], expected: dict[str, str], *, whole: bool) -> list[str]:
    """Claims whose verdict is not the committed one; of a ``whole`` selection also those that are gone.

    A claim that rests on times of the machine at hand must only be decided again, not decided alike. One of which
    nothing is committed is expected not to be measured.
    """
    different = [
        f"{v.claim.id}: {v.verdict}, committed {expected.get(v.claim.id, 'nothing')} ({v.why})"
        for v in found
        if v.verdict != expected.get(v.claim.id, v.verdict if v.verdict in UNMEASURED else "")
        and (not v.claim.timed or v.verdict in UNMEASURED)
    ]
    gone = set(expected) - {v.claim.id for v in found} if whole else set()
    return different + [f"{claim}: no such claim, committed {expected[claim]}" for claim in sorted(gone)]


def write_verdicts(profile: str, found: Sequence[Verdict]) -> list[Path]:
    """Commit the verdicts of a profile, of what it measures, beside the evidence of each paper (``--accept``)."""
    there = {claim.id for name in PAPERS for claim in published(name)}
    known = committed_verdicts(profile) | {v.claim.id: v.verdict for v in found}
    known = {claim: verdict for claim, verdict in known.items() if claim in there and verdict not in UNMEASURED}
    written = []
    for home in homes():
        own = {claim: verdict for claim, verdict in known.items() if PAPERS[claim.partition("/")[0]].home == home}
        written.append(home / "evidence" / f"verdicts-{profile}.json")
        written[-1].parent.mkdir(exist_ok=True)
        written[-1].write_text(json.dumps(dict(sorted(own.items())), indent=0) + "\n")
    return written


def reproduce_selection(selectors: Sequence[str], options: RunOptions, out: Path, accept: bool = False) -> int:
    """Run the main job; 0 when nothing failed and every verdict at this profile equals the committed one.

    A programming error in what draws an artifact counts as failed. Raises StoreError before anything runs where a
    page of somebody else stands at ``out``.
    """
    check_place(out / INDEX)
    profile, store = options.profile, options.store
    failed = run_artifacts(select(selectors), selectors, options)
    found = judge_selection(selectors, profile, open_runs(store))
    print("\n".join(lines(board(found))))
    source = with_committed(store)
    tell = lambda line: print(line, file=sys.stderr, flush=True)
    page, site = write_site(source, out, tell)
    print(page)
    for fault in site.faults:
        tell(fault)
    failed = int(failed or bool(site.faults))
    if accept:
        print(f"verdicts written to {', '.join(map(str, write_verdicts(profile, found)))}")
        return failed
    different = changes(found, committed_verdicts(profile), whole=not selectors)
    for line in different:
        print(f"changed: {line}", file=sys.stderr)
    if not different:
        print(f"all {len(found)} verdicts at {profile} equal the committed ones")
    return 1 if failed or different else 0
