"""Figs. 1 and 4 to 8: diagrams of the algorithm and of the system, and beneath them what runs of the same found."""

from __future__ import annotations

from collections.abc import Iterable

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import told
from suite.papers.figure import Artifact, Axes, Figure, Frame, Groups, pd, printed, sns
from suite.report.style import GRID, INK, MARKERS, PALETTE

MODEL, DATA, SUM = "#d9e6f2", "#f0f0f0", "#fbe3d2"  # of the boxes: pale, so that dark text is legible on any page
TEXT = "#111111"

Point = tuple[float, float]


def empty(axes: Axes, said: Iterable[str]) -> None:
    """A bare field from (0, 0) to (1, 1) with lines of text beneath."""
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.text(0.5, -0.02, "\n".join(said), ha="center", va="top", fontsize=8)


def box(axes: Axes, at: Point, text: str, face: str = MODEL) -> None:
    frame = {"boxstyle": "round,pad=0.45", "facecolor": face, "edgecolor": GRID, "linewidth": 0.8}
    axes.text(*at, text, ha="center", va="center", fontsize=8.5, color=TEXT, bbox=frame)


def area(axes: Axes, corner: Point, width: float, height: float, title: str) -> None:
    """A dashed frame around what stands on one GPU or belongs to one learner."""
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            corner, width, height, boxstyle="round,pad=0,rounding_size=0.02", fill=False, edgecolor=GRID,
            linestyle="--", linewidth=1,
        )
    )  # fmt: skip
    axes.text(corner[0] + 0.012, corner[1] + height - 0.015, title, ha="left", va="top", fontsize=8.5, color=INK)


def arrow(axes: Axes, start: Point, end: Point, text: str = "", order: int = 0, bend: float = 0.0) -> None:
    """An arrow with its name at its middle; ``order`` chooses the colour."""
    look = {"arrowstyle": "-|>", "color": PALETTE[order], "shrinkA": 20, "shrinkB": 24, "linewidth": 1.2}
    axes.annotate("", xy=end, xytext=start, arrowprops=look | {"connectionstyle": f"arc3,rad={bend}"})
    if text:
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        ground = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        axes.text(*middle, text, ha="center", va="center", fontsize=7.5, color=TEXT, bbox=ground)


LEARNERS = (1, 2, 4)  # on each of two GPUs, as the run of Fig. 6 counts


def panel(figure: str, title: str, runs: Groups, size: tuple[float, float] = (6.4, 4.0), alt: str = "") -> Artifact:
    return Artifact(f"crossbow/{figure}", title, lambda profile: runs, alt=alt, size=size)


FIG1 = panel("fig1", "Parallel synchronous SGD on two workers", settings.ALGEBRA, (7.2, 3.8))
FIG4 = panel("fig4", "Two learners with separate batches and corrections", settings.ALGEBRA, (7.2, 4.2))
FIG5 = panel("fig5", "Two replicas tracking the central average model", settings.ALGEBRA)
FIG6 = panel("fig6", "Two-level synchronisation with one reference model per GPU", settings.ALGEBRA, (8.4, 3.8))
FIG7 = panel("fig7", "Learners, streams and batches of a run", settings.TASKS, (6.4, 3.4), plots.ALT_TIMELINES)
FIG8 = panel(
    "fig8",
    "Learning and synchronisation tasks on streams: a recorded run and 2 GPUs with 2 learners each",
    settings.TASKS,
    (6.4, 5.0),
    plots.ALT_TIMELINES,
)

told(FIG1, replicas_equal="synchronous_copies", equals_large_batch="partial_gradients")
told(FIG4, different_batches="shared_in_iteration", replicas_differ="least_distance")
told(FIG6, one_reference="references", inter_gpu_traffic="traffic")


@FIG1.drawing
def draw_synchronous(frame: Frame, figure: Figure) -> None:
    """Half a batch goes to each of two GPUs, whose partial gradients are averaged into the same update of both;
    replicas and gradients differ by zero or rounding.
    """
    found = frame.run("algebra").results
    copies, partial = found["synchronous_copies"], found["partial_gradients"]
    said = (
        f"Two workers, 40 iterations: the replicas differ by at most {copies:g} (printed: 0).",
        f"The mean of the partial gradients is the batch's to {partial:.0e} (printed: 0, float64).",
    )
    axes = figure.subplots()
    empty(axes, said)
    box(axes, (0.07, 0.5), "batch", DATA)
    for name, y in (("GPU 1", 0.78), ("GPU 2", 0.22)):
        area(axes, (0.2, y - 0.2), 0.52, 0.4, name)
        box(axes, (0.31, y), "half a\nbatch", DATA)
        box(axes, (0.5, y), "replica\n$w_n$")
        box(axes, (0.65, y), "partial\ngradient", SUM)
        arrow(axes, (0.07, 0.5), (0.31, y), order=6)
        arrow(axes, (0.31, y), (0.5, y), order=6)
        arrow(axes, (0.5, y), (0.65, y), order=6)
        arrow(axes, (0.65, y), (0.9, 0.5), "average", 1)
        arrow(axes, (0.9, 0.5), (0.5, y), order=0, bend=0.55 if y > 0.5 else -0.55)
    box(axes, (0.9, 0.5), "aggregate\ngradient", SUM)
    axes.text(0.92, 0.14, "the same update\nof both replicas", ha="center", va="top", fontsize=7.5, color=PALETTE[0])


