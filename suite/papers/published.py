"""The published claims of a paper, and the numbers that it prints, for measures and drawings."""

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


@cache
def _by_id(paper: str) -> dict[str, tuple[float, ...]]:
    return {claim.id: claim.printed for claim in entries(paper)}


def printed(claim: str) -> tuple[float, ...]:
    """The printed values of a claim named in full, such as ``isgd/fig5a/gain``. Raises KeyError for another name."""
    return _by_id(claim.partition("/")[0])[claim]


def printed_value(claim: str) -> float:
    """The only printed value of a claim. Raises ValueError when it has none or several."""
    (number,) = printed(claim)
    return number
