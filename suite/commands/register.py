"""The command ``register``: append what the rules say today, with what the rules of before say of the same runs."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import zip_longest
from pathlib import Path
from typing import Any

from suite.claims.judge import Verdict
from suite.papers.evidence import committed, folders
from suite.papers.register import RegisterError, append, standings, today, unregistered
from suite.papers.registry import PAPERS, homes, paper, papers_of
from suite.papers.selection import SelectorError
from suite.papers.verdicts import verdicts
from suite.runs.archive import Layered
from suite.runs.environment import ROOT

NOT_RUN = "not run"
ROUNDING = 1e-9  # relative difference up to which two intervals are the same


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


def replay(revision: str, selectors: Iterable[str], home: Path) -> dict[str, dict[str, Any]]:
    """What the code of a revision makes of the runs stored today, by claim of the papers at ``home``.

    The revision's files, of the repository that holds the home, are laid out in a temporary folder with today's
    evidence beside them, and ``check`` is run there: the revision's own where it has one, as this project has, or
    today's. Raises ReplayError with what it said.
    """
    top = repository(home)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        laid = subprocess.run(["git", "-C", str(top), "archive", "--end-of-options", revision], capture_output=True)
        if laid.returncode:
            raise ReplayError(f"git does not know the revision {revision!r}: {laid.stderr.decode().strip()}")
        subprocess.run(["tar", "x", "-C", str(tree)], input=laid.stdout, check=True)
        for shipped in (each.resolve() for each in folders() if each.exists()):
            if shipped.is_relative_to(top):
                target = tree / shipped.relative_to(top)
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(shipped, target)
        command = [sys.executable, "-m", "suite", "check", *selectors, "--json"]
        places = dict.fromkeys([tree / home.resolve().parent.relative_to(top), tree, ROOT])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        try:
            return {row["id"]: read_row(row) for row in json.loads(done.stdout)}
        except ValueError as error:
            said = done.stderr.strip()[-500:]
            raise ReplayError(f"the code of {revision} could not judge the stored runs: {said}") from error


def repository(home: Path) -> Path:
    """The git checkout that a home lies in. Raises ReplayError where there is none."""
    ask = ["git", "-C", str(home), "rev-parse", "--show-toplevel"]
    found = subprocess.run(ask, capture_output=True, text=True)
    if found.returncode:
        raise ReplayError(
            f"the rules before cannot be replayed: {home} lies in no git checkout ({found.stderr.strip()}); "
            "commit the package and install it from there with `pip install -e`"
        )
    return Path(found.stdout.strip()).resolve()


def change_of(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    """How a claim changed: ``old`` is what the rule of before says of the stored runs, ``new`` what today's says."""
    if new is None:
        return "withdrawn"
    if old is None:
        return "registered" if new["verdict"] == NOT_RUN else "late"
    if old["verdict"] == NOT_RUN:
        return "registered" if new["verdict"] == NOT_RUN else "late"
    return "reworded" if same(old, new) else "amended"


def same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two rules made the same of the same runs, but for the last digits that another order of sums leaves."""
    if old.keys() != new.keys() or old["verdict"] != new["verdict"]:
        return False
    pairs = [(a, b) for name in old.keys() - {"verdict"} for a, b in zip_longest(old[name], new[name])]
    return all(a == b or (_number(a) and _number(b) and math.isclose(a, b, rel_tol=ROUNDING)) for a, b in pairs)


def _number(value: Any) -> bool:
    return isinstance(value, int | float)


def register(
    because: str, revision: str = "HEAD", reasons: Mapping[str, str] | None = None, papers: Iterable[str] = ()
) -> list[str]:
    """Append what has changed since the registers were written; returns a sentence per home.

    ``reasons`` are of single claims, by their id or a glob of ids: the first that fits stands beside the claim.
    ``papers`` given, only the registers of their homes are written, whole.

    Raises ReplayError when the code of ``revision``, which must be that of the registers, cannot be replayed,
    SelectorError for an unknown paper, and RegisterError without a reason.
    """
    if not because.strip():
        raise RegisterError("--because is empty; say why rules, measures or runs changed: no entry is taken back")
    wanted = set(papers)
    if unknown := wanted - set(PAPERS):
        raise SelectorError(f"nothing is called {min(unknown)!r}; the papers are {', '.join(PAPERS)}")
    said = []
    for home in homes():
        names = papers_of(home)
        if wanted and not wanted & set(names):
            continue
        changed = unregistered(names)
        if not changed:
            said.append(f"{home.name}: the register is up to date")
            continue
        prints = {claim: row for name in names for claim, row in today(paper(name)).items()}
        known = standings(home)
        touched = sorted({claim.partition("/")[0] for claim in changed})
        old = replay(revision, touched, home) if any(claim in known for claim in changed) else {}
        source = Layered(committed())
        new = {v.claim.id: read(v) for name in touched for v in verdicts(paper(name), source)}
        rows: dict[str, dict[str, Any]] = {}
        for claim in changed:
            before = old.get(claim) if claim in known else None
            change = change_of(before, new.get(claim) if claim in prints else None)
            rows[claim] = {**prints.get(claim, {}), "change": change}
            if reason := next((text for name, text in (reasons or {}).items() if fnmatchcase(claim, name)), ""):
                rows[claim]["because"] = reason
            if before and change in ("amended", "late"):
                rows[claim]["earlier"] = before
        date = datetime.now(UTC).isoformat(timespec="seconds")
        path = append(home, date, because, rows)
        counts = Counter(row["change"] for row in rows.values())
        said.append(f"{path}: " + ", ".join(f"{n} {change}" for change, n in counts.most_common()))
    return said
