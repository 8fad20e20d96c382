"""The experiments ``rudra/cifar-times``, ``rudra/imagenet-times`` and ``rudra/leave-one-out``: two cost models.

All fit a few constants on stated rows of the paper's tables by least squares of log time, with the simulation
itself as the model. The first two then predict every row; rows that were not used to fit are the test. The third
predicts each row that they were fitted on from the others. The rows come in through the specification, so that the
printed values stand in one place only.

The experiment ``rudra/protocol``: a protocol without gradients, counted.

Settings::

    learners, n, updates       updates made; the first ``warm_up`` of them are counted apart from the steady state
    clock   {jitter, slow?}    integer protocol, mean gradient 1 s; ``slow`` multiplies learner 0's time
    server  {...}, batch       or, instead of ``clock``, messages in virtual time (``parameter_server.simulation``)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from paper_figures.rudra.plans import ImageNetRow
from paper_figures.rudra.settings import CIFAR_START, IMAGENET_START, Configuration, cifar_server, imagenet_server
from reference_impls.rudra_protocol import Server
from suite.experiment import Context, Outcome
from suite.lazy import np, pd, scipy
from suite.parameter_server.protocol import GammaDurations, Staleness, play
from suite.parameter_server.simulation import simulation
from suite.spec import RunSpec, thaw

Predict = Callable[[Sequence[float], Any], float]  # constants and a row to its time


def seconds_per_gradient(server: dict[str, Any], row: Configuration, rounds: int, seed: int) -> float:
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


def fit(predict: Predict, rows: Sequence[Sequence[Any]], start: Sequence[float]) -> list[float]:
    """Positive constants that minimise the squared log errors of rows [*row, printed], from ``start`` on."""

    def residuals(logs: Any) -> Any:
        constants = np.exp(logs).tolist()
        return [math.log(predict(constants, tuple(row)) / printed) for *row, printed in rows]

    found = scipy.optimize.least_squares(residuals, np.log(start), diff_step=0.03, max_nfev=60)
    return np.exp(found.x).tolist()


def forecast(model: Predict, s: Mapping[str, Any], start: Mapping[str, float]) -> tuple[list[float], dict[str, Any]]:
    """Constants fitted from ``start`` on, and as results these by name beside the times of the rows to predict."""
    constants = fit(model, s["calibrate"], list(start.values()))
    predicted = [model(constants, tuple(row)) for row in s["predict"]]
    return constants, {**dict(zip(start, constants, strict=True)), "predicted": predicted, "rows": s["predict"]}


def cifar_seconds(settings: Mapping[str, Any], seed: int, constants: Sequence[float], row: Configuration) -> float:
    """Seconds of all epochs on CIFAR-10 by per_call, per_example, crowding and update_seconds."""
    per_call, per_example, crowding, update = constants
    server = cifar_server(row[2])
    # A dictionary of its own: the settings' one is in every specification that is made later.
    server["seconds"] = server["seconds"] | {"per_call": per_call, "per_example": per_example, "crowding": crowding}
    server["update_seconds"] = update
    return seconds_per_gradient(server, row, settings["rounds"], seed) * settings["images"] / row[1]


def imagenet_minutes(settings: Mapping[str, Any], seed: int, constants: Sequence[float], row: ImageNetRow) -> float:
    """Minutes per epoch of ImageNet by per_call, per_example, bandwidth and memory."""
    name, n, batch, learners = row
    server = imagenet_server(name, *constants)
    seconds = seconds_per_gradient(server, (n, batch, learners), settings["rounds"], seed)
    return seconds * settings["images"] / batch / 60


def cifar_times(spec: RunSpec, context: Context) -> Outcome:
    """Seconds of 140 epochs of every configuration of a grid.

    Settings: ``calibrate`` [[n, mu, lambda, printed seconds]], ``predict`` [[n, mu, lambda]], ``rounds``,
    ``images`` in all epochs. Constants: those of :func:`cifar_seconds`.
    """
    s = thaw(spec.settings)
    names = ("per_call", "per_example", "crowding", "update_seconds")
    total = partial(cifar_seconds, s, spec.seed)
    _, results = forecast(total, s, dict(zip(names, CIFAR_START, strict=True)))
    table = pd.DataFrame(s["predict"], columns=["n", "mu", "learners"]).assign(seconds=results["predicted"])
    return Outcome("finished", results, {"times": table})


def imagenet_times(spec: RunSpec, context: Context) -> Outcome:
    """Minutes per epoch of ImageNet configurations, and the overlap of the adversarial case.

    Settings: ``calibrate`` [[architecture, n, mu, lambda, printed minutes]], ``predict`` [[architecture, n, mu,
    lambda]], ``overlap`` {learners, batch, model_bytes}, ``images``, ``rounds``. Constants: per_call, per_example
    of one gradient, bandwidth of a server's port, and that of copies within a machine.
    """
    s = thaw(spec.settings)
    minutes = partial(imagenet_minutes, s, spec.seed)
    names = ("per_call", "per_example", "bandwidth", "memory")
    constants, results = forecast(minutes, s, dict(zip(names, IMAGENET_START, strict=True)))
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


def leave_one_out(spec: RunSpec, context: Context) -> Outcome:
    """Each row of a calibration, predicted by constants that are fitted on the others alone.

    Settings: ``model`` "cifar" or "imagenet", ``calibrate`` as above, ``starts`` [[4 constants]] from which each fit
    begins, ``rounds``, ``images``. Results: ``predicted`` [row][start] in the unit of the printed times. Where rows
    are fewer than constants, fits from different starts end at different constants: how far apart their predictions
    lie is how little the other rows say of the one left out.
    """
    s = thaw(spec.settings)
    models: dict[str, Callable[..., float]] = {"cifar": cifar_seconds, "imagenet": imagenet_minutes}
    predict = partial(models[s["model"]], s, spec.seed)
    rows, predicted = s["calibrate"], []
    for at, (*row, _) in enumerate(rows):
        others = rows[:at] + rows[at + 1 :]
        predicted.append([predict(fit(predict, others, start), tuple(row)) for start in s["starts"]])
        context.report((at + 1) / len(rows))
    return Outcome("finished", {"rows": [row[:-1] for row in rows], "predicted": predicted})


def run(spec: RunSpec, context: Context) -> Outcome:
    """Count the updates of a protocol."""
    s, learners, n = spec.settings, spec.settings["learners"], spec.settings["n"]
    if "clock" in s:
        means = [s["clock"].get("slow", 1.0), *[1.0] * (learners - 1)]
        schedule = play(Server(learners, n), learners, GammaDurations(means, s["clock"]["jitter"], spec.seed))
    else:
        schedule = iter(simulation(s["server"], learners, n, s["batch"], spec.seed))
    early = Staleness().add(islice(schedule, s["warm_up"]))
    steady = Staleness().add(islice(schedule, s["updates"] - s["warm_up"]))
    bound = 2 * max(n, 1)
    results = {
        "mean": steady.mean,
        "above_2n": early.above(bound) + steady.above(bound),
        "gradients": early.total + steady.total,
        "virtual_seconds": steady.seconds,
    }
    counts = Counter(early.counts) + steady.counts
    averages = np.asarray([*early.averages, *steady.averages], dtype=np.float32)
    step = max(1, len(averages) // 2000)
    shown = pd.DataFrame({"update": np.arange(0, len(averages), step, dtype=np.int32), "average": averages[::step]})
    spread = pd.DataFrame(
        {"staleness": np.asarray(sorted(counts), dtype=np.int32), "gradients": [counts[k] for k in sorted(counts)]}
    )
    return Outcome("finished", results, {"averages": shown, "distribution": spread})
