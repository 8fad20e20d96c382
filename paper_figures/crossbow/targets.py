"""The accuracy at which runs are compared: printed at the paper's scale, below it the top of a ladder they all reach.

Stand-ins end at accuracies of their own, so the printed 80 and 88% mean nothing to them. Runs are compared at the
highest rung of ``LADDER`` that every run of the comparison reaches, by the paper's metric (median of the last five
epochs). The rule asks how far all got and not who got there first, so it favours none of them.

It replaces targets set by hand and moved "where they separate the methods", once pilots had been seen: from 90 to
97% for the digits, and from 90 to 85% for LeNet, of which 16 learners passed 85% at epoch 8 of a pilot. The ladder
was written down before ResNet-32's runs and most of LeNet's existed; LeNet's numbers of epochs are still those cut to
the pilot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow.settings import TARGET
from suite.model_averaging.time_to_accuracy import epochs_to_accuracy

if TYPE_CHECKING:
    from suite.papers.artifact import Evidence

LADDER = (*(share / 100 for share in range(30, 100, 5)), 0.97, 0.98, 0.99)  # share correct


def rungs(curves: list[list[float]]) -> list[float]:
    """The rungs that every curve of test accuracies reaches, lowest first."""
    return [rung for rung in LADDER if all(epochs_to_accuracy(row, rung) is not None for row in curves)]


def common_target(evidence: Evidence, *names: str, printed: float = TARGET) -> float:
    """The accuracy (share) at which the runs of these groups are compared.

    Where they have no rung in common it is the lowest, which some of them then never reach. Raises Missing where a
    run is not stored.
    """
    from paper_figures.crossbow.readings import accuracies

    if evidence.profile == "paper":
        return printed
    reached = rungs([accuracies(run) for name in names for run in evidence.runs(name)])
    return reached[-1] if reached else LADDER[0]
