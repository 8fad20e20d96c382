"""Table 1: share of computation in a learner's time in the three systems, in a case chosen to be hard.

It is modelled with the paper's 60 learners, and measured with 24 that are processes on three hosts. These sleep to
compute, and exchange over links on which a message takes as large a share of that time as on the paper's machine, or
(*loaded*) so much longer that as much travels to the root as 60 learners send.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from paper_figures.rudra import times
from paper_figures.rudra.plans import ADVERSARIAL, CORES_PER_NODE, system_groups
from paper_figures.rudra.settings import LEARNERS_PER_NODE
from suite.claims.intervals import Interval, mean_interval
from suite.papers.figure import Artifact, Figure, Frame, pd, printed_value, sns
from suite.report.style import INK, PALETTE

LOADED, PACED = "processes", "processes, paper's pace"  # groups of runs
SYSTEMS = {"rudra-base": "base", "rudra-adv": "adv", "rudra-adv-star": "adv*"}

TABLE1 = Artifact(
    "rudra/table1",
    "Communication overlap of the three systems",
    lambda profile: {**times.imagenet(), **system_groups(profile)},
)


def modelled(system: str, frame: Frame) -> float:
    """The modelled share of computation in %."""
    return float(frame.one("times")[f"overlap {system}"])


for name, system in SYSTEMS.items():
    # of adv* the model swaps pointers at no cost and gives communication its own cores: it can say nothing but 100%
    told = {"note": "swaps cost nothing", "shown": True} if system == "adv*" else {}
    TABLE1.quantity(name, times.TIMES, **told)(partial(modelled, system))


def processes(frame: Frame, group: str) -> pd.DataFrame:
    """The runs of the processes, a row per seed. Raises Missing, with the reason, where no host could be made."""
    frame.refuse_skipped(group)
    return frame[group]


def steps(group: str, frame: Frame) -> list[Interval]:
    """Points of overlap that adv is ahead of base, and adv* of adv."""
    runs = processes(frame, group)
    shares = [runs[f"overlap {system}"] for system in SYSTEMS.values()]
    return [mean_interval((after - before).tolist()) for before, after in pairwise(shares)]


def hidden(group: str, frame: Frame) -> pd.Series:
    return processes(frame, group)["overlap adv*"]


for _group, _suffix in ((LOADED, ""), (PACED, "-at-pace")):
    TABLE1.quantity("each-overlaps-more" + _suffix, [_group])(partial(steps, _group))
    TABLE1.quantity("nearly-all-hidden" + _suffix, [_group])(partial(hidden, _group))


@TABLE1.quantity("staleness-near-one", [LOADED], note="base and adv, over gradients of 1-softsync")
def near_one(frame: Frame) -> list[Interval]:
    runs = processes(frame, LOADED)
    return [mean_interval(runs[f"staleness {system}"].tolist()) for system in ("base", "adv")]


@TABLE1.quantity("staler-between-processes", [LOADED])
def staler(frame: Frame) -> pd.Series:
    """By how many updates gradients are staler on average in adv* than in adv."""
    runs = processes(frame, LOADED)
    return runs["staleness adv*"] - runs["staleness adv"]


@TABLE1.table
def table(frame: Frame) -> pd.DataFrame:
    """Share of computation in % and communication over computation. Columns: system, source, share, ratio."""
    found = []
    for name, system in SYSTEMS.items():
        shares = {"printed": printed_value(f"rudra/table1/{name}"), "modelled": modelled(system, frame)}
        for group in (LOADED, PACED):
            runs = frame[group]
            if not runs.empty and not any(runs["skipped"]):
                shares[group] = float(runs[f"overlap {system}"].mean())
        for source, share in shares.items():
            ratio = (100 - share) / share
            found.append({"system": f"Rudra-{system}", "source": source, "share": share, "ratio": ratio})
    return pd.DataFrame(found)


@TABLE1.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Printed, modelled and measured share of computation for the three systems."""
    rows = table(frame)
    axes = figure.subplots()
    ours, theirs = rows[rows["source"] == "modelled"], rows[rows["source"] == "printed"]
    sns.barplot(ours, x="system", y="share", color=PALETTE[0], width=0.5, ax=axes, label="modelled", legend=False)
    look: dict[str, Any] = {"s": 60, "facecolors": "white", "edgecolors": INK, "zorder": 3}
    axes.scatter(theirs["system"], theirs["share"], label="printed", **look)
    look["facecolors"] = PALETTE[1]
    for group, marker, label in ((LOADED, "D", "24 processes, loaded"), (PACED, "^", "24 processes")):
        if not (real := rows[rows["source"] == group]).empty:
            axes.scatter(real["system"], real["share"], label=f"measured: {label}", marker=marker, **look)
    told = "by print {:.3g} s of messages\nfor 1 s of computing"
    names = [f"{row.system}\n{told.format(row.ratio)}" for row in theirs.itertuples()]
    axes.set_xticks(range(len(names)), names)
    size, threads = ADVERSARIAL["model_bytes"] / 1e6, CORES_PER_NODE // LEARNERS_PER_NODE
    case = f"mu = {ADVERSARIAL['batch']}, {ADVERSARIAL['learners']} learners of {threads} threads, {size:.0f} MB"
    axes.set(xlabel="", ylabel="computation / (computation + communication), %", title=case)
    axes.legend(loc="upper left")
