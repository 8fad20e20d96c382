"""Time to accuracy, and its two factors: epochs to accuracy and seconds per epoch.

Koliousis et al., "Crossbow", PVLDB 12(11), 2019, section 5.1: TTA(x) is the time taken for the median test
accuracy of the last 5 epochs to be equal to or above x. The first factor belongs to the algorithm and is the same
on every machine; the second is measured on the machine at hand, or comes from :class:`Server`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from suite.claims.intervals import at_least
from suite.clock import Link
from suite.cost_models.overlap import AllReduce

WINDOW = 5  # epochs


def epochs_to_accuracy(accuracies: Sequence[float], target: float) -> int | None:
    """Epochs until the median of the last ``WINDOW`` test accuracies is at least ``target``; None if never.

    ``accuracies[i]`` belongs to the end of epoch i + 1 (the untrained model is not among them), in the unit of
    ``target``; as many images as the target asks for are enough. There is no median before ``WINDOW`` epochs, so no
    answer below it. A NaN (diverged) never counts as reached.
    """
    for epoch in range(WINDOW, len(accuracies) + 1):
        last = accuracies[epoch - WINDOW : epoch]
        if all(value == value for value in last) and at_least(median(last), target):
            return epoch
    return None


@dataclass(frozen=True)
class MultiGpuServer:
    """Cost model of a server with g equal GPUs and m learners on each (section 5.6's tau: iterations).

    ``task_seconds[m]`` is one iteration of m learners on one GPU without synchronisation; ``local_seconds`` is what
    the synchronisation inside a GPU takes for each learner; ``link`` joins the GPUs in a ring (section 4.2), which
    carries one model of ``model_bytes`` whatever m is.
    """

    task_seconds: Mapping[int, float]
    model_bytes: float
    link: Link
    local_seconds: float = 0.0

    def synchronisation(self, gpus: int, learners: int) -> float:
        """Seconds of one synchronisation of all g * m learners."""
        ring = AllReduce(self.link.latency, self.link.bandwidth, gpus)
        return self.local_seconds * learners + ring.seconds(self.model_bytes)

    def iteration(self, gpus: int, learners: int, tau: int | None = 1) -> float:
        """Seconds of one iteration (a batch for every learner); ``tau`` None never synchronises."""
        share = 0.0 if tau is None else self.synchronisation(gpus, learners) / tau
        return self.task_seconds[learners] + share

    def throughput(self, batch: int, gpus: int, learners: int, tau: int | None = 1) -> float:
        """Examples per second with ``batch`` examples per learner and iteration."""
        return batch * gpus * learners / self.iteration(gpus, learners, tau)
