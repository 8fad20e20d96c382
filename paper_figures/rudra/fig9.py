"""Fig. 9: ImageNet's error against time: adv* is faster than adv, adv than base, and softsync than hardsync.

The errors need ImageNet and are the paper's; the times beside its own are predicted by the calibrated cost model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.rudra.groups import imagenet_times_group
from paper_figures.rudra.readings import minutes_by_row, simulated
from paper_figures.rudra.rows import FITTED, HELD_OUT
from paper_figures.rudra.simulations import CALIBRATED4, TABLE4
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return imagenet_times_group()


def measure_times(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    minutes = minutes_by_row(run)
    at_54 = [minutes[system, 1, 8, 54] for system in ("adv*", "adv", "base")]
    steps = [at_54[1] - at_54[0], at_54[2] - at_54[1], minutes["base", 0, 16, 18] - minutes["base", 1, 16, 18]]
    yield "speed-order", simulated(steps, run)


EPOCHS = 30


def frame(evidence: Evidence) -> pd.DataFrame:
    """Where the four curves end: hours of 30 epochs, printed and predicted, and the printed top-1 error in %.

    Columns: configuration, source ("printed", "predicted" or "calibrated on"), hours, error.
    """
    import pandas as pd

    minutes = minutes_by_row(evidence.run("times"))
    found = []
    for name in TABLE4:
        if name.endswith("sync-time"):
            claim = f"rudra/table4/{name}"
            error = printed_value(f"{claim.removesuffix('-time')}-top1")
            base = {"configuration": name.removesuffix("-time").replace("-star", "*"), "error": error}
            fitted = FITTED if name in CALIBRATED4 else HELD_OUT
            found.append(base | {"source": "printed", "hours": printed_value(claim) * EPOCHS / 60})
            found.append(base | {"source": fitted, "hours": minutes[TABLE4[name]] * EPOCHS / 60})
    return pd.DataFrame(found)


def draw(evidence: Evidence, figure: Figure) -> None:
    """The ends of the paper's four curves: open circles as printed, marks beside them at the predicted time."""
    from suite.report.style import GRID, INK, PALETTE

    table = frame(evidence)
    axes = figure.subplots()
    looks: dict[str, dict[str, Any]] = {
        "printed": {"marker": "o", "facecolors": "none", "edgecolors": INK, "s": 60},
        HELD_OUT: {"marker": "o", "color": PALETTE[0], "s": 26},
        FITTED: {"marker": "x", "color": GRID, "s": 36},
    }
    for source, look in looks.items():
        part = table[table["source"] == source]
        axes.scatter(part["hours"], part["error"], label=f"time {source}", zorder=3, **look)
    for name, error, hours in table[table["source"] == "printed"][["configuration", "error", "hours"]].to_numpy():
        axes.annotate(name, (hours, error), (0, 8), textcoords="offset points", ha="center")
    baseline = printed_value("rudra/table4/baseline-top1")
    for value, text in ((48.0, "48%, which adv*-softsync reaches first"), (baseline, "(0, 256, 1)")):
        axes.axhline(value, color=GRID, linewidth=0.9, linestyle="--")
        axes.annotate(text, (0.01, value), (0, 3), xycoords=("axes fraction", "data"), textcoords="offset points")
    axes.set(
        xlabel="time of 30 epochs (h)", ylabel="top-1 validation error (%), printed", xlim=(40, 200), ylim=(43, 49)
    )
    axes.set_title("ImageNet is not trained here: ends of the curves, errors as printed")
    axes.legend(loc="center right")


ARTIFACTS = (
    Artifact(
        "rudra/fig9",
        "ImageNet error against time",
        runs,
        (measure_times,),
        draw,
        alt="Printed top-1 errors of four ImageNet configurations at printed and predicted times of 30 epochs.",
        frame=frame,
    ),
)
