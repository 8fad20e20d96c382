"""Figs. 1, 4 and 6 as diagrams: boxes and arrows, and beneath them what a run of the same found."""

from __future__ import annotations

from collections.abc import Iterable

from suite.lazy import Axes
from suite.report.style import GRID, INK, PALETTE

MODEL, DATA, SUM = "#d9e6f2", "#f0f0f0", "#fbe3d2"  # of the boxes: pale, so that dark text is legible on any page
TEXT = "#111111"

Point = tuple[float, float]


def empty(axes: Axes, told: Iterable[str]) -> None:
    """A bare field from (0, 0) to (1, 1) with lines of text beneath."""
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.text(0.5, -0.02, "\n".join(told), ha="center", va="top", fontsize=8)


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


def synchronous(axes: Axes, told: Iterable[str]) -> None:
    """Parallel S-SGD on two GPUs: half a batch each, one aggregate gradient for both replicas."""
    empty(axes, told)
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


def learners(axes: Axes, told: Iterable[str]) -> None:
    """Two learners over three iterations: batches of their own, gradients, and corrections through the average."""
    empty(axes, told)
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


def two_levels(axes: Axes, told: Iterable[str]) -> None:
    """A reference model on each of two GPUs; SMA between these, differences to them within a GPU."""
    empty(axes, told)
    for g, x in ((1, 0.02), (2, 0.56)):
        area(axes, (x, 0.06), 0.42, 0.72, f"GPU {g}")
        box(axes, (x + 0.21, 0.56), "learner 1:\nreference model", SUM)
        for j, where in ((2, x + 0.1), (3, x + 0.32)):
            box(axes, (where, 0.2), f"learner {j}:\nreplica")
            arrow(axes, (where, 0.2), (x + 0.21, 0.56), "difference" if j == 2 else "", 2)
    arrow(axes, (0.23, 0.6), (0.77, 0.6), order=1, bend=-0.5)
    arrow(axes, (0.77, 0.6), (0.23, 0.6), order=1, bend=0.5)
    axes.text(0.5, 0.93, "SMA between the reference models", ha="center", va="center", fontsize=8.5, color=PALETTE[1])
