"""Fig. 4: average staleness is near n under n-softsync with 30 learners, and hardly any gradient's exceeds 2n.

Fig. 4b adds when that bound breaks: the share of staler gradients against the jitter of a gradient's time.
"""

from __future__ import annotations

from paper_figures.rudra.plans import JITTERS, SPLITS, clock, messages
from suite.claims.intervals import Interval, wilson
from suite.papers.figure import Artifact, Axes, Figure, Frame, Groups, pd, printed_value, sns
from suite.report.style import GRID


def runs_b(profile: str) -> Groups:
    groups = {"30-softsync": (messages(30, 128),), "n": (messages(1, 128), messages(2, 128), messages(30, 128))}
    return groups | {f"jitter {jitter}": tuple(clock(n, jitter=jitter) for n in SPLITS) for jitter in JITTERS}


FIG4A = Artifact(
    "rudra/fig4a",
    "Average staleness under 1-softsync and 2-softsync",
    lambda profile: {"1-softsync": (messages(1, 128),), "2-softsync": (messages(2, 128),)},
)
FIG4B = Artifact(
    "rudra/fig4b",
    "Average staleness under lambda-softsync, its distribution, and when the bound 2n breaks",
    runs_b,
    size=(9.0, 4.0),
)


@FIG4B.quantity("tail", ["30-softsync"])
def tail(frame: Frame) -> Interval:
    """Share of gradients with staleness above 2n."""
    run = frame.one("30-softsync")
    return wilson(int(run["above_2n"]), int(run["gradients"]))


@FIG4A.table
def averages(frame: Frame) -> pd.DataFrame:
    """Average staleness of updates. Columns: update, average, group, seed, run."""
    return frame.needed(["1-softsync", "2-softsync"]).table("averages")


@FIG4A.drawing
def draw_a(frame: Frame, figure: Figure) -> None:
    """Average staleness against weight updates: 1-softsync stays near 1, 2-softsync near 2."""
    axes = figure.subplots()
    sns.lineplot(averages(frame), x="update", y="average", hue="group", linewidth=0.8, errorbar=None, ax=axes)
    for n in (1, 2):  # 5.1, Fig. 4
        axes.axhline(n, color=GRID, linestyle="--", label="printed means" if n == 1 else None)
    axes.set(xlabel="weight update", ylabel="average staleness (updates)", ylim=(0, 4))
    axes.legend(loc="upper right", ncols=3)


@FIG4B.drawing
def draw_b(frame: Frame, figure: Figure) -> None:
    """Left: staleness of 30-softsync near 29 with its distribution; right: share above 2n against jitter."""
    left, right = figure.subplots(1, 2)
    draw_distribution(frame.needed(["30-softsync"]), left)
    draw_limits(frame.needed([f"jitter {jitter}" for jitter in JITTERS]), right)


def draw_distribution(frame: Frame, axes: Axes) -> None:
    """Averages of updates, and in an inset the staleness of single gradients."""
    average, spread = frame.table("averages"), frame.table("distribution")
    axes.plot(average["update"], average["average"], linewidth=0.5)
    for value in (30, 60):
        axes.axhline(value, color=GRID, linewidth=1, linestyle="--")
    axes.set(xlabel="weight update", ylabel="average staleness (updates)", ylim=(0, 65), yticks=(0, 15, 30, 45, 60))
    axes.set(title="30-softsync (dashed: printed 30 and 60)")
    inset = axes.inset_axes((0.45, 0.73, 0.5, 0.16))
    inset.bar(spread["staleness"], spread["gradients"] / spread["gradients"].sum(), width=1.0)
    inset.set(xlabel="staleness", ylabel="share")
    inset.tick_params(labelsize=7)


def draw_limits(frame: Frame, axes: Axes) -> None:
    """The share of gradients with staleness above 2n by jitter, a line for each n; none where the share is 0."""
    for at, n in enumerate(SPLITS):
        runs = [frame.results(f"jitter {jitter}")[at] for jitter in JITTERS]
        shares = [run["above_2n"] / run["gradients"] for run in runs]
        seen = [(100 * jitter, share) for jitter, share in zip(JITTERS, shares, strict=True) if share > 0]
        name = f"n = {n} (0 below {seen[0][0]:.0f}%)" if seen else f"n = {n}: none"
        axes.plot(*zip(*seen, strict=True), marker="o", markersize=3, label=name)
    most = printed_value("rudra/fig4b/tail")
    axes.axhline(most, color=GRID, linewidth=0.8, linestyle="--", label=f"printed: below {most:g}")
    axes.set(yscale="log", xlim=(0, 100 * JITTERS[-1] + 2))
    axes.set(xlabel="jitter of a gradient's time (%)", title="ours: share of gradients staler than 2n")
    axes.legend(fontsize=8)
