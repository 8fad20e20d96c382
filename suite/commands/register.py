"""The command ``register``: append the rules and grids of today that the register does not hold."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from suite.papers.register import RegisterError, append, changes
from suite.papers.registry import PAPERS, homes, paper, papers_of
from suite.papers.selection import SelectorError


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
        if lines:
            rules = sum("claim" in line for line in lines)
            said.append(f"{append(home, lines)}: {rules} rules, {len(lines) - rules} grids")
        elif names:
            said.append(f"{home.name}: the register is up to date")
    return said
