"""The command ``register``: append the rules, grids and moved numbers of today that the register does not hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from suite.papers.catalogue import PAPERS, SelectorError, homes, paper, papers_of
from suite.papers.evidence import committed
from suite.papers.register import RegisterError, append, changes, read
from suite.report import readme, snapshot
from suite.runs.archive import Layered


def register(because: str, papers: Iterable[str] = ()) -> list[str]:
    """Append what has changed since the registers were written.

    Args:
        because: why rules or grids changed.
        papers: whose; none means all.

    Returns:
        A sentence for each home.

    Raises:
        SelectorError: for an unknown paper.
        RegisterError: without a reason.
    """
    if not because.strip():
        raise RegisterError("--because is empty; say why rules or runs changed: no line is taken back")
    wanted = set(papers)
    if unknown := wanted - set(PAPERS):
        raise SelectorError(f"nothing is called {min(unknown)!r}; the papers are {', '.join(PAPERS)}")
    date = datetime.now(UTC).isoformat(timespec="seconds")
    said = []
    for home in homes():
        names = [name for name in papers_of(home) if not wanted or name in wanted]
        lines = [line for name in names for line in changes(paper(name), date, because)]
        lines += moves(home, names, date, because)
        if lines:
            rules, numbers = (sum(kind in line for line in lines) for kind in ("rule", "moved"))
            told = f"{rules} rules, {len(lines) - rules - numbers} grids" + (
                f", {numbers} numbers" if numbers else ""
            )
            said.append(f"{append(home, lines)}: {told}")
        elif names:
            said.append(f"{home.name}: the register is up to date")
    return said


def moves(home: Path, names: Sequence[str], date: str, because: str) -> list[dict[str, Any]]:
    """A line for each committed number that moved while its runs did not, with the number of before."""
    path = home / snapshot.FILE
    if not path.exists() or not names:
        return []
    before = snapshot.read(path.read_text(encoding="utf-8"))
    now = snapshot.rows(readme.judged_of(names, Layered(committed())))
    numbers = {claim: snapshot.number_of(old) for claim, old in snapshot.moved(before, now).items()}
    held = read(home).moved
    return [
        {"claim": claim, "date": date, "because": because, "moved": number}
        for claim, number in numbers.items()
        if number not in [line["moved"] for line in held.get(claim, [])]
    ]
