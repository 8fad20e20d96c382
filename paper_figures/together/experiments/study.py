"""The experiment ``together/study``: one method tuned on its trials, then trained on fresh seeds as it was tuned.

Settings are those of ``train`` (:mod:`suite.training.loop`), with ``server`` those of a server's training, and::

    study   {trials, tuning_seed, seeds, batch, validation, target, median, tried?, update_seconds?}

``trials`` is a list of settings that take the place of the study's own, each one training on ``tuning_seed`` that
ends at the target. The best is the one with the fewest gradient evaluations to the target; of trials that do not
reach it, the one with the lowest error at its end. Its settings are then trained on ``seeds``, to the end of the
budget. With ``update_seconds``, pairs of a batch size and seconds of an update, only the first ``tried`` are trained.
Each rate's trials determine N(M) = N_inf + alpha / M, and of all ``trials`` the one of the least predicted seconds is
chosen (:mod:`suite.batch_size.chosen`).

The error that counts is that on ``validation`` training images that no training reads: those behind the images of
``data.subset`` in the draw that made the subset. Test images are read once, at the end of a training on a fresh seed.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import Any

from torch import Tensor

from suite.batch_size.chosen import choose
from suite.batch_size.law import FitError, Updates
from suite.data import images
from suite.experiment import Context, Outcome
from suite.files import write_whole
from suite.lazy import pd
from suite.parameter_server.training import ServerRun
from suite.runner.pilot import build
from suite.runner.pilot import check as check_training
from suite.spec import RunSpec, thaw
from suite.training.build import subset_draw
from suite.training.loop import TrainingRun
from suite.training.numerics import apply

RESULT = "ended.json"  # of a training that has ended, in its folder


def study(spec: RunSpec, context: Context) -> Outcome:
    """Run or resume a study: all trials, the choice, all fresh seeds. Divergence is an outcome of a training."""
    apply(context.execution)
    settings = thaw(spec.settings)
    plan = settings.pop("study")
    pilots = plan["trials"][: plan.get("tried")]
    trainings = len(pilots) + len(plan["seeds"])

    def train(place: int, changes: Mapping[str, Any], run_seed: int, *, tuning: bool) -> dict[str, Any]:
        report = lambda fraction: context.report((place + fraction) / trainings)
        inside = replace(context, folder=context.folder / f"training-{place}", report=report)
        return training({**settings, **changes}, plan, run_seed, inside, tuning=tuning)

    tried = [train(i, trial, plan["tuning_seed"], tuning=True) for i, trial in enumerate(pilots)]
    choice = by_law(plan, tried) if "update_seconds" in plan else best(tried)
    first = len(tried)
    fresh = [train(first + i, plan["trials"][choice], s, tuning=False) for i, s in enumerate(plan["seeds"])]
    return outcome(choice, tried, fresh, plan["seeds"])


def check(spec: RunSpec, context: Context) -> None:
    """Set up every trial. Raises ValueError, also for a setting in whose place each trial has its own."""
    settings = thaw(spec.settings)
    trials = settings.pop("study")["trials"]
    for name, value in trials[0].items():
        if settings[name] != value:
            raise ValueError(f"each trial has its own {name}, in study.trials, so that this one would not count")
    for trial in trials:
        check_training(RunSpec("train", {**settings, **trial}), context)


def best(tried: Sequence[Mapping[str, Any]]) -> int:
    """The place of the trial with the fewest gradient evaluations to the target, then the least error at the end."""
    return min(range(len(tried)), key=lambda i: (tried[i]["gradients"], tried[i]["error"]))


def by_law(plan: Mapping[str, Any], tried: Sequence[Mapping[str, Any]]) -> int:
    """The place of the batch size and rate with the least predicted seconds; the best trial where no rate has a law.

    A rate has none where fewer than two of its trials reached the target.
    """
    places = {(rate_of(trial), trial["batch"]): i for i, trial in enumerate(plan["trials"])}
    counted: dict[tuple[float, float], list[Updates]] = defaultdict(list)
    for trial, ended in zip(plan["trials"], tried, strict=False):  # the first of them were tried
        if ended["gradients"] < math.inf:
            updates = ended["gradients"] * plan["batch"] / trial["batch"]
            counted[rate_of(trial)].append(Updates(trial["batch"], (updates,)))
    predicted = {}
    for rate, found in counted.items():
        with suppress(FitError, ValueError):
            choice = choose(dict(plan["update_seconds"]), found)
            predicted[places[rate, choice.batch]] = choice.predicted[choice.batch]
    return min(predicted, key=predicted.__getitem__) if predicted else best(tried)


def rate_of(trial: Mapping[str, Any]) -> tuple[float, float]:
    return trial["rate"], trial["descent"]["momentum"]


def training(
    settings: Mapping[str, Any], plan: Mapping[str, Any], run_seed: int, context: Context, *, tuning: bool
) -> dict[str, Any]:
    """One training, or what an earlier session found that it came to."""
    context.folder.mkdir(exist_ok=True)
    result = context.folder / RESULT
    if result.exists():
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return found
    rule = {"metric": "validation_error", "below": plan["target"], "median": plan["median"]}
    spec = RunSpec("train", {**settings, **({"stop": rule} if tuning else {})}, run_seed)
    session = build(spec, context)
    session.test = HeldOut(session, plan, context, reads_test=not tuning)
    ended = session.run()
    curve = {name: list(values) for name, values in ended.curves["evaluations"].items()}
    found = {"status": ended.status, "curve": curve, **reached(curve, plan)}
    write_whole(result, json.dumps(found).encode())
    return found


class HeldOut:
    """Tests a session's model on held-out training images, and at its end on test images if it ``reads_test``."""

    def __init__(self, session: TrainingRun, plan: Mapping[str, Any], context: Context, *, reads_test: bool):
        self.session, self.plan, self.reads_test = session, plan, reads_test
        data = thaw(session.spec.settings["data"])
        name, subset = data.pop("name"), data.pop("subset")
        loaded = images.load_images(
            name, "train", root=context.data, **{k: data[k] for k in data if k != "transform"}
        )
        held = subset_draw(name, len(loaded.targets))[subset : subset + plan["validation"]]
        device = session.made.x0.device
        self.inputs, self.targets = loaded.inputs[held].to(device), loaded.targets[held].to(device)

    def __call__(self, x: Tensor, buffers: Tensor) -> dict[str, float]:
        session = self.session
        loss, error = session.backend.evaluate(x, buffers, self.inputs, self.targets)
        row = {"gradients": self.gradients(), "validation_loss": loss, "validation_error": error}
        if self.reads_test:
            ends = session.t == session.updates
            row["test_error"] = session.on_images(x, buffers)["test_error"] if ends else math.nan
        return row

    def gradients(self) -> float:
        """Gradient evaluations so far, in batches of the study's size."""
        session = self.session
        if isinstance(session, ServerRun):
            return session.examples / self.plan["batch"]
        return session.t * session.workers * session.spec.settings["batch"] / self.plan["batch"]


