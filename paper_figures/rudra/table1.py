"""Table 1: share of computation in a learner's time in the three systems, in a case chosen to be hard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.rudra import times
from paper_figures.rudra.plans import ADVERSARIAL, CORES_PER_NODE
from paper_figures.rudra.settings import LEARNERS_PER_NODE
from suite.papers.catalogue import printed_value
from suite.papers.panel import Frame, Panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SYSTEMS = {"rudra-base": "base", "rudra-adv": "adv", "rudra-adv-star": "adv*"}

TABLE1 = Panel(
    "rudra/table1",
    "Communication overlap of the three systems",
    lambda profile: times.imagenet(),
    alt="Printed and simulated share of computation for the three systems.",
)
ARTIFACTS = (TABLE1,)


@TABLE1.quantity("rudra-base", times.TIMES)
def share_of_base(frame: Frame) -> float:
    return float(frame.one("times")["overlap base"])


@TABLE1.quantity("rudra-adv", times.TIMES)
def share_of_adv(frame: Frame) -> float:
    return float(frame.one("times")["overlap adv"])


@TABLE1.quantity("rudra-adv-star", times.TIMES, note="swaps cost nothing", shown=True)
def share_of_adv_star(frame: Frame) -> float:
    """The model swaps pointers at no cost and gives communication its own cores: it can say nothing but 100%."""
    return float(frame.one("times")["overlap adv*"])


@TABLE1.quantity("hardware-node-peak")
def node_peak(frame: Frame) -> float:
    """Processors, cores, GHz and flop per cycle of section 4.1, multiplied."""
    return 4 * 8 * 3.84 * 8


@TABLE1.table
def table(frame: Frame) -> pd.DataFrame:
    """Share of computation in % and communication over computation. Columns: system, source, share, ratio."""
    import pandas as pd

    ours = frame.one("times")
    found = []
    for name, system in SYSTEMS.items():
        shares = {"printed": printed_value(f"rudra/table1/{name}"), "simulated": float(ours[f"overlap {system}"])}
        for source, share in shares.items():
            ratio = (100 - share) / share
            found.append({"system": f"Rudra-{system}", "source": source, "share": share, "ratio": ratio})
    return pd.DataFrame(found)


@TABLE1.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Shares as bars with the printed ones on them; below each system, printed communication over computation."""
    import seaborn as sns

    from suite.report.style import INK, PALETTE

    rows = table(frame)
    axes = figure.subplots()
    ours, theirs = rows[rows["source"] == "simulated"], rows[rows["source"] == "printed"]
    sns.barplot(ours, x="system", y="share", color=PALETTE[0], width=0.5, ax=axes, label="simulated", legend=False)
    look: dict[str, Any] = {"s": 60, "facecolors": "white", "edgecolors": INK, "zorder": 3}
    axes.scatter(theirs["system"], theirs["share"], label="printed", **look)
    names = [f"{row.system}\nprinted: {row.ratio:.3g} x as much\ncommunication" for row in theirs.itertuples()]
    axes.set_xticks(range(len(names)), names)
    size, threads = ADVERSARIAL["model_bytes"] / 1e6, CORES_PER_NODE // LEARNERS_PER_NODE
    case = f"mu = {ADVERSARIAL['batch']}, {ADVERSARIAL['learners']} learners of {threads} threads, {size:.0f} MB"
    axes.set(xlabel="", ylabel="computation / (computation + communication), %", title=case)
    axes.legend(loc="upper left")
