"""The protocols of section 3.1 (hardsync, async, n-softsync): how stale gradients are, in simulated runs."""

from __future__ import annotations

from paper_figures.rudra.plans import SPLITS, clock
from suite.papers.figure import Artifact, Figure, Frame, Groups, pd
from suite.report.style import GRID

SLOW = 1000.0  # times slower is the learner that shows async to be unbounded


def runs(profile: str) -> Groups:
    """Learners that are alike but for a jitter of 5%."""
    return {"hardsync": (clock(0),), "n": tuple(clock(n) for n in SPLITS), "stalled": (clock(30, slow=SLOW),)}


PANEL = Artifact("rudra/alg-softsync", "Staleness of gradients under each protocol", runs)


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Share of gradients that are at least so stale. Columns: protocol, staleness, share."""
    stalled = f"async, a learner {SLOW:,.0f} times slower"
    names = ["hardsync", *(f"{n}-softsync" for n in SPLITS), stalled]
    runs = [frame.one("hardsync"), *frame.results("n"), frame.one("stalled")]
    found = []
    for name, run in zip(names, runs, strict=True):
        spread = frame.stored[run["run"]].curve("distribution")
        share = spread["gradients"][::-1].cumsum()[::-1] / spread["gradients"].sum()
        found.append(pd.DataFrame({"protocol": name, "staleness": spread["staleness"], "share": share}))
    return pd.concat(found, ignore_index=True)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Share of gradients staler than a number of updates: none under hardsync, within 2n under n-softsync, far beyond
    where one learner of async is slow.
    """
    rows = table(frame.needed(["hardsync", "n", "stalled"]))
    axes = figure.subplots()
    for name, part in rows.groupby("protocol", sort=False):
        marker = "o" if len(part) == 1 else None  # hardsync's only value
        axes.step(part["staleness"], part["share"], where="post", marker=marker, label=name)
    for at, n in enumerate(SPLITS):
        axes.axvline(2 * n, color=GRID, linewidth=0.9, linestyle="--", label=None if at else "printed bound 2n")
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(left=-0.2)
    axes.set(xlabel="staleness (updates)", ylabel="share of gradients at least so stale", yscale="log")
    axes.legend(fontsize=8, loc="center right")
