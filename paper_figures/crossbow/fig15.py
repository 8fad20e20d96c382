"""Fig. 15: synchronous model averaging with momentum against elastic averaging, on one GPU and on 8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import (
    less_time,
    paired,
    require,
)
from paper_figures.crossbow.tables import ON_RESNET32, arrival_table
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed_value
from suite.report.style import GRID, PALETTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def runs(profile: str) -> settings.Groups:
    """Few and many learners; at ``reduced`` the few with ResNet-32 itself too."""
    found = settings.groups(profile, "sma 4", "ea-sgd 4", "sma 16", "ea-sgd 16")
    if profile == "reduced":
        part = settings.resnet32_part("sma 4", "ea-sgd 4")
        found |= {f"{ON_RESNET32}{name}": runs for name, runs in part.items()}
    return found


def measure_learners(_: Evidence) -> Quantities:
    yield "learners-16", exact(8 * 2)


def measure_epochs(evidence: Evidence) -> Quantities:
    """In epochs: both methods take the same time per iteration."""
    printed = settings.FINAL_TARGET
    one_device = ("sma 4", "ea-sgd 4")
    on_resnet32 = [ON_RESNET32 + name for name in one_device]
    a, b = on_resnet32 if on_resnet32[0] in evidence.groups else one_device
    yield "1gpu", paired(evidence, a, b, less_time, "in epochs", printed=printed)
    require("sma 16" in evidence.groups, f"16 replicas at {evidence.profile}")
    yield "8gpu", paired(evidence, "sma 16", "ea-sgd 16", less_time, "in epochs", printed=printed)


def frame(evidence: Evidence) -> pd.DataFrame:
    """Arrivals of both methods with as many learners, ``pair`` naming network and learners."""
    table = arrival_table(evidence, settings.FINAL_TARGET)
    network = table["stand_in"].str.partition(" on ")[0].replace("", "ResNet-32")
    target = table["target"].map("{:g}%".format)
    return table.assign(pair=network + ", k = " + table["learners"].astype(str) + ",\nto " + target)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Epochs of both methods side by side, and what SMA takes of EA-SGD's beside the printed shares."""
    left, right = figure.subplots(1, 2, width_ratios=(5, 3))
    table = frame(evidence)
    pairs = plots.bars(table, left, "epochs", category="pair", dodge="method")
    left.set_ylabel("epochs to the target")
    plots.legend_above(left, 2)
    means = table.pivot_table(index="pair", columns="method", values="epochs", sort=False).loc[pairs]
    share = means["SMA"] / means["EA-SGD"]
    right.plot(range(len(pairs)), share, "o", color=PALETTE[0], linestyle="none", label="ours, of those that arrive")
    places, printed = [], []  # beside the first pair with as many learners as each printed share is of
    for learners, claim in ((4, "1gpu"), (16, "8gpu")):
        if alike := [i for i, pair in enumerate(pairs) if f"k = {learners}," in pair]:
            places.append(alike[0])
            printed.append(1 - printed_value(f"crossbow/fig15/{claim}") / 100)
    plots.printed_marks(right, places, printed, "printed: 1 and 8 GPUs, to 88%")
    right.axhline(1, color=GRID, linewidth=0.8, linestyle="-")
    right.set_xticks(range(len(pairs)), [pair.replace(", ", "\n") for pair in pairs])
    right.set(ylim=(0, 1.6), xlim=(-0.6, len(pairs) - 0.4), ylabel="SMA's time / EA-SGD's")
    plots.legend_above(right, 1)
    places_said = " and ".join(dict.fromkeys(place for place in table["stand_in"] if place))
    if places_said:
        figure.suptitle(f"Stand-ins for ResNet-32: {places_said}", fontsize="small", x=0.01, ha="left")


ARTIFACTS = (
    Artifact(
        "crossbow/fig15",
        "Averaging with momentum against elastic averaging",
        runs,
        (measure_learners, measure_epochs),
        draw,
        plots.ALT_BARS,
        (8.8, 4.4),
        frame,
    ),
)
