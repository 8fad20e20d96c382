"""Eight hosts in the place of the paper's eight GPUs: learners sleep for their tasks, and what they exchange travels.

A task of m learners takes what Figs. 12(a) and 17 say of the paper's card. A link is as fast as PCIe 3.0 x16 (section
5.1) can be. The exchange of ResNet-32 therefore costs the least that the printed server allows, and of a printed gain
of not synchronising the rest is no exchange of weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import server_model, settings
from suite.claims.intervals import Interval, log_interval
from suite.communication.link import PAYLOAD
from suite.papers.artifact import Groups, Missing
from suite.papers.panel import Frame
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

NEVER = 0  # the interval of hosts that do not exchange
LEARNERS, INTERVALS = (1, 2, 4), (1, 2, 4, NEVER)
PCIE = 16 * 8e9 * 128 / 130  # bits per second of PCIe 3.0 x16, one way
SECONDS, NUMBERS = 1.0, 100_000  # of one learner's task and of the model, whatever they are there


def spec() -> RunSpec:
    there = server_model.calibrated()
    slower = SECONDS / there.task_seconds[1]
    smaller = 4 * NUMBERS / server_model.RESNET32_BYTES
    return RunSpec(
        "crossbow/hosts",
        {
            "hosts": server_model.GPUS,
            "learners": LEARNERS,
            "intervals": INTERVALS,
            "seconds": [round(slower * there.task_seconds[m], 4) for m in LEARNERS],
            "numbers": NUMBERS,
            "bits_per_second": round(PCIE / PAYLOAD * smaller / slower, -5),
            "iterations": 4,
            "repeats": 5,
        },
    )


def runs(profile: str) -> Groups:
    """Needs root and Linux, and a quarter of an hour of sleep, so it is no part of ``smoke``."""
    return {} if profile == "smoke" else {"hosts": (spec(),)}


def timed(frame: Frame) -> pd.DataFrame:
    """Seconds an iteration by repeat (rows) and by learners, interval and barrier (columns). Raises Missing."""
    if skipped := frame.needed(["hosts"]).one("hosts")["skipped"]:
        raise Missing(f"the hosts could not be made: {skipped}")
    table = frame.table("hosts", "hosts")
    return table.pivot(index="repeat", columns=["learners", "tau", "barrier"], values="seconds")


def gain(frame: Frame, m: int, tau: int = 1, *, barrier: bool = False) -> Interval:
    """Percent of throughput that m learners on each host gain by not exchanging at all, paired by repeat."""
    seconds = timed(frame)
    found = log_interval((seconds[m, tau, barrier] / seconds[m, NEVER, False]).tolist())
    return Interval(100 * (found.mean - 1), 100 * (found.low - 1), 100 * (found.high - 1), found.n)


def images_per_second(frame: Frame) -> pd.DataFrame:
    """Throughput on the paper's clock. Columns: learners, tau, barrier, images_per_second, low, high."""
    import pandas as pd

    slower = SECONDS / server_model.calibrated().task_seconds[1]
    rows = []
    for (m, tau, barrier), seconds in timed(frame).items():
        found = log_interval((server_model.GPUS * settings.CROSSBOW_BATCH * m * slower / seconds).tolist())
        rows.append((m, tau, barrier, found.mean, found.low, found.high))
    return pd.DataFrame(rows, columns=["learners", "tau", "barrier", "images_per_second", "low", "high"])
