"""The first entry of the register: ``python -m ci.first_register``; it refuses when there is one.

Claims were judged before there was a register, so its first entry says, from the history of the project, which of
them had their rule before their evidence. A claim's first evidence is the first version of any run that it is read
from, in any commit; its date is the revision which that run names. The code of that revision judges today's runs
again: the same verdict and interval under the same printed values and rule, and the claim is *registered* (its rule
has stood since); any other, and it is *amended*, with the verdict of then. Runs made from a changed tree, or from a
revision that the history lacks, leave a claim *undated*, and so does a revision whose code cannot judge. Claims
without runs, or without a verdict, have no evidence that could have come first.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import zipfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from suite.commands.register import NOT_RUN, ReplayError, read, read_row, replay
from suite.papers.evidence import committed
from suite.papers.register import append, entries, today
from suite.papers.registry import PAPERS, homes, paper
from suite.papers.verdicts import verdicts
from suite.runs.archive import Layered
from suite.runs.environment import ROOT

EVIDENCE = "paper_figures/evidence"
# Changed after runs had been seen, but before any evidence was committed: no replay can tell.
BY_HAND = {
    "inverse_law/eq5/accurate": "narrowed from all held-out batch sizes to interior ones in 3bdb421, after the first "
    "runs; on the committed runs the earlier rule gives 0.94 [0.72, 1.23], inconclusive",
    "isgd/fig1a/distinct-speeds": "moved from the reduced to the paper profile in e091757, after 40 epochs had given "
    "0.045 where the rule wants more than 0.1",
    "isgd/fig1b/independent-speeds": "moved from the reduced to the paper profile in e091757, after 40 epochs had "
    "given 0.024 where the rule wants more",
}


class First(NamedTuple):
    """The first version of a run: the revision that made it, whether from a changed tree."""

    revision: str
    dirty: bool


def git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=True).stdout


def history() -> dict[str, int]:
    """The place of every commit in one order that follows ancestry."""
    return {
        commit: place
        for place, commit in enumerate(git("rev-list", "--topo-order", "--reverse", "HEAD").decode().split())
    }


def first_versions() -> dict[str, First]:
    """Where each run that was ever committed was first made."""
    found: dict[str, First] = {}
    for archive in archives():
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            for name in opened.namelist():
                if name.endswith("/environment.json"):
                    about = json.loads(opened.read(name))
                    first = First(about.get("revision", "unknown"), bool(about.get("dirty", True)))
                    found.setdefault(name.split("/")[-2], first)
    return found


def archives() -> Iterator[bytes]:
    """Every version of every archive of evidence, oldest first."""
    seen: set[str] = set()
    for commit in git("rev-list", "--topo-order", "--reverse", "HEAD", "--", EVIDENCE).decode().split():
        for line in git("ls-tree", "-r", commit, "--", EVIDENCE).decode().splitlines():
            head, path = line.split("\t")
            blob = head.split()[2]
            if path.endswith(".zip") and blob not in seen:
                seen.add(blob)
                yield git("cat-file", "blob", blob)


def judged_then(revision: str, kept: Path | None) -> dict[str, dict[str, Any]]:
    """What a revision says of the runs of today; from ``kept``, a folder of its ``check --json``, if it is there."""
    if kept and (path := kept / f"{revision[:9]}.json").exists():
        text = path.read_text()
        return {row["id"]: read_row(row) for row in json.loads(text)} if text else {}
    try:
        return replay(revision, [])
    except ReplayError:
        return {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--replays", type=Path, help="folder of REVISION.json, what `check --json` said then")
    kept = parser.parse_args().replays
    (home,) = homes()
    if entries(home):
        print("the register has entries: it is only ever appended to, by `sgd-suite register`")
        return 2
    places, firsts = history(), first_versions()
    replays: dict[str, dict[str, dict[str, Any]]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for name in PAPERS:
        prints = today(paper(name))
        for verdict in verdicts(paper(name), Layered(committed())):
            claim, ours = verdict.claim.id, verdict.measured
            row: dict[str, Any] = {**prints[claim], "change": "registered"}
            runs = ours.runs if ours and verdict.verdict != NOT_RUN else ()
            dates = [firsts.get(run) for run in runs]
            if claim in BY_HAND:
                row |= {"change": "amended", "because": BY_HAND[claim]}
            elif any(date is None or date.dirty or date.revision not in places for date in dates):
                row["change"] = "undated"
            elif dates:
                oldest = min((date.revision for date in dates if date), key=places.__getitem__)
                if oldest not in replays:
                    replays[oldest] = judged_then(oldest, kept)
                    print(f"{oldest[:9]}: {len(replays[oldest])} claims judged again")
                then = replays[oldest].get(claim)
                if then is None or then["verdict"] == NOT_RUN:
                    row["change"] = "undated" if not replays[oldest] else "late"
                elif then != read(verdict):
                    row |= {"change": "amended", "earlier": then}
            rows[claim] = row
    because = "The rules as they stood when the register was begun, ordered by the history before it."
    path = append(home, datetime.now(UTC).isoformat(timespec="seconds"), because, rows)
    counts = Counter(row["change"] for row in rows.values())
    print(path, dict(counts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
