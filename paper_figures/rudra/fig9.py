"""Fig. 9: ImageNet's error against time: adv* is faster than adv, adv than base, and softsync than hardsync.

The errors need ImageNet; shown are minutes per epoch, predicted by the calibrated cost model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import imagenet_times_group
from paper_figures.rudra.readings import minutes_by_row, simulated
from paper_figures.rudra.simulations import TABLE4
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return imagenet_times_group()


def measure_times(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    minutes = minutes_by_row(run)
    at_54 = [minutes[system, 1, 8, 54] for system in ("adv*", "adv", "base")]
    steps = [at_54[1] - at_54[0], at_54[2] - at_54[1], minutes["base", 0, 16, 18] - minutes["base", 1, 16, 18]]
    yield "speed-order", simulated(steps, run)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Predicted time per epoch of the four configurations beside the printed one."""
    minutes = minutes_by_row(evidence.run("times"))
    names = [name for name in TABLE4 if name.endswith("sync-time")]
    axes = figure.subplots()
    for at, name in enumerate(names):
        theirs = printed_value(f"rudra/table4/{name}")
        axes.barh(at - 0.2, theirs, 0.4, color="0.7", label="paper" if at == 0 else None)
        axes.barh(at + 0.2, minutes[TABLE4[name]], 0.4, color="C0", label="model" if at == 0 else None)
    axes.set_yticks(range(len(names)), [name.removesuffix("-time").replace("-star", "*") for name in names])
    axes.set(xlabel="minutes per epoch")
    axes.legend()


ARTIFACTS = (
    Artifact(
        "rudra/fig9",
        "ImageNet error against time",
        runs,
        (measure_times,),
        draw,
        alt="Printed and predicted minutes per epoch of the four ImageNet configurations.",
    ),
)
