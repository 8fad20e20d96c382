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
from suite.papers.catalogue import entries
from suite.papers.counterfeits import COUNTERFEITS, GENUINE

# Their rules are tried although the verdict is *undetermined*, whatever they say.
CLAIMS = {c.id: replace(c, undetermined="") for c in entries("isgd") if c.artifact in ("isgd/fig1a", "isgd/fig1b")}
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


def test_speeds_are_told_apart_while_losses_fall_and_not_by_what_is_left_of_them():
    """Ten batches that fall together and end with a tenth between their residual losses of 0.004."""
    at = np.arange(2000)[:, None]
    together = np.exp(-at / 100) * np.ones(10) + 0.004 * np.linspace(0.9, 1.1, 10)
    assert fig1.speed_spread(together) < 0.02
    apart = np.exp(-at / np.linspace(80, 120, 10))
    assert fig1.speed_spread(apart) > 0.2
