"""The numbers that a paper prints, for measures and drawings that do arithmetic on them."""

from __future__ import annotations

from functools import cache

from suite.papers.published import entries


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
