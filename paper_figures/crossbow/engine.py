"""Our own figure, which the paper lacks: the task engine of section 4 with threads for streams, rule by rule.

The paper gives reasons for its rules (4.2: a barrier before the global synchronisation would be expensive; 4.3: round
robin waits for a given replica; 5.4: the tuner finds the number of learners) and no measurement of one alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow.settings import LENET_BATCH, Groups
from suite.claims.intervals import Interval, log_interval, mean_interval
from suite.papers.panel import Frame, Panel
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ENGINE = RunSpec(
    "crossbow/engine",
    {
        "model": "crossbow_lenet",
        "batch": LENET_BATCH,
        "learners": 4,
        "workers": 2,
        "most": 4,
        "turns": 5,
        "repeats": 25,
        "threshold": 0.05,
    },
)


def runs(profile: str) -> Groups:
    """Seconds of a quiet machine with two cores, so it is no part of ``smoke``."""
    return {} if profile == "smoke" else {"engine": (ENGINE,)}


PANEL = Panel(
    "crossbow/engine",
    "Our own figure, not the paper's: the task engine on threads, rule by rule",
    runs,
    alt="Seconds of an iteration by rule with their intervals, and images per second by number of learners.",
)
ARTIFACTS = (PANEL,)


def seconds(frame: Frame) -> pd.DataFrame:
    """Seconds of an iteration by repeat (rows) and side (columns). Raises Missing where there are none."""
    return frame.needed(["engine"]).table("seconds", "engine").pivot(index="repeat", columns="side", values="seconds")


def slower(frame: Frame, rule: str, batches: str) -> Interval:
    """The log of the time under a rule over that under the engine's, paired by repeat."""
    import numpy as np

    table = seconds(frame)
    return mean_interval(np.log(table[f"{rule}, {batches}"] / table[f"first come, {batches}"]).tolist())


@PANEL.quantity("first-come-faster", ["engine"], note="batches of several sizes")
def first_come(frame: Frame) -> Interval:
    return slower(frame, "round robin", "varied")


@PANEL.quantity("overlap-faster", ["engine"], note="batches of one size, then of several")
def overlap(frame: Frame) -> list[Interval]:
    return [slower(frame, "barrier", batches) for batches in ("alike", "varied")]


@PANEL.quantity("tuned-near-best", ["engine"])
def tuned(frame: Frame) -> Interval:
    """Throughput with as many learners as the tuner chose, over the largest of any number, paired by repeat."""
    rates, chosen = throughput(frame), int(frame.one("engine")["tuned"])
    return log_interval((rates[chosen] / rates[rates.median().idxmax()]).tolist())


def throughput(frame: Frame) -> pd.DataFrame:
    """Images per second by repeat (rows) and number of learners (columns)."""
    import pandas as pd

    table, numbers = seconds(frame), range(1, ENGINE.settings["most"] + 1)
    return pd.DataFrame({k: k * LENET_BATCH / table[f"{k} learners"] for k in numbers})


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Milliseconds of an iteration with 95% intervals. Columns: side, milliseconds, low, high."""
    import pandas as pd

    sides = {side: log_interval((1000 * row).tolist()) for side, row in seconds(frame).items()}
    rows = [{"side": side, "milliseconds": i.mean, "low": i.low, "high": i.high} for side, i in sides.items()]
    return pd.DataFrame(rows)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Left: iterations of four learners by rule. Right: throughput by number of learners, the tuner's marked."""
    from suite.report.style import PALETTE

    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    rows = table(frame)
    rules = rows[~rows["side"].str.endswith("learners")][::-1]
    errors = [rules["milliseconds"] - rules["low"], rules["high"] - rules["milliseconds"]]
    left.barh(rules["side"], rules["milliseconds"], xerr=errors, color=PALETTE[0])
    left.set(xlabel="ms of an iteration", title="4 learners, 2 threads")
    rates, chosen = throughput(frame).median(), int(frame.one("engine")["tuned"])
    right.plot(rates.index, rates, color=PALETTE[0], marker="o")
    right.axvline(chosen, color=PALETTE[1], linestyle="--", label="the tuner's")
    right.set(xlabel="learners", ylabel="images/s", xticks=list(rates.index))
    right.set_ylim(bottom=0)
    right.legend()
