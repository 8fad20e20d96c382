"""The experiments ``rudra/cifar-times`` and ``rudra/imagenet-times``: cost models, calibrated and put to the test.

Both fit a few constants on stated rows of the paper's tables by least squares of log time, with the simulation
itself as the model, and then predict every row; rows that were not used to fit are the test. The rows come in
through the specification, so that the printed values stand in one place only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from paper_figures.rudra.settings import cifar_server, imagenet_server
from suite.experiments import Context
from suite.server_schedule import simulation
from suite.spec import RunSpec, thaw
from suite.store import Outcome

Row = tuple[int, int, int]  # n, mu, lambda


def seconds_per_gradient(server: dict[str, Any], row: Row, rounds: int, seed: int) -> float:
    """Virtual seconds between gradients of the whole system in steady state.

    ``rounds``: gradients per learner that are timed, after a third as many to settle down.
    """
    n, batch, learners = row
    base = simulation(server, learners, n, batch, seed)
    each = base.server.collect
    timed, settle = max(4, rounds * learners // each), max(2, rounds * learners // each // 3)
    ends, gradients = [], []
    for now, turn in islice(iter(base), settle + timed):
        ends.append(now)
        gradients.append(len(turn.entries))
    return (ends[-1] - ends[settle - 1]) / sum(gradients[settle:])


def fit(predict: Callable[[Sequence[float]], list[float]], printed: list[float], start: list[float]) -> list[float]:
    """Positive constants that minimise the squared log errors, in the neighbourhood of ``start``."""
    import numpy as np
    from scipy.optimize import least_squares

    def residuals(logs: Any) -> Any:
        return [math.log(ours / theirs) for ours, theirs in zip(predict(np.exp(logs).tolist()), printed, strict=True)]

    found = least_squares(residuals, np.log(start), diff_step=0.03, max_nfev=60)
    return np.exp(found.x).tolist()


def cifar_times(spec: RunSpec, context: Context) -> Outcome:
    """Seconds of 140 epochs of every configuration of a grid.

    Settings: ``calibrate`` [[n, mu, lambda, printed seconds]], ``predict`` [[n, mu, lambda]], ``rounds``,
    ``images`` in all epochs. Constants: per_call, per_example, crowding, update_seconds.
    """
    s = thaw(spec.settings)

    def total(constants: Sequence[float], row: Row, rounds: int) -> float:
        server = cifar_server(row[2])
        per_call, per_example, crowding, update = constants
        server["seconds"] |= {"per_call": per_call, "per_example": per_example, "crowding": crowding}
        server["update_seconds"] = update
        return seconds_per_gradient(server, row, rounds, spec.seed) * s["images"] / row[1]

    rows = [tuple(row[:3]) for row in s["calibrate"]]
    constants = fit(
        lambda values: [total(values, row, s["rounds"]) for row in rows],
        [row[3] for row in s["calibrate"]],
        [0.01, 0.003, 0.2, 0.001],
    )
    predicted = [total(constants, tuple(row), s["rounds"]) for row in s["predict"]]
    names = ("per_call", "per_example", "crowding", "update_seconds")
    return Outcome(
        "finished",
        {**dict(zip(names, constants, strict=True)), "predicted": predicted, "rows": s["predict"]},
        {"times": _table(s["predict"], predicted)},
    )


def imagenet_times(spec: RunSpec, context: Context) -> Outcome:
    """Minutes per epoch of ImageNet configurations, and the overlap of the adversarial case.

    Settings: ``calibrate`` [[architecture, n, mu, lambda, printed minutes]], ``predict`` [[architecture, n, mu,
    lambda]], ``overlap`` {learners, batch, model_bytes}, ``images``, ``rounds``. Constants: per_call, per_example
    of one gradient, bandwidth of a server's port, and that of copies within a machine.
    """
    s = thaw(spec.settings)

    def minutes(constants: Sequence[float], row: list[Any], rounds: int) -> float:
        name, n, batch, learners = row
        server = imagenet_server(name, *constants)
        return seconds_per_gradient(server, (n, batch, learners), rounds, spec.seed) * s["images"] / batch / 60

    constants = fit(
        lambda values: [minutes(values, row[:4], s["rounds"]) for row in s["calibrate"]],
        [row[4] for row in s["calibrate"]],
        [0.6, 0.18, 5e9, 5e9],
    )
    predicted = [minutes(constants, row, s["rounds"]) for row in s["predict"]]
    results: dict[str, Any] = {
        **dict(zip(("per_call", "per_example", "bandwidth", "memory"), constants, strict=True)),
        "predicted": predicted,
        "rows": s["predict"],
    }
    case = s["overlap"]
    for name in ("base", "adv", "adv*"):
        server = imagenet_server(name, *constants) | {"model_bytes": case["model_bytes"]}
        base = simulation(server, case["learners"], 1, case["batch"], spec.seed)
        for _ in islice(iter(base), 3 * s["rounds"]):
            pass
        results[f"overlap {name}"] = 100 * base.ledger.overlap
    results["push_seconds"] = case["model_bytes"] / constants[2]
    results["incast_seconds"] = 16 * results["push_seconds"]
    return Outcome("finished", results)


def _table(rows: list[list[int]], predicted: list[float]) -> Any:
    import pandas as pd

    frame = pd.DataFrame(rows, columns=["n", "mu", "learners"])
    frame["seconds"] = predicted
    return frame
