"""Our own figure, which the paper lacks: the task engine of section 4 with threads for streams, rule by rule.

The paper gives reasons for its rules (4.2: a barrier before the global synchronisation would be expensive; 4.3: round
robin waits for a given replica; 5.4: the tuner finds the number of learners) and no measurement of one alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paper_figures.crossbow.settings import LENET_BATCH
from suite.claims.intervals import Interval, log_interval, mean_interval
from suite.papers.figure import Artifact, Figure, Frame, Missing, RunSpec, np, pd
from suite.report.style import PALETTE

ENGINE = RunSpec(
    "crossbow/engine",
    {
        "model": "crossbow_lenet",
        "batch": LENET_BATCH,
        "learners": 4,
        "workers": 2,
        "most": 4,
        "turns": 5,
        "repeats": 150,
        "threshold": 0.05,
    },
)
ASLEEP = RunSpec(
    "crossbow/engine-asleep",
    {"batch": LENET_BATCH, "seconds": 0.08, "learners": 4, "workers": 5, "turns": 5, "repeats": 15},
)


PANEL = Artifact(
    "crossbow/engine",
    "Our own figure, not the paper's: the task engine on threads, rule by rule",
    lambda profile: {} if profile == "smoke" else {"engine": (ENGINE,), "asleep": (ASLEEP,)},
    size=(9.6, 4.0),
)


def seconds(frame: Frame, group: str = "engine") -> pd.DataFrame:
    """Seconds of an iteration by repeat (rows) and side (columns). Raises Missing where there are none."""
    return frame.needed([group]).table("seconds", group).pivot(index="repeat", columns="side", values="seconds")


def slower(group: str, rule: str, batches: Sequence[str], frame: Frame) -> list[Interval]:
    """The log of the time under a rule over that under the engine's, paired by repeat, on each kind of batches."""
    table = seconds(frame, group)
    ratios = (table[f"{rule}, {kind}"] / table[f"first come, {kind}"] for kind in batches)
    return [mean_interval(np.log(ratio).tolist()) for ratio in ratios]


RIVALS = {  # claim -> group, the rule beside the engine's, kinds of batches
    "first-come-faster": ("engine", "round robin", ("varied",)),
    "overlap-faster": ("engine", "barrier", ("alike", "varied")),
    "first-come-faster-asleep": ("asleep", "round robin", ("varied",)),
    "overlap-faster-asleep": ("asleep", "barrier", ("varied",)),
}
for name, (group, rule, batches) in RIVALS.items():
    note = "batches of one size, then of several" if "alike" in batches else "batches of several sizes"
    PANEL.quantity(name, [group], note=note)(partial(slower, group, rule, batches))


@PANEL.quantity("tuned-near-best", ["engine"])
def tuned(frame: Frame) -> Interval:
    """Throughput with as many learners as the tuner chose, over the largest of any number, paired by repeat."""
    rates, chosen = throughput(frame), int(frame.one("engine")["tuned"])
    return log_interval((rates[chosen] / rates[rates.median().idxmax()]).tolist())


def throughput(frame: Frame) -> pd.DataFrame:
    """Images per second by repeat (rows) and number of learners (columns)."""
    table, numbers = seconds(frame), range(1, ENGINE.settings["most"] + 1)
    return pd.DataFrame({k: k * LENET_BATCH / table[f"{k} learners"] for k in numbers})


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Milliseconds of an iteration with 95% intervals. Columns: group, side, milliseconds, low, high."""
    rows = []
    for group in filter(frame.results, frame.groups):
        for side, row in seconds(frame, group).items():
            i = log_interval((1000 * row).tolist())
            rows.append({"group": group, "side": side, "milliseconds": i.mean, "low": i.low, "high": i.high})
    return pd.DataFrame(rows)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Seconds of an iteration by rule with their intervals, and images per second by number of learners."""
    rows = table(frame)
    if rows.empty:
        raise Missing("the engine has not run")
    titles = {"engine": "4 learners on 2 threads: LeNet", "asleep": "4 learners on 5 threads: asleep"}
    groups = list(dict.fromkeys(rows["group"]))
    panels = list(figure.subplots(1, len(groups) + ("engine" in groups), squeeze=False)[0])
    for axes, group in zip(panels, groups, strict=False):
        rules = rows[(rows["group"] == group) & ~rows["side"].str.endswith("learners")][::-1]
        errors = [rules["milliseconds"] - rules["low"], rules["high"] - rules["milliseconds"]]
        axes.barh(rules["side"], rules["milliseconds"], xerr=errors, color=PALETTE[0])
        axes.set(xlabel="ms of an iteration, with 95%\n(batches of one size, or varied)")
        axes.set_title(titles[group], fontsize="medium")
    if "engine" in groups:
        rates, chosen = throughput(frame).median(), int(frame.one("engine")["tuned"])
        panels[-1].plot(rates.index, rates, color=PALETTE[0], marker="o")
        panels[-1].axvline(chosen, color=PALETTE[1], linestyle="--", label="the tuner's")
        panels[-1].set(xlabel="learners", ylabel="images/s", xticks=list(rates.index))
        panels[-1].set_ylim(bottom=0)
        panels[-1].set_title("LeNet on 2 threads", fontsize="medium")
        panels[-1].legend()
