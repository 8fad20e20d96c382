"""Fig. 9: ImageNet's error against time: adv* is faster than adv, adv than base, and softsync than hardsync.

The errors need ImageNet and are the paper's; the times beside its own are predicted by the calibrated cost model. A
stand-in is trained on other data, and its errors are drawn over the times that its epochs would take on ImageNet.
"""

from __future__ import annotations

from typing import Any

from paper_figures.rudra import stand_in, times
from paper_figures.rudra.plans import CALIBRATED4, TABLE4
from suite.papers.figure import FIRST, Artifact, Axes, Figure, Frame, Quantity, np, pd, printed_value
from suite.report.style import GRID, INK, LINES, PALETTE

EPOCHS = 30

PANEL = Artifact(
    "rudra/fig9",
    "ImageNet error against time",
    lambda profile: {**times.imagenet(), **stand_in.groups(profile)},
    size=(10.4, 4.0),
)

PANEL.quantities["first-to-48"] = Quantity(
    stand_in.first, (*stand_in.SYSTEMS, *times.TIMES), FIRST, note=stand_in.note
)


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Where the four curves end: hours of 30 epochs, printed and predicted, and the printed top-1 error in %.

    Columns: configuration, error, source ("printed", "predicted" or "calibration row"), hours.
    """
    minutes = times.predicted(frame)
    found = []
    for name in TABLE4:
        if name.endswith("sync-time"):
            claim = f"rudra/table4/{name}"
            error = printed_value(f"{claim.removesuffix('-time')}-top1")
            about = {"configuration": name.removesuffix("-time").replace("-star", "*"), "error": error}
            hours = minutes[TABLE4[name]] * EPOCHS / 60
            found.append(about | {"source": "printed", "hours": printed_value(claim) * EPOCHS / 60})
            found.append(about | {"source": times.source_of(name in CALIBRATED4), "hours": hours})
    return pd.DataFrame(found)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Printed top-1 errors of four ImageNet configurations at printed and predicted times of 30 epochs, and the
    errors of a stand-in on CIFAR-100 over predicted time.
    """
    rows = table(frame)
    axes, *others = figure.subplots(1, 2 if stand_in.drawn(frame) else 1, squeeze=False)[0]
    looks: dict[str, dict[str, Any]] = {
        "printed": {"marker": "o", "facecolors": "none", "edgecolors": INK, "s": 60},
        times.HELD_OUT: {"marker": "o", "color": PALETTE[0], "s": 26},
        times.FITTED: {"marker": "x", "color": GRID, "s": 36},
    }
    for source, look in looks.items():
        part = rows[rows["source"] == source]
        axes.scatter(part["hours"], part["error"], label=source, zorder=3, **look)
    for point in rows[rows["source"] == "printed"].itertuples():
        at = (point.hours, point.error)
        axes.annotate(point.configuration, at, (0, 8), textcoords="offset points", ha="center")
    baseline = printed_value("rudra/table4/baseline-top1")
    for value, text in ((48.0, "48%, which adv*-softsync reaches first"), (baseline, "(0, 256, 1)")):
        axes.axhline(value, color=GRID, linewidth=0.9, linestyle="--")
        axes.annotate(text, (0.01, value), (0, 3), xycoords=("axes fraction", "data"), textcoords="offset points")
    axes.set(xlabel="time of 30 epochs (h)", ylabel="top-1 validation error (%), printed", xlim=(40, 200))
    axes.set(ylim=(43, 49), title="ImageNet, not run: ends of the curves, errors as printed")
    axes.legend(title="time", loc="center right")
    for beside in others:
        draw_stand_in(beside, frame)


def draw_stand_in(axes: Axes, frame: Frame) -> None:
    """Curves of the four rows' seeds, over the hours that their epochs would take on ImageNet."""
    for (name, curves), colour, line in zip(stand_in.curves(frame).items(), PALETTE, LINES, strict=False):
        for seed, curve in enumerate(curves):
            minutes, errors = np.array(curve).T
            label = "" if seed else name.replace("-star", "*")
            axes.plot(minutes / 60, 100 * errors, color=colour, linestyle=line, label=label)
    axes.set(xlabel=f"modelled time of {stand_in.EPOCHS} epochs of ImageNet (h)", ylabel="top-1 test error (%)")
    axes.set_title(f"modelled time, stand-in's errors: {stand_in.NAME}")
    axes.legend(title="a line a seed")
