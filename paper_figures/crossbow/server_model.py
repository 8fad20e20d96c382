"""The paper's server with 8 GPUs as a cost model, calibrated on printed throughputs (Figs. 13, 14b, 17)."""

from __future__ import annotations

import math

from paper_figures.crossbow import settings
from suite.clock import Link
from suite.model_averaging.time_to_accuracy import MultiGpuServer
from suite.papers.catalogue import printed_value

GPUS = 8
RESNET32_BYTES = 4 * 469_114  # of its parameters
CALIBRATION = "cost model: a and b of a + b m from Fig. 12a, synchronisation from Fig. 17's m = 1 and m = 4"


def calibrated() -> MultiGpuServer:
    """The paper's server, of printed throughputs alone.

    It is a :class:`suite.model_averaging.time_to_accuracy.MultiGpuServer`.

    One GPU: m learners take a + b m, with a + b = 1 and 4 / (a + 4 b) = 1.4 (Fig. 12a), in units of the iteration
    without synchronisation of Fig. 17 (512 images at 18,500 images/s). Synchronisation: what remains at m = 1 and,
    from the 27% at m = 4, its growth with m.
    """
    images = GPUS * settings.CROSSBOW_BATCH
    alone = images / printed_value("crossbow/fig17/nosync")
    per_learner = (4 / printed_value("crossbow/fig12a/throughput") - 1) / 3
    task = {m: alone * (1 - per_learner + per_learner * m) for m in (1, 2, 4)}
    at_one = images / printed_value("crossbow/fig17/tau1") - alone
    at_four = task[4] * printed_value("crossbow/fig17/gain-m4") / 100
    growth = max(0.0, (at_four - at_one) / 3)
    fixed = max(0.0, at_one - growth)
    carried = 2 * (GPUS - 1) / GPUS * RESNET32_BYTES  # by each link of the ring
    return MultiGpuServer(task, RESNET32_BYTES, Link(0.0, carried / fixed if fixed else math.inf), growth)


def throughput(learners: int, tau: int | None = 1) -> float:
    """Images/s on 8 GPUs with so many learners on each, synchronised every ``tau`` iterations (None: never)."""
    return calibrated().throughput(settings.CROSSBOW_BATCH, GPUS, learners, tau)