def reached(curve: Mapping[str, Sequence[float]], plan: Mapping[str, Any]) -> dict[str, float]:
    """Gradient evaluations to the target, infinite without it, and the error at the end of a training's curve."""
    errors = curve["validation_error"]
    finite = all(map(math.isfinite, curve["validation_loss"]))
    return {
        "gradients": crossing(curve["gradients"], errors, plan["target"], plan["median"]),
        "error": median(errors[-plan["median"] :]) if finite else math.inf,
    }


def crossing(places: Sequence[float], errors: Sequence[float], target: float, window: int) -> float:
    """Where the running median of ``window`` errors falls below the target, between two evaluations.

    Args:
        places: Gradient evaluations, or whatever else grows, at each evaluation.
        errors: The error there.
        target: The error to be reached.
        window: Evaluations of a median, which stands at the last of them.

    Returns:
        The place by linear interpolation; infinite where the median never falls below the target.

    Example:
        >>> crossing([0, 10, 20, 30], [0.9, 0.5, 0.3, 0.1], 0.4, 1)
        15.0
    """
    smooth = [median(errors[i - window + 1 : i + 1]) for i in range(window - 1, len(errors))]
    here = list(places[window - 1 :])
    first = next((i for i, error in enumerate(smooth) if error < target), None)
    if first is None:
        return math.inf
    if first == 0:
        return float(here[0])
    share = (smooth[first - 1] - target) / (smooth[first - 1] - smooth[first])
    return float(here[first - 1] + share * (here[first] - here[first - 1]))


def outcome(
    choice: int, tried: Sequence[Mapping[str, Any]], fresh: Sequence[Mapping[str, Any]], seeds: Sequence[int]
) -> Outcome:
    """The choice, a row for each trial and each fresh seed, and the curves of the fresh seeds."""
    columns = ("status", "gradients", "error")
    trials = pd.DataFrame([{"trial": i, **{name: each[name] for name in columns}} for i, each in enumerate(tried)])
    ends = pd.DataFrame(
        [
            {"seed": s, **{name: each[name] for name in columns}, "test_error": each["curve"]["test_error"][-1]}
            for s, each in zip(seeds, fresh, strict=True)
        ]
    )
    curves = pd.concat([pd.DataFrame(each["curve"]).assign(seed=s) for s, each in zip(seeds, fresh, strict=True)])
    results = {
        "choice": choice,
        "reached": int((ends["gradients"] < math.inf).sum()),
        "diverged": int((ends["status"] == "diverged").sum()),
    }
    tables = {"trials": trials, "ends": ends, "curves": curves.drop(columns="test_error")}
    return Outcome("finished", results, tables)
