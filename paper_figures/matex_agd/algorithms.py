"""Section 4.2: what layer-wise exchange costs, by sums timed alternately between two processes.

Statements on the algorithms that cannot be false of our own are held by tests.
"""

from __future__ import annotations

import math

from suite.claims.intervals import Interval, mean_interval
from suite.papers.figure import Artifact, Frame, RunSpec

WORKERS = RunSpec("matex_agd/workers")
LAYER_WISE = Artifact(
    "matex_agd/alg-layerwise",
    "Layer-wise averaging on copies, overlapped with backward",
    lambda profile: {"workers": (WORKERS,)},
)
AGD = Artifact("matex_agd/alg-agd", "Gradients applied one, two or three iterations late")

for name, key in (("bias-first", "weights over bias"), ("fixed-cost", "many small over one large")):

    @LAYER_WISE.quantity(name, ["workers"], note=f"log of {key}, two gloo processes")
    def lead(frame: Frame, key: str = key) -> Interval:
        """Log of the ratio of seconds of two ways of summing, timed alternately."""
        return mean_interval([math.log(ratio) for ratio in frame.one("workers")[key]])
