"""The published claims of a paper."""

from __future__ import annotations

from functools import cache

from suite.claims.judge import BOARD, Claim, load
from suite.papers.registry import PAPERS


@cache
def entries(paper: str) -> tuple[Claim, ...]:
    """All entries of a paper, in its order: claims, questions of ours, tests and contradictions."""
    path = PAPERS[paper].home / "published" / f"{paper}.toml"
    return tuple(load(path)) if path.exists() else ()


def published(paper: str) -> tuple[Claim, ...]:
    """The entries that stand on the board, in the paper's order."""
    return tuple(entry for entry in entries(paper) if entry.kind in BOARD)
