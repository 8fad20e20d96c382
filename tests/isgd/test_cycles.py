"""Fig. 1's measures on cycles of the paper's length: as the text tells them, and otherwise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from fabricated_isgd_trainings import evidence, training

from paper_figures.isgd import fig1
from suite.claims.judge import judge
from suite.papers.artifact import Missing
from suite.papers.counterfeits import COUNTERFEITS, GENUINE
from suite.papers.published import published

# Their rules are tried although the verdict is *undetermined*, whatever they say.
CLAIMS = {c.id: replace(c, undetermined="") for c in published("isgd") if c.artifact in ("isgd/fig1a", "isgd/fig1b")}
MEASURES = {artifact.id: artifact.measures for artifact in fig1.ARTIFACTS}


def flat(_, spec):
    """Every batch stays at log 10, but for a ripple of its own."""
    draw = np.random.default_rng(spec.settings["updates"])
    return training(spec, losses=math.log(10) + 0.01 * draw.normal(size=spec.settings["updates"]))


def given():
    return evidence(fig1.single_class_runs("paper"), flat)


def measured(claim, found):
    for measure in MEASURES[claim.artifact]:
        try:
            for name, value in measure(found):
                if name == claim.quantity:
                    return value
        except Missing:
            continue
    raise AssertionError(f"{claim.id} is not measured")


@pytest.mark.parametrize("name", [c for c in CLAIMS if c in GENUINE])
def test_what_the_text_tells_is_reproduced_and_each_counterfeit_of_it_is_not(name):
    claim = CLAIMS[name]
    (as_printed,) = GENUINE[name]
    assert judge(claim, measured(claim, as_printed(given())), "paper").verdict == "reproduced"
    for world in COUNTERFEITS[name]:
        assert judge(claim, measured(claim, world(as_printed(given()))), "paper").verdict == "not reproduced", world


def test_every_claim_on_a_cycle_has_a_world_of_its_own():
    assert set(CLAIMS) <= set(COUNTERFEITS)


def test_batches_that_are_never_done_decide_what_they_can():
    """2,200 epochs without completion exclude 1,600 +- 30%, and leave 2,100 +- 30% open."""
    verdicts = {
        name: judge(CLAIMS[f"isgd/fig1a/{name}"], measured(CLAIMS[f"isgd/fig1a/{name}"], given()), "paper").verdict
        for name in ("fast-batches-done", "all-done")
    }
    assert verdicts == {"fast-batches-done": "not reproduced", "all-done": "inconclusive"}
    with pytest.raises(Missing, match="fully trained"):
        list(fig1.measure_completion(given()))


def test_a_completion_is_the_first_epoch_at_which_the_median_is_low():
    trace = np.concatenate([np.full(100, 1.0), np.full(80, 0.001), np.full(30, 1.0), np.full(90, 0.001)])
    trace[:100:30] = 0.001
    assert fig1.completion(trace) == 109  # from there the window of 20 holds more low than high ones
    assert fig1.completion(trace[:105]) == math.inf


def test_a_disturbance_long_after_completion_is_not_taken_for_training():
    late = lambda losses: np.where((np.arange(len(losses)) // 30 == 72)[:, None], 0.05, losses)
    found = dict(fig1.measure_completion(fig1.told(fig1.iid_as_printed(given()), "iid", late)))
    assert found["all-done"].values[0] == pytest.approx(2100, abs=15)
    early = lambda losses: late(fig1.half_way(losses))
    found = dict(fig1.measure_completion(fig1.told(fig1.iid_as_printed(given()), "iid", early)))
    assert found["all-done"].values[0] == pytest.approx(1050, abs=15)


def test_speeds_are_told_apart_while_losses_fall_and_not_by_what_is_left_of_them():
    """Ten batches that fall together and end with a tenth between their residual losses of 0.004."""
    at = np.arange(2000)[:, None]
    together = np.exp(-at / 100) * np.ones(10) + 0.004 * np.linspace(0.9, 1.1, 10)
    assert fig1.speed_spread(together) < 0.02
    apart = np.exp(-at / np.linspace(80, 120, 10))
    assert fig1.speed_spread(apart) > 0.2


@pytest.mark.parametrize(("loss", "stayed"), [(0.09, 1.0), (0.12, 0.75)])
def test_a_trained_batch_stays_so_below_a_loss_of_a_tenth(loss, stayed):
    """One epoch in four lies at this loss, from completion on for 500 epochs."""
    lifted = lambda losses: np.where(np.arange(len(losses))[:, None] % 4 == 0, np.maximum(losses, loss), losses)
    found = dict(fig1.measure_completion(fig1.told(fig1.iid_as_printed(given()), "iid", lifted)))
    assert found["stay-trained"].values[0] == pytest.approx(stayed, abs=0.003)
    assert found["fast-batches-done"].values[0] == pytest.approx(1600, abs=15)


@pytest.mark.parametrize(("of_nine", "step"), [(1600, 50), (1400, -150)])
def test_the_slow_batches_are_all_done_after_all_others(of_nine, step):
    """The last of the others is done at 1,550; one of the four before it is enough to tell otherwise."""
    done = [1200, 1200, 1250, 1620, 1640, 1620, 1500, 1550, 1350, of_nine]
    world = fig1.told(given(), "single", lambda losses: fig1.as_printed(len(losses), [1.0] * 10, done))
    assert dict(fig1.measure_single_completion(world))["slow-batches"].values[0] == pytest.approx(step, abs=20)


def test_a_short_run_says_nothing_of_completion():
    short = evidence(fig1.single_class_runs("reduced"), flat, "reduced")
    for measure in (fig1.measure_epoch_400, fig1.measure_completion, fig1.measure_single_completion):
        with pytest.raises(Missing, match="epochs"):
            list(measure(short))
