"""The numbers that the paper prints, for measures that do arithmetic on them."""

from __future__ import annotations

from suite.papers.verdicts import published


def printed(name: str) -> tuple[float, ...]:
    """The printed values of claim ``isgd/<name>``. Raises KeyError for an unknown claim."""
    for claim in published("isgd"):
        if claim.id == f"isgd/{name}":
            return claim.printed
    raise KeyError(f"isgd/{name} is not among the published claims")
