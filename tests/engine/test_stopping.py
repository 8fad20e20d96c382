"""The stopping rule of a training run: evaluations below it end the run; one that met none says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_cases import compute, digest, digits, stored

from suite.training.loop import answered

EVERY = {"evaluate": {"every": 6, "test_examples": 200}, "updates": 36, "batch": 16}


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """The test losses of the run without a rule, at updates 0, 6, ..., 36."""
    store = tmp_path_factory.mktemp("store")
    compute(store, digits(0, **EVERY))
    run = stored(store, digits(0, **EVERY))
    assert run.status == "finished"
    found = list(run.curve("evaluations")["test_loss"])
    assert found[3] < min(found[:3]), "the rule below must have something to wait for"
    return found


@pytest.mark.parametrize("below", [1.0001, 1.0])
def test_the_first_evaluation_below_ends_the_run(tmp_path: Path, losses: list[float], below: float):
    """Of what the fourth evaluation reads, or the least bit more: what equals the rule is not below it."""
    stop = {"metric": "test_loss", "below": losses[3] * below}
    compute(tmp_path, spec := digits(0, **EVERY, stop=stop))
    run = stored(tmp_path, spec)
    ended = next(place for place, loss in enumerate(losses) if loss < stop["below"])
    assert (ended == 3) is (below > 1)
    assert (run.status, run.results["updates"]) == ("finished", 6 * ended)
    assert list(run.curve("evaluations")["test_loss"]) == losses[: ended + 1]


def test_a_median_below_ends_the_run_some_evaluations_later(tmp_path: Path, losses: list[float]):
    """Three of the untrained model's and the next two's losses: their median is the middle one's."""
    bound = sorted(losses[:3])[1] * 1.0001
    stop = {"metric": "test_loss", "below": bound, "median": 3, "after": 2}
    compute(tmp_path, spec := digits(0, **EVERY, stop=stop))
    run = stored(tmp_path, spec)
    assert (run.status, run.results["updates"]) == ("finished", 6 * 4)
    assert list(run.curve("evaluations")["test_loss"]) == losses[:5]


def test_one_evaluation_below_is_no_median_below():
    rule = {"below": 0.5, "median": 3, "after": 1}
    values = [0.9, 0.1, 0.8, 0.7, 0.4, 0.3, 0.6]
    assert [answered(values[:count], rule) for count in range(1, 8)] == [False] * 6 + [True]


def test_a_run_that_never_meets_its_rule_is_out_of_budget(tmp_path: Path, losses: list[float]):
    compute(tmp_path, spec := digits(0, **EVERY, stop={"metric": "test_loss", "below": min(losses) / 2}))
    run = stored(tmp_path, spec)
    assert (run.status, run.results["updates"]) == ("out of budget", 36)


def test_runs_in_one_process_have_the_bits_of_each_alone(tmp_path: Path):
    specs = [digits(seed) for seed in range(2)]
    compute(tmp_path / "both", *specs)
    compute(tmp_path / "alone", specs[1])
    assert digest(tmp_path / "both", specs[1]) == digest(tmp_path / "alone", specs[1])
