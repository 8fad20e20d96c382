"""Table 1: share of computation in a learner's time in the three systems, in a case chosen to be hard.

It is simulated with the paper's 60 learners, and measured with 24 that are processes: these sleep to compute, and
exchange over links that are as slow beside it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from paper_figures.rudra import times
from paper_figures.rudra.plans import ADVERSARIAL, CORES_PER_NODE, system_groups
from paper_figures.rudra.settings import LEARNERS_PER_NODE
from suite.claims.intervals import Interval, mean_interval
from suite.papers.artifact import Missing
from suite.papers.panel import Frame, Panel
from suite.papers.published import printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SYSTEMS = {"rudra-base": "base", "rudra-adv": "adv", "rudra-adv-star": "adv*"}

TABLE1 = Panel(
    "rudra/table1",
    "Communication overlap of the three systems",
    lambda profile: {**times.imagenet(), **system_groups(profile)},
    alt="Printed, simulated and measured share of computation for the three systems.",
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


def processes(frame: Frame) -> pd.DataFrame:
    """The runs of the processes, a row per seed. Raises Missing, with the reason, where no host could be made."""
    runs = frame["processes"]
    if refused := [reason for reason in runs["skipped"] if reason]:
        raise Missing(f"the hosts could not be made: {refused[0]}")
    return runs


@TABLE1.quantity("each-overlaps-more", ["processes"], note="points of overlap: adv over base, adv* over adv")
def steps(frame: Frame) -> list[Interval]:
    runs = processes(frame)
    shares = [runs[f"overlap {system}"] for system in SYSTEMS.values()]
    return [mean_interval((after - before).tolist()) for before, after in pairwise(shares)]


@TABLE1.quantity("nearly-all-hidden", ["processes"])
def hidden(frame: Frame) -> pd.Series:
    return processes(frame)["overlap adv*"]


@TABLE1.quantity("staleness-near-one", ["processes"], note="base and adv, over gradients of 1-softsync")
def near_one(frame: Frame) -> list[Interval]:
    runs = processes(frame)
    return [mean_interval(runs[f"staleness {system}"].tolist()) for system in ("base", "adv")]


@TABLE1.quantity("staler-between-processes", ["processes"])
def staler(frame: Frame) -> Interval:
    runs = processes(frame)
    return mean_interval((runs["staleness adv*"] - runs["staleness adv"]).tolist())


@TABLE1.quantity("hardware-node-peak")
def node_peak(frame: Frame) -> float:
    """Processors, cores, GHz and flop per cycle of section 4.1, multiplied."""
    return 4 * 8 * 3.84 * 8


@TABLE1.table
def table(frame: Frame) -> pd.DataFrame:
    """Share of computation in % and communication over computation. Columns: system, source, share, ratio."""
    import pandas as pd

    ours, processes = frame.one("times"), frame["processes"]
    found = []
    for name, system in SYSTEMS.items():
        shares = {"printed": printed_value(f"rudra/table1/{name}"), "simulated": float(ours[f"overlap {system}"])}
        if not processes.empty and not any(processes["skipped"]):
            shares["processes"] = float(processes[f"overlap {system}"].mean())
        for source, share in shares.items():
            ratio = (100 - share) / share
            found.append({"system": f"Rudra-{system}", "source": source, "share": share, "ratio": ratio})
    return pd.DataFrame(found)


@TABLE1.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Shares as bars with printed and measured ones on them; below each, printed communication over computation."""
    import seaborn as sns

    from suite.report.style import INK, PALETTE

    rows = table(frame)
    axes = figure.subplots()
    ours, theirs = rows[rows["source"] == "simulated"], rows[rows["source"] == "printed"]
    sns.barplot(ours, x="system", y="share", color=PALETTE[0], width=0.5, ax=axes, label="simulated", legend=False)
    look: dict[str, Any] = {"s": 60, "facecolors": "white", "edgecolors": INK, "zorder": 3}
    axes.scatter(theirs["system"], theirs["share"], label="printed", **look)
    if not (real := rows[rows["source"] == "processes"]).empty:
        axes.scatter(real["system"], real["share"], label="24 learners as processes", **look | {"marker": "D"})
    names = [f"{row.system}\nprinted: {row.ratio:.3g} x as much\ncommunication" for row in theirs.itertuples()]
    axes.set_xticks(range(len(names)), names)
    size, threads = ADVERSARIAL["model_bytes"] / 1e6, CORES_PER_NODE // LEARNERS_PER_NODE
    case = f"mu = {ADVERSARIAL['batch']}, {ADVERSARIAL['learners']} learners of {threads} threads, {size:.0f} MB"
    axes.set(xlabel="", ylabel="computation / (computation + communication), %", title=case)
    axes.legend(loc="upper left")
