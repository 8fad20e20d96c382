"""The command ``register``: append what the rules say today, with what the rules of before say of the same runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suite.claims.judge import Verdict
from suite.papers.evidence import committed, folders
from suite.papers.register import append, standings, today, unregistered
from suite.papers.registry import PAPERS, homes, paper
from suite.papers.verdicts import verdicts
from suite.runs.archive import Layered
from suite.runs.environment import ROOT

NOT_RUN = "not run"


class ReplayError(ValueError):
    """The committed code could not judge the stored runs."""


def read(verdict: Verdict) -> dict[str, Any]:
    """What a rule made of the stored runs: verdict, and the interval if there is one."""
    ours = verdict.measured
    spans = {"values": ours.values, "low": ours.low, "high": ours.high} if ours else {}
    return {"verdict": verdict.verdict, **{name: [_plain(n) for n in span] for name, span in spans.items()}}


def _plain(number: float) -> float | str:
    return number if abs(number) != float("inf") and number == number else str(number)


def read_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a row of ``check --json``."""
    ours = row["ours"] or {}
    return {"verdict": row["verdict"], **{name: ours[name] for name in ("values", "low", "high") if ours}}


def replay(revision: str, selectors: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What the code of a revision makes of the runs stored today, by claim.

    The revision's files are laid out in a temporary folder with today's evidence beside them, and its own ``check``
    is run there. Raises ReplayError with what it said.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        files = subprocess.run(["git", "-C", str(ROOT), "archive", revision], capture_output=True, check=True).stdout
        subprocess.run(["tar", "x", "-C", str(tree)], input=files, check=True)
        for shipped in folders():
            target = tree / shipped.relative_to(ROOT)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(shipped, target)
        command = [sys.executable, "-m", "suite", "check", *selectors, "--json"]
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        try:
            return {row["id"]: read_row(row) for row in json.loads(done.stdout)}
        except ValueError as error:
            said = done.stderr.strip()[-500:]
            raise ReplayError(f"the code of {revision} could not judge the stored runs: {said}") from error


def change_of(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    """How a claim changed: ``old`` is what the rule of before says of the stored runs, ``new`` what today's says."""
    if new is None:
        return "withdrawn"
    if old is None:
        return "registered" if new["verdict"] == NOT_RUN else "late"
    if old["verdict"] == NOT_RUN:
        return "registered" if new["verdict"] == NOT_RUN else "late"
    return "reworded" if old == new else "amended"


def register(because: str, revision: str = "HEAD") -> list[str]:
    """Append what has changed since the registers were written; returns a sentence per home.

    Raises ReplayError when the code of ``revision``, which must be that of the registers, cannot be replayed.
    """
    said = []
    for home in homes():
        names = [name for name, each in PAPERS.items() if each.home == home]
        changed = unregistered(names)
        if not changed:
            said.append(f"{home.name}: the register is up to date")
            continue
        prints = {claim: row for name in names for claim, row in today(paper(name)).items()}
        known = standings(home)
        papers = sorted({claim.partition("/")[0] for claim in changed})
        old = replay(revision, papers) if any(claim in known for claim in changed) else {}
        source = Layered(committed())
        new = {v.claim.id: read(v) for name in papers for v in verdicts(paper(name), source)}
        rows: dict[str, dict[str, Any]] = {}
        for claim in changed:
            before = old.get(claim) if claim in known else None
            change = change_of(before, new.get(claim) if claim in prints else None)
            rows[claim] = {**prints.get(claim, {}), "change": change}
            if before and change in ("amended", "late"):
                rows[claim]["earlier"] = before
        date = datetime.now(UTC).isoformat(timespec="seconds")
        path = append(home, date, because, rows)
        counts = Counter(row["change"] for row in rows.values())
        said.append(f"{path}: " + ", ".join(f"{n} {change}" for change, n in counts.most_common()))
    return said
