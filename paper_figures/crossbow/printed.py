"""The numbers that the paper prints, for measures that do arithmetic on them."""

from __future__ import annotations

from suite.papers.verdicts import published


def printed(name: str) -> tuple[float, ...]:
    """The printed values of claim ``crossbow/<name>``. Raises KeyError for an unknown claim."""
    for claim in published("crossbow"):
        if claim.id == f"crossbow/{name}":
            return claim.printed
    raise KeyError(f"crossbow/{name} is not among the published claims")


def value(name: str) -> float:
    """The only printed value of a claim."""
    (number,) = printed(name)
    return number
