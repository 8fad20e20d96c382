"""The words that a figure's file is written in: what it declares, reads and compares with, and what draws it.

An artifact with its quantities is declared over runs, read from a frame of those that are stored, and compared with
what the paper prints. Whoever writes one finds all of this here, the statistics of its values in
:mod:`suite.claims.intervals`, and how figures look in :mod:`suite.report.style`. Libraries load when they are first
used, so that ``list`` and ``plan`` start fast.
"""

from suite.lazy import Axes, Figure, np, pd, scipy, sns
from suite.papers.artifact import ALL, FIRST, STORED, Artifact, Frame, Groups, Missing, Quantity
from suite.papers.catalogue import printed, printed_value
from suite.runs.run import Run
from suite.spec import RunSpec

__all__ = [
    "ALL", "FIRST", "STORED", "Artifact", "Axes", "Figure", "Frame", "Groups", "Missing", "Quantity", "Run",
    "RunSpec", "np", "pd", "printed", "printed_value", "scipy", "sns",
]  # fmt: skip
