"""The published claims of a paper."""

from __future__ import annotations

from functools import cache

from suite.claims.judge import Claim, load
from suite.papers.registry import PAPERS


@cache
def published(paper: str) -> tuple[Claim, ...]:
    """All claims of a paper, in its order."""
    path = PAPERS[paper].home / "published" / f"{paper}.toml"
    return tuple(load(path)) if path.exists() else ()
