"""The accuracy at which stand-ins are compared follows from what all runs reach, and not from who leads."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from paper_figures.crossbow import fig16, readings, server_model, settings
from paper_figures.crossbow.readings import LADDER, common_target, less_time, paired, rungs
from paper_figures.crossbow.settings import stand_in
from paper_figures.crossbow.tables import eight_gpus_table, modelled_table, shown_target
from suite.model_averaging.time_to_accuracy import epochs_to_accuracy
from suite.papers.artifact import Evidence
from suite.spec import RunSpec
from suite.training.loop import answered

SLOW = [0.3, 0.5, 0.62, 0.71, 0.76, 0.81, 0.84, 0.86, 0.86, 0.86, 0.86]  # median of five: 0.86 at epoch 10
FAST = [0.6, 0.8, 0.86, 0.88, 0.9, 0.91, 0.92, 0.92, 0.92, 0.92, 0.92]


class Scripted:
    """A stored run with the test accuracies of a list."""

    def __init__(self, spec, accuracies):
        self.id, self.spec, self.files = spec.id, spec, {}
        self.table = pd.DataFrame(
            {"update": range(len(accuracies) + 1), "test_error": [0.9, *(1 - a for a in accuracies)]}
        )
        self.environment = {}

    def curve(self, name):
        return {"evaluations": self.table}[name]


def evidence(curves, profile="reduced"):
    """Groups by name, one run for each list of accuracies."""
    groups, runs = {}, {}
    for name, lists in curves.items():
        method, k, *option = name.split()
        more = {option[0]: int(option[1])} if option else {}
        specs = tuple(stand_in("reduced", method, int(k), seed, **more) for seed in range(len(lists)))
        groups[name] = specs
        runs |= {spec.id: Scripted(spec, row) for spec, row in zip(specs, lists, strict=True)}

    class Source:
        read = staticmethod(runs.__getitem__)

    return Evidence(Source, groups, profile)


def test_the_highest_rung_that_every_run_reaches():
    assert rungs([SLOW]) == [rung for rung in LADDER if rung <= 0.86]
    assert rungs([FAST])[-1] == 0.9
    assert rungs([SLOW, FAST])[-1] == 0.85
    assert rungs([FAST, [0.1] * 11]) == []


def test_a_stand_in_is_named_unless_data_or_profile_are_the_papers_own():
    seen = evidence({"sma 4": [FAST]})
    trained = seen.groups["sma 4"][0].settings
    named = readings.stand_in(seen, "sma 4")
    assert named == readings.STAND_INS[trained["model"]["name"]]
    assert readings.described(seen, "sma 4", 0.85, "why") == f"why; to 85%; {named}"
    assert readings.stand_in(evidence({"sma 4": [FAST]}, "paper"), "sma 4") == ""
    on_mnist = RunSpec("train", {**trained, "data": settings.MNIST})
    seen.groups["sma 4"] = (on_mnist,)
    assert readings.stand_in(seen, "sma 4") == ""
    assert readings.described(seen, "sma 4", None) == ""


def test_the_printed_target_at_the_papers_scale_and_a_common_rung_below():
    curves = {"sma 4": [FAST, FAST], "ea-sgd 4": [FAST, SLOW]}
    assert common_target(evidence(curves, "paper"), *curves, printed=0.88) == 0.88
    assert common_target(evidence(curves), *curves) == 0.85
    assert common_target(evidence(curves), *reversed(curves)) == 0.85
    assert common_target(evidence(curves), "sma 4") == 0.9
    assert common_target(evidence({"sma 4": [[0.1] * 11]}), "sma 4") == LADDER[0]


def test_a_run_that_never_arrives_leaves_the_comparison_open():
    found = paired(evidence({"sma 4": [FAST], "ea-sgd 4": [[0.1] * 11]}), "sma 4", "ea-sgd 4", less_time)
    assert math.isinf(found.high[0])
    assert "1 of 1 runs never reached" in found.note


def test_any_epochs_that_seldom_averaging_costs_speak_for_averaging_always():
    arriving = {at: [0.1] * (at - 3) + [0.95] * 10 for at in (150, 151)}
    for tau4, best in ((151, 1.0), (150, 4.0)):
        seen = evidence({"sma 8": [arriving[150]], "sma 8 tau 4": [arriving[tau4]]})
        found = dict(fig16.measure_epochs(seen))
        assert found["tta-tau4"].values == (pytest.approx(100 * (tau4 / 150 - 1)),)
        assert found["tau1-best"].values == (best,)


def test_a_drawing_aims_at_what_most_runs_of_every_group_reach():
    never = [0.1] * 11
    curves = {"sma 4": [FAST, FAST, FAST], "ea-sgd 4": [FAST, SLOW, never]}
    assert common_target(evidence(curves), *curves) == LADDER[0], "one run that never learned decides"
    assert shown_target(evidence(curves), list(curves), 0.88) == 0.85
    assert shown_target(evidence(curves), ["sma 4"], 0.88) == 0.9
    assert shown_target(evidence({"sma 4": [FAST, never]}), ["sma 4"], 0.88) == LADDER[0], "half is not most"
    assert shown_target(evidence(curves, "paper"), list(curves), 0.88) == 0.88


def test_the_cost_model_meets_the_printed_values_it_was_solved_from_and_marks_them():
    table = modelled_table().set_index(["learners", "interval"])
    fitted = table[table["calibrated"]]
    assert set(fitted.index) == {(m, tau) for m in (1, 4) for tau in ("1", "none")}
    printed = fitted.dropna(subset="printed")
    assert list(printed["images_per_second"]) == pytest.approx(list(printed["printed"]))
    assert server_model.calibrated().task_seconds[1] == 8 * 64 / 18_500
    speed = table["images_per_second"]
    assert speed[4, "none"] / speed[4, "1"] == pytest.approx(1.27)
    assert speed[4, "none"] / speed[1, "none"] == pytest.approx(1.4)


def test_time_with_eight_gpus_is_epochs_over_the_models_throughput_relative_to_one_learner_on_each():
    seen = evidence({"sma 8": [FAST], "sma 16": [FAST, SLOW]})
    table = eight_gpus_table(seen, 0.8, {1: "sma 8", 2: "sma 16"})
    one, two = (table[table["learners"] == k] for k in (8, 16))
    assert one["time"].tolist() == one["epochs"].tolist()
    speed = server_model.throughput(2) / server_model.throughput(1)
    assert two["time"].tolist() == [pytest.approx(epochs / speed) for epochs in two["epochs"]]


@pytest.mark.parametrize("bumps", [(), (7,), (9, 10), (12, 14, 16)])
def test_a_run_that_ends_with_its_answer_tells_the_epochs_of_the_whole_run(bumps: tuple[int, ...]):
    """Accuracy rises past 80% at epoch 8, but for some epochs in which it falls back to 75%."""
    whole = [0.1, *(0.75 if epoch in bumps else min(0.9, 0.4 + 0.05 * epoch) for epoch in range(1, 41))]
    stop = stand_in("paper", "sma", 4, 0, target=settings.TARGET).settings["stop"]
    errors = [1 - accuracy for accuracy in whole]
    ended = next(count for count in range(1, 42) if answered(errors[:count], stop))
    found = epochs_to_accuracy(whole[1:], settings.TARGET)
    assert epochs_to_accuracy(whole[1:ended], settings.TARGET) == found
    assert found is not None
    assert ended - 1 <= found + 6  # five epochs on; a median of exactly 80% may cost one more


def test_a_target_ends_runs_of_the_papers_size_alone():
    assert "stop" not in stand_in("reduced", "sma", 4, 0, target=settings.TARGET).settings
    assert "stop" not in stand_in("paper", "sma", 4, 0).settings
