"""Table 3: the five best configurations, beside one learner's error and time; section 4.2's set-up of CIFAR-10.

Three of its rows stand in Table 2 as well, where their claims are.
"""

from __future__ import annotations

from functools import partial

from paper_figures.rudra import errors, plans, times
from paper_figures.rudra.drawing import cifar_rows, draw_cifar
from paper_figures.rudra.settings import at_profile
from suite.papers.figure import Artifact, Figure, Frame, Groups


def runs(profile: str) -> Groups:
    longer = {"without drops": at_profile(plans.BASELINE, profile, drops=False)} if profile == "paper" else {}
    return {**times.cifar_table(profile, [*plans.TABLE3, plans.BASELINE]), **longer}


PANEL = Artifact("rudra/table3", "The five best configurations", runs, size=(9.0, 3.2), beside=errors.own_seeds)

PANEL.quantities["baseline-error"] = errors.mean(plans.BASELINE)
PANEL.quantities["cifar10-model-schedule-essential"] = errors.steps(plans.BASELINE, "without drops")
PANEL.quantities["baseline-left-out"] = times.left_out_of(plans.BASELINE)
for at, row in enumerate(plans.TABLE3, 1):
    if row[0] == 0:
        PANEL.quantities[f"r{at:02d}-test-error"] = errors.mean(row)
        PANEL.quantities[f"r{at:02d}-training-time"] = times.time_of(row)


table = PANEL.table(partial(cifar_rows, [*plans.TABLE3, plans.BASELINE]))


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Printed test errors and times of five configurations and the baseline beside ours with 95% intervals."""
    draw_cifar(table(frame), figure)
    right = figure.axes[1]
    for at, row in enumerate(plans.TABLE3):
        gain = plans.printed_seconds(plans.BASELINE) / plans.printed_seconds(row)
        faster = f"by print {gain:.2f} x as fast"
        right.text(0.99, at, faster, size=8, ha="right", va="center", transform=right.get_yaxis_transform())
