"""The main job: run, check, figures and report. Exit 0 when every verdict equals the committed one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from suite.claims.board import board, lines
from suite.claims.judge import Verdict
from suite.commands import options
from suite.commands.check import judge_selection
from suite.commands.output import say
from suite.commands.run import run_artifacts
from suite.files import check_writable
from suite.papers.catalogue import PAPERS, folders, papers_of, published, select, with_committed
from suite.report.site.build import check_place, write_site
from suite.report.site.render import INDEX
from suite.runs.archive import open_runs

UNMEASURED = ("not run", "bound to the paper's machine")


def command(
    selector: options.Selectors = None,
    *,
    profile: options.ProfileOption = options.Profile.smoke,
    store: options.StoreOption = options.STORE,
    data: options.DataOption = None,
    device: options.DeviceOption = options.Device.auto,
    workers: options.Workers = 1,
    budget: options.Budget = None,
    out: Annotated[Path, options.place("folder for figures and report")] = Path("report"),
    accept: Annotated[bool, typer.Option("--accept", help="commit these verdicts as the expected ones")] = False,
) -> None:
    selectors = selector or []
    check_writable(out)
    check_place(out / INDEX)  # before anything runs: a page of somebody else's may stand there
    asked = options.RunOptions(profile, store, data, device, workers, budget)
    failed = run_artifacts(select(selectors), selectors, asked)
    found = judge_selection(selectors, profile, open_runs(store))
    print("\n".join(lines(board(found))))
    page, site = write_site(with_committed(store), out, say, selectors)
    print(page)
    for fault in site.faults:  # a programming error in what draws an artifact
        say(fault)
    failed = int(failed or bool(site.faults))
    if accept:
        print(f"verdicts written to {', '.join(map(str, write_verdicts(profile, found)))}")
        raise typer.Exit(failed)
    different = changes(found, committed_verdicts(profile), whole=not selectors)
    for line in different:
        print(f"changed: {line}", file=sys.stderr)
    if not different:
        print(f"all {len(found)} verdicts at {profile} equal the committed ones")
    raise typer.Exit(1 if failed or different else 0)


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
    known = committed_verdicts(profile) | {v.claim.id: v.verdict for v in found}
    written = []
    for home in sorted({PAPERS[v.claim.paper].home for v in found}):  # those of other packages stay as they are
        there = [claim.id for name in papers_of(home) for claim in published(name)]
        own = {claim: known[claim] for claim in there if known.get(claim, "not run") not in UNMEASURED}
        written.append(home / "evidence" / f"verdicts-{profile}.json")
        written[-1].parent.mkdir(exist_ok=True)
        written[-1].write_text(json.dumps(dict(sorted(own.items())), indent=0) + "\n")
    return written
