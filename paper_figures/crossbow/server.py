"""The paper's server with 8 GPUs (Figs. 13, 14b, 17): a cost model, and eight hosts that sleep to compute.

The model is solved from printed throughputs. In the place of eight GPUs the learners of eight hosts sleep for their
tasks, and what they exchange travels. A task of m learners takes what Figs. 12(a) and 17 say of the paper's card. A
link is as fast as PCIe 3.0 x16 (section 5.1) can be. The exchange of ResNet-32 therefore costs the least that the
printed server allows, and of a printed gain of not synchronising the rest is no exchange of weights.
"""

from __future__ import annotations

import math

from paper_figures.crossbow import settings
from suite.claims.intervals import Interval, log_interval
from suite.communication.link import PAYLOAD
from suite.papers.figure import Frame, Groups, RunSpec, pd, printed_value

GPUS = 8
IMAGES = GPUS * settings.CROSSBOW_BATCH  # in an iteration of one learner on each
RESNET32_BYTES = 4 * 469_114  # of its parameters
NEVER = 0  # the interval of those that do not synchronise
LEARNERS, INTERVALS = (1, 2, 4), (1, 2, 4, NEVER)
PCIE = 16 * 8e9 * 128 / 130  # bits per second of PCIe 3.0 x16, one way
SECONDS, NUMBERS = 1.0, 100_000  # of one learner's task and of the model, whatever they are there


def task_seconds(learners: int) -> float:
    """Seconds of an iteration of so many learners on one GPU without synchronisation.

    They take a + b m, with a + b = 1 and 4 / (a + 4 b) = 1.4 (Fig. 12a), in units of the iteration without
    synchronisation of Fig. 17 (512 images at 18,500 images/s).
    """
    per_learner = (4 / printed_value("crossbow/fig12a/throughput") - 1) / 3
    return IMAGES / printed_value("crossbow/fig17/nosync") * (1 + per_learner * (learners - 1))


def synchronisation_seconds(learners: int) -> float:
    """Seconds of one synchronisation with so many learners on each of 8 GPUs.

    It is what Fig. 17 leaves of an iteration at m = 1, and grows with m to the printed 27% at m = 4.
    """
    at_one = IMAGES / printed_value("crossbow/fig17/tau1") - task_seconds(1)
    at_four = task_seconds(4) * printed_value("crossbow/fig17/gain-m4") / 100
    return at_one + (at_four - at_one) / 3 * (learners - 1)


def throughput(learners: int, tau: int = 1) -> float:
    """Images/s on 8 GPUs with so many learners on each, synchronised every ``tau`` iterations, or ``NEVER``."""
    synchronising = 0.0 if tau == NEVER else synchronisation_seconds(learners) / tau
    return IMAGES * learners / (task_seconds(learners) + synchronising)


def interval(tau: int) -> str:
    """A number of iterations between synchronisations as drawings name it."""
    return "none" if tau == NEVER else str(tau)


def modelled_table() -> pd.DataFrame:
    """Throughput (images/s) on 8 GPUs by the cost model, printed values beside: a row per learners and interval.

    ``calibrated`` marks the points that the model's constants were solved from, which it therefore meets.
    """
    printed = {(1, 1): printed_value("crossbow/fig17/tau1"), (1, NEVER): printed_value("crossbow/fig17/nosync")}
    fitted = {*printed, (4, 1), (4, NEVER)}  # m = 4: by the printed factor of Fig. 12a and gain of no synchronisation
    rows = [
        (m, interval(tau), throughput(m, tau), (m, tau) in fitted, printed.get((m, tau), math.nan))
        for m in LEARNERS
        for tau in INTERVALS
    ]
    return pd.DataFrame(rows, columns=["learners", "interval", "images_per_second", "calibrated", "printed"])


def every_iteration() -> pd.DataFrame:
    """The modelled throughput with synchronisation in every iteration; ``relative`` to one learner on each GPU."""
    table = modelled_table().query("interval == '1'")
    return table.assign(relative=table["images_per_second"] / table["images_per_second"].iloc[0])


# ---------------------------------------------------------------- eight hosts


def spec() -> RunSpec:
    slower = SECONDS / task_seconds(1)
    smaller = 4 * NUMBERS / RESNET32_BYTES
    return RunSpec(
        "crossbow/hosts",
        {
            "hosts": GPUS,
            "learners": LEARNERS,
            "intervals": INTERVALS,
            "seconds": [round(slower * task_seconds(m), 4) for m in LEARNERS],
            "numbers": NUMBERS,
            "bits_per_second": round(PCIE / PAYLOAD * smaller / slower, -5),
            "iterations": 4,
            "repeats": 5,
        },
    )


def hosts(profile: str) -> Groups:
    """Needs root and Linux, and a quarter of an hour of sleep, so it is no part of ``smoke``."""
    return {} if profile == "smoke" else {"hosts": (spec(),)}


def seconds(frame: Frame) -> pd.DataFrame:
    """Seconds an iteration by repeat (rows) and by learners, interval and barrier (columns). Raises Missing."""
    frame.needed(["hosts"]).refuse_skipped("hosts")
    table = frame.table("hosts", "hosts")
    return table.pivot(index="repeat", columns=["learners", "tau", "barrier"], values="seconds")


def gain(frame: Frame, m: int) -> Interval:
    """Percent of throughput that m learners on each host gain by not exchanging at all, paired by repeat."""
    table = seconds(frame)
    found = log_interval((table[m, 1, False] / table[m, NEVER, False]).tolist())
    mean, low, high = (100 * (end - 1) for end in (found.mean, found.low, found.high))
    return Interval(mean, low, high, found.n, found.freedom)


def images_per_second(frame: Frame) -> pd.DataFrame:
    """Throughput on the paper's clock. Columns: learners, tau, barrier, images_per_second, low, high."""
    slower = SECONDS / task_seconds(1)
    rows = []
    for (m, tau, barrier), taken in seconds(frame).items():
        found = log_interval((IMAGES * m * slower / taken).tolist())
        rows.append((m, tau, barrier, found.mean, found.low, found.high))
    return pd.DataFrame(rows, columns=["learners", "tau", "barrier", "images_per_second", "low", "high"])
