"""How well CIFAR-10's cost model predicts the rows it was not calibrated on, beside what lambda alone predicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from paper_figures.rudra.settings import Configuration
from paper_figures.rudra.simulations import CALIBRATED, TABLE2, TABLE3
from suite.claims.measured import interval
from suite.papers.artifact import Quantities
from suite.papers.printed import printed_value

NEAR = 0.2  # relative error that counts as predicted, as the claims have it
DRAWS = 2_000

# Configuration and claim of the printed time of all rows of Tables 2 and 3 that the model was not calibrated on.
HELD_OUT = {
    row: f"rudra/{table}/r{at:02d}-training-time"
    for table, rows in (("table3", TABLE3), ("table2", TABLE2))
    for at, row in enumerate(rows, 1)
    if row not in CALIBRATED
}


def lambda_only(learners: int) -> float:
    """Seconds of 140 epochs from the number of learners alone.

    The logarithm of time is interpolated in that of lambda between the rows that the cost model is calibrated on,
    where rows of one lambda count as their geometric mean.
    """
    import numpy as np

    logs: dict[int, list[float]] = {}
    for (_, _, k), claim in sorted(CALIBRATED.items(), key=lambda item: item[0][2]):
        logs.setdefault(k, []).append(math.log(printed_value(f"rudra/{claim}")))
    means = [math.fsum(values) / len(values) for values in logs.values()]
    return math.exp(np.interp(math.log(learners), [math.log(k) for k in logs], means))


def quantities(seconds: Mapping[Configuration, float], runs: Iterable[str]) -> Quantities:
    """Median absolute log error and share of rows within NEAR: the model's, lambda's alone, and the model's gain.

    ``seconds``: predicted by the model. Intervals are 95% percentiles of a bootstrap over the held-out rows, the same
    rows for both predictors; rows of one table are not independent, so they are rather too narrow.
    """
    import numpy as np

    printed = np.array([printed_value(claim) for claim in HELD_OUT.values()])
    model = np.array([seconds[row] for row in HELD_OUT]) / printed
    alone = np.array([lambda_only(row[2]) for row in HELD_OUT]) / printed
    resampled = np.random.default_rng(0).integers(len(printed), size=(DRAWS, len(printed)))

    def error(ratios: np.ndarray) -> np.ndarray:
        return np.median(np.abs(np.log(ratios)), axis=-1)

    def near(ratios: np.ndarray) -> np.ndarray:
        return np.mean(np.abs(ratios - 1) <= NEAR, axis=-1)

    statistics: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
        "held-out-error": lambda ours, theirs: error(ours),
        "held-out-error-lambda-only": lambda ours, theirs: error(theirs),
        "held-out-error-gain": lambda ours, theirs: error(theirs) - error(ours),
        "held-out-near": lambda ours, theirs: near(ours),
        "held-out-near-lambda-only": lambda ours, theirs: near(theirs),
        "held-out-near-gain": lambda ours, theirs: near(ours) - near(theirs),
    }
    for name, statistic in statistics.items():
        low, high = np.quantile(statistic(model[resampled], alone[resampled]), (0.025, 0.975))
        value = float(statistic(model, alone))
        yield name, interval(value, float(low), float(high), n=len(printed), runs=runs)
