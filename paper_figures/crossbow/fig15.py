"""Fig. 15: synchronous model averaging with momentum against elastic averaging, on one GPU and on 8."""

from __future__ import annotations

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import arrival_table, less_time, pair
from suite.papers.figure import Figure, Frame, Groups, pd, printed_value
from suite.report.style import GRID, PALETTE

FEW = {"few, sma": "sma 4", "few, ea-sgd": "ea-sgd 4"}


def runs(profile: str) -> Groups:
    """Few and many learners; at ``reduced`` the few with ResNet-32 itself, and with LeNet to be drawn."""
    found = settings.groups(profile, "sma 4", "ea-sgd 4", "sma 16", "ea-sgd 16")
    if profile == "reduced":
        return found | settings.called(settings.resnet32_part(*FEW.values()), FEW)
    few = settings.called(found, FEW)
    return few | {name: specs for name, specs in found.items() if specs not in few.values()}


PANEL = plots.bar_panel("fig15", "Averaging with momentum against elastic averaging", runs, (8.8, 4.4))

# in epochs: both methods take the same time per iteration
PANEL.quantities["1gpu"] = pair("few, sma", "few, ea-sgd", less_time, "in epochs", printed=settings.FINAL_TARGET)
PANEL.quantities["8gpu"] = pair("sma 16", "ea-sgd 16", less_time, "in epochs", printed=settings.FINAL_TARGET)


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Arrivals of both methods with as many learners, ``pair`` naming network and learners."""
    rows = arrival_table(frame, settings.FINAL_TARGET)
    network = rows["stand_in"].str.partition(" on ")[0].replace("", "ResNet-32")
    target = rows["target"].map("{:g}%".format)
    return rows.assign(pair=network + ", k = " + rows["learners"].astype(str) + ",\nto " + target)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Epochs of both methods side by side, and what SMA takes of EA-SGD's beside the printed shares."""
    left, right = figure.subplots(1, 2, width_ratios=(5, 3))
    rows = table(frame)
    pairs = plots.bars(rows, left, "epochs", category="pair", dodge="method")
    left.set_ylabel("epochs to the target")
    plots.legend_above(left, 2)
    means = rows.pivot_table(index="pair", columns="method", values="epochs", sort=False).loc[pairs]
    means = means.reindex(columns=["SMA", "EA-SGD"])  # of stored runs one may be lacking
    share = means["SMA"] / means["EA-SGD"]
    right.plot(range(len(pairs)), share, "o", color=PALETTE[0], linestyle="none", label="ours, of those that arrive")
    places, printed = [], []  # beside every pair with as many learners as each printed share is of
    for learners, claim in ((4, "1gpu"), (16, "8gpu")):
        alike = [i for i, pair in enumerate(pairs) if f"k = {learners}," in pair]
        places += alike
        printed += [1 - printed_value(f"crossbow/fig15/{claim}") / 100] * len(alike)
    plots.printed_marks(right, places, printed, "printed: 1 and 8 GPUs, to 88%")
    right.axhline(1, color=GRID, linewidth=0.8, linestyle="-")
    right.set_xticks(range(len(pairs)), [pair.replace(", ", "\n") for pair in pairs])
    right.set(ylim=(0, 1.6), xlim=(-0.6, len(pairs) - 0.4), ylabel="SMA's time / EA-SGD's")
    plots.legend_above(right, 1)
    places_said = " and ".join(dict.fromkeys(place for place in rows["stand_in"] if place))
    if places_said:
        figure.suptitle(f"Stand-ins for ResNet-32: {places_said}", fontsize="small", x=0.01, ha="left")
