"""Table 4: error and minutes per epoch of four configurations on ImageNet; section 4.2's set-up of ImageNet."""

from __future__ import annotations

from functools import partial
from typing import Any

from paper_figures.rudra import plans, times
from paper_figures.rudra.drawing import dots, from_the_others, logarithmic
from paper_figures.rudra.settings import IMAGENET_BYTES
from paper_figures.rudra.times import FITTED, HELD_OUT
from suite.models.table import counts
from suite.papers.figure import Artifact, Figure, Frame, Groups, pd, printed_value


def runs(profile: str) -> Groups:
    groups = {**times.imagenet(), "adv": (plans.imagenet_messages("adv", 1, 4, 54),)}
    return {**groups, **plans.left_out_group(profile, plans.imagenet_left_out())}


PANEL = Artifact(
    "rudra/table4",
    "Error and time of four configurations on ImageNet",
    runs,
    alt="Printed and predicted minutes per epoch of six ImageNet configurations; calibration rows are crosses.",
    size=(7.0, 3.2),
)
CITED = "the network of Krizhevsky et al. (2012), which the text cites"


def printed_minutes(name: str) -> float:
    """Printed minutes per epoch; the baseline's are printed in hours."""
    return printed_value(f"rudra/table4/{name}") * (60 if name == "baseline-hours" else 1)


def predicted(row: plans.ImageNetRow, unit: float, frame: Frame) -> float:
    """Predicted time per epoch of a row, in units of so many minutes."""
    return times.predicted(frame)[row] / unit


for name, row in plans.TABLE4.items():
    fitted, unit = name in plans.CALIBRATED4, 60 if name == "baseline-hours" else 1
    add = PANEL.quantity(name, times.TIMES, note="calibration row" if fitted else "held out", shown=fitted)
    add(partial(predicted, row, unit))
    if fitted:
        PANEL.quantities[f"{name.removesuffix('-time')}-left-out"] = times.left_out_of(row)


@PANEL.quantity("imagenet-model-parameters", note=CITED)
def parameters(frame: Frame) -> float:
    return counts("caffe_alexnet").parameters


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Minutes per epoch. Columns: row, source (of those of ``drawing``), value, low, high."""
    minutes, others = times.predicted(frame), times.left_out(frame)
    found: list[dict[str, Any]] = []
    for name, row in plans.TABLE4.items():
        system, n, mu, learners = row
        about = {"row": f"Rudra-{system} ({n}, {mu}, {learners})"}
        found.append(about | {"source": "printed", "value": printed_minutes(name)})
        found.append(about | {"source": FITTED if name in plans.CALIBRATED4 else HELD_OUT, "value": minutes[row]})
        if row in others:
            found.append(about | from_the_others(others[row]))
    return pd.DataFrame(found)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Times alone: no error of ImageNet is trained here. Beside each row its printed gain over the baseline."""
    rows = table(frame)
    axes = figure.subplots()
    names = list(dict.fromkeys(rows["row"]))
    dots(axes, rows, names)
    logarithmic(axes)
    for at, name in enumerate(plans.TABLE4):
        if name.endswith("softsync-time") or name == "base-hardsync-time":
            gain = printed_minutes("baseline-hours") / printed_minutes(name)
            axes.annotate(f"by print {gain:.2f} x as fast", (printed_minutes(name), at), (12, -3),
                          textcoords="offset points", size=8)  # fmt: skip
    size = f"{IMAGENET_BYTES / 1e6:.0f} MB, that is {IMAGENET_BYTES / 4e6:.2f} million floats"
    axes.set(xlabel="minutes per epoch", ylabel="(n, mu, lambda)", title=f"a model of {size}")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