@FIG4.drawing
def draw_learners(frame: Frame, figure: Figure) -> None:
    """Two learners update replicas of their own with gradients of their own batches and with corrections through the
    average model, over three iterations.
    """
    found = frame.run("algebra").results
    shared, least = found["shared_in_iteration"], found["least_distance"]
    said = (
        f"Four learners, one epoch: {shared:g} samples shared by two learners of an iteration (printed: 0);",
        f"the two replicas nearest to each other are {least:.3f} apart (0 would be one model for all).",
    )
    axes = figure.subplots()
    empty(axes, said)
    columns = (0.2, 0.5, 0.8)
    for i, x in enumerate(columns):
        step = "n" if i == 0 else f"n+{i}"
        box(axes, (x, 0.5), f"average\n$z_{{{step}}}$", SUM)
        for j, y in ((1, 0.82), (2, 0.18)):
            box(axes, (x, y), f"replica\n$w^{j}_{{{step}}}$")
            arrow(axes, (x, 0.5), (x, y), "correction", 2)
            if i + 1 < len(columns):
                box(axes, (x + 0.15, y + (0.13 if j == 1 else -0.13)), f"batch {2 * i + j}", DATA)
                arrow(axes, (x, y), (columns[i + 1], y), "gradient", 0)
                arrow(axes, (x, y), (columns[i + 1], 0.5), order=1)
        if i + 1 < len(columns):
            arrow(axes, (x, 0.5), (columns[i + 1], 0.5), order=1)
    for j, y in ((1, 0.82), (2, 0.18)):
        axes.text(0.0, y, f"learner {j}", ha="left", va="center", fontsize=8.5)


@FIG5.drawing
def draw_paths(frame: Frame, figure: Figure) -> None:
    """Paths of two replicas and of the average model on a quadratic, with arrows for the corrections."""
    axes = figure.subplots()
    table = frame.run("algebra").curve("paths")
    table = table[table["turn"] <= 16]  # so that single corrections can be seen
    names = ["replica 1", "replica 2", "average"]
    said = dict(zip(names, ("replica $w_1$", "replica $w_2$", "central average model $z$"), strict=True))
    wide = table.pivot(index="turn", columns="model", values=["x", "y"])
    arrow = {"arrowstyle": "-|>", "color": GRID, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
    for name in names[:2]:
        ends = [(wide["x"][each].to_numpy(), wide["y"][each].to_numpy()) for each in (name, "average")]
        for x, y in zip(*(zip(*end, strict=True) for end in ends), strict=True):
            axes.annotate("", y, x, arrowprops=arrow)
    axes.plot([], [], color=GRID, linewidth=0.8, linestyle="-", label="corrections towards $z$")
    sns.lineplot(
        table.assign(model=table["model"].map(said)), x="x", y="y", hue="model", style="model", sort=False,
        hue_order=list(said.values()), style_order=list(said.values()), palette=[PALETTE[1], PALETTE[2], PALETTE[0]],
        markers=list(MARKERS[:3]), estimator=None, linewidth=1.1, markersize=4.5, ax=axes,
    )  # fmt: skip
    axes.annotate(
        "$w_0$", tuple(wide.iloc[0][[("x", "average"), ("y", "average")]]), (7, 2), textcoords="offset points"
    )
    axes.set(xlabel="first parameter", ylabel="second parameter")
    axes.legend(title="", loc="upper right")


FIG5.table(lambda frame: frame.run("algebra").curve("paths"))


@FIG6.table
def sent(frame: Frame) -> pd.DataFrame:
    """What a GPU sends, over what it sends with one learner: a row per scheme and learners on each GPU."""
    found = frame.run("algebra").results
    schemes = (("two levels", "traffic"), ("flat: every replica sent", "flat_traffic"))
    rows = [(said, m, sent) for said, name in schemes for m, sent in zip(LEARNERS, found[name], strict=True)]
    return pd.DataFrame(rows, columns=["scheme", "learners", "sent"])


@FIG6.drawing
def draw_two_levels(frame: Frame, figure: Figure) -> None:
    """Each of two GPUs has a reference model that its other learners follow, and only these are averaged; what a GPU
    sends stays constant with two levels and grows with its learners without.
    """
    diagram, axes = figure.subplots(1, 2, width_ratios=(2, 1))
    references = ", ".join(f"{count:g}" for count in frame.run("algebra").results["references"])
    empty(diagram, [f"reference models per GPU with 1, 2, 4 learners on each: {references} (printed: 1)"])
    for g, x in ((1, 0.02), (2, 0.56)):
        area(diagram, (x, 0.06), 0.42, 0.72, f"GPU {g}")
        box(diagram, (x + 0.21, 0.56), "learner 1:\nreference model", SUM)
        for j, where in ((2, x + 0.1), (3, x + 0.32)):
            box(diagram, (where, 0.2), f"learner {j}:\nreplica")
            arrow(diagram, (where, 0.2), (x + 0.21, 0.56), "difference" if j == 2 else "", 2)
    arrow(diagram, (0.23, 0.6), (0.77, 0.6), order=1, bend=-0.5)
    arrow(diagram, (0.77, 0.6), (0.23, 0.6), order=1, bend=0.5)
    diagram.text(
        0.5, 0.93, "SMA between the reference models", ha="center", va="center", fontsize=8.5, color=PALETTE[1]
    )
    sns.barplot(sent(frame), x="learners", y="sent", hue="scheme", saturation=1, errorbar=None, ax=axes)
    places = [place - 0.2 for place in range(len(LEARNERS))]
    plots.printed_marks(axes, places, printed("crossbow/fig6/inter-gpu-traffic"))
    axes.grid(visible=False, axis="x")
    axes.set(xlabel="learners per GPU", ylabel="sent by a GPU / sent with one learner")
    plots.legend_above(axes, 1)


# A recorded run of two learners on threads, and 2 GPUs with 2 learners in virtual time.
FIG7.drawing(lambda frame, figure: plots.timelines(frame, figure, "virtual"))
FIG8.drawing(lambda frame, figure: plots.timelines(frame, figure, "recorded", "virtual"))
