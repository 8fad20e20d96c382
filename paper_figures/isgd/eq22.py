"""Eq. 22: loss, time and system constants combined.

The paper puts the updates that fit in t seconds (Eq. 20) into the loss after T updates (Eq. 21, its constants
dropped), and reads off that in a fixed time a larger batch makes fewer updates.
"""

from __future__ import annotations

import math

from paper_figures.isgd.batch_size_model import loss_after, updates_within
from paper_figures.isgd.readings import extremes
from paper_figures.isgd.settings import SYSTEMS
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities


def measure(_: Evidence) -> Quantities:
    """Eq. 22 with psi from Eq. 21 and T from Eq. 20 put in: the largest relative gap between its two sides."""
    gaps, steps = [], []
    for c1, c2 in (*SYSTEMS, (37.0, 0.011)):
        for batch in (1, 16, 500, 3000):
            for seconds in (0.5, 10.0, 86_400.0):
                psi = loss_after(updates_within(seconds, batch, c1, c2), batch)
                right = math.sqrt((batch + c1 * c2) / (batch * c1)) * math.sqrt(seconds) + batch / c1 + c2
                gaps.append(abs(psi * seconds - right) / right)
                more = updates_within(seconds, batch, c1, c2) / updates_within(seconds, 2 * batch, c1, c2)
                steps.append(more - 1)
    yield "follows", exact(max(gaps), note=f"largest of {len(gaps)} points, relative to the right side")
    yield "fewer-updates", extremes(steps)


ARTIFACTS = (Artifact("isgd/eq22", "Loss, time and system constants combined", measures=(measure,)),)
