"""Table 4: error and minutes per epoch of four configurations on ImageNet; section 4.2's set-up of ImageNet."""

from __future__ import annotations

from functools import partial
from typing import Any

from paper_figures.rudra import plans, stand_in, times
from paper_figures.rudra.drawing import dots, logarithmic
from paper_figures.rudra.settings import IMAGENET_BYTES
from suite.models.table import counts
from suite.papers.figure import FIRST, Artifact, Figure, Frame, Groups, Quantity, pd, printed_value
from suite.report.style import PALETTE


def runs(profile: str) -> Groups:
    groups = {**times.imagenet(), "adv": (plans.imagenet_messages("adv"),)}
    return {**groups, **plans.imagenet_left_out(profile), **stand_in.groups(profile)}


PANEL = Artifact("rudra/table4", "Error and time of four configurations on ImageNet", runs, size=(10.4, 3.6))
PANEL.quantities["error-order"] = Quantity(stand_in.order, stand_in.SYSTEMS, FIRST, note=stand_in.note)
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


def named(row: plans.ImageNetRow) -> str:
    """A row as the drawing has it."""
    return "Rudra-{} ({}, {}, {})".format(*row)


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Minutes per epoch, and the errors in % with which a stand-in's rows end.

    Columns: row, quantity ("time" or "error"), source (of those of ``drawing``, or the stand-in), seed, value, low,
    high.
    """
    found: list[dict[str, Any]] = []
    for name, row in plans.TABLE4.items():
        about = {"row": named(row), "quantity": "time"}
        minutes = times.told(frame, row, printed_minutes(name), name in plans.CALIBRATED4)
        found += [about | value for value in minutes]
    for name in stand_in.SYSTEMS:
        about = {"row": named(plans.TABLE4[f"{name}-time"]), "quantity": "error"}
        found.append(about | {"source": "printed", "value": printed_value(f"rudra/table4/{name}-top1")})
        for run in frame.results(name):
            ended = {"source": stand_in.NAME, "seed": run["seed"], "value": 100 * run["test_error"]}
            found.append(about | ended)
    return pd.DataFrame(found)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Printed and predicted minutes per epoch of six ImageNet configurations; calibration rows are crosses. Beside
    them the errors of a stand-in on CIFAR-100, with the printed ones of ImageNet.
    """
    rows = table(frame)
    ended = rows[rows["source"] == stand_in.NAME]
    left, *others = figure.subplots(1, 2 if stand_in.drawn(frame) else 1, sharey=True, squeeze=False)[0]
    seen = rows[rows["quantity"] == "time"]
    dots(left, seen, list(dict.fromkeys(seen["row"])))
    logarithmic(left)
    for at, name in enumerate(plans.TABLE4):
        if name.endswith("softsync-time") or name == "base-hardsync-time":
            gain = printed_minutes("baseline-hours") / printed_minutes(name)
            left.annotate(f"by print {gain:.2f} x as fast", (printed_minutes(name), at), (4, 6),
                          textcoords="offset points", size=8)  # fmt: skip
    size = f"{IMAGENET_BYTES / 1e6:.0f} MB, that is {IMAGENET_BYTES / 4e6:.2f} million floats"
    left.set(xlabel="minutes per epoch", ylabel="(n, mu, lambda)", title=f"a model of {size}")
    for axes in others:
        for at, name in enumerate(stand_in.SYSTEMS):
            part = ended[ended["row"] == named(plans.TABLE4[f"{name}-time"])]["value"]
            axes.scatter(part, [at] * len(part), color=PALETTE[2], marker="s", s=20, zorder=3)
            print_ = f"printed for ImageNet: {printed_value(f'rudra/table4/{name}-top1'):.2f}%"
            axes.annotate(print_, (ended["value"].min(), at), (0, 7), textcoords="offset points", size=8)
        axes.set(xlabel="top-1 error at the end (%), a mark a seed", title=f"stand-in: {stand_in.NAME}")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=4)
