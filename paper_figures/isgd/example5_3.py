"""The worked example of section 5.3: fewer iterations at double batch can still cost more time."""

from __future__ import annotations

from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities


def measure(_: Evidence) -> Quantities:
    """20 iterations of 1 s, and 18 of 2 s at twice the batch size."""
    yield "batch100", exact(20 * 1.0)
    yield "batch200", exact(18 * (1.0 * 200 / 100), note="seconds in proportion to the batch size")


ARTIFACTS = (
    Artifact(
        "isgd/example5_3",
        "Worked example: fewer iterations at double batch can still cost more time",
        measures=(measure,),
    ),
)
