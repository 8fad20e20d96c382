"""The experiment of this question by name. Nothing here imports torch before a run starts."""

from __future__ import annotations

from suite.experiment import Experiment, bodies, lazily
from suite.runner import cost
from suite.spec import RunSpec, thaw
from suite.training.settings import SERVED

REACHED = 0.6  # of its budget that a trial takes on average: it stops at the target


def parts(spec: RunSpec) -> list[tuple[RunSpec, float]]:
    """The trainings of a study, as the harness's own, and the share of its budget that each is likely to take."""
    settings = thaw(spec.settings)
    study = settings.pop("study")
    trials = [
        RunSpec("train", {**settings, **trial}, study["tuning_seed"])
        for trial in study["trials"][: study.get("tried")]
    ]
    fresh = [RunSpec("train", {**settings, **study["trials"][0]}, seed) for seed in study["seeds"]]
    return [(each, REACHED) for each in trials] + [(each, 1.0) for each in fresh]


def seconds(spec: RunSpec) -> float:
    """Gradients, evaluations on the validation part, and what updates take besides, over all trainings of a study."""
    return sum(share * cost.seconds(part) for part, share in parts(spec))


body = bodies(__name__)


EXPERIMENTS = {
    "together/study": Experiment(
        body("study:study"),
        seconds,
        cost.data,
        cost.memory,
        measure=lazily("suite.runner.autotune:measure_training"),
        check=body("study:check"),
        settings={**SERVED, "study": dict},
    )
}
