"""The knee fit and the four-step method, on synthetic systems and on a small model."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from suite.batch_size.choice import choose, choose_batch
from suite.batch_size.knee import fit_knee, time_updates
from suite.batch_size.law import FitError, Updates


@pytest.mark.parametrize("knee", [1.0, 3.0, 16.0, 100.0, 1024.0])
def test_a_planted_knee_is_found(knee):
    times = {2**k: 1e-4 * max(2**k, knee) for k in range(11)}
    found = fit_knee(times)
    assert found.knee == pytest.approx(knee, rel=1e-9)
    assert found.seconds_per_example == pytest.approx(1e-4, rel=1e-9)
    assert found.misfit < 1e-9


def test_the_knee_fit_is_the_least_of_all_positions():
    times = {1: 1.0, 2: 1.1, 4: 1.3, 8: 1.9, 16: 3.1, 32: 6.0, 64: 12.5}

    def misfit(corner):
        logs = [math.log(t / max(m, corner)) for m, t in times.items()]
        mean = sum(logs) / len(logs)
        return sum((v - mean) ** 2 for v in logs)

    found = misfit(fit_knee(times).knee)
    assert found <= min(misfit(math.exp(i / 500)) for i in range(2100)) + 1e-12


def test_bad_times_are_refused():
    with pytest.raises(ValueError, match="two batch sizes"):
        fit_knee({4: 1.0})
    with pytest.raises(ValueError, match="positive"):
        fit_knee({4: 1.0, 8: 0.0})


def test_timing_takes_turns_and_counts_updates():
    made, now = [], [0.0]

    def update(batch):
        made.append(batch)
        now[0] += 1e-3 * batch

    taken = time_updates(update, [1, 4], rounds=3, seconds_each=0.008, clock=lambda: now[0])
    assert taken[1] == pytest.approx([1e-3] * 3)
    assert taken[4] == pytest.approx([4e-3] * 3)
    rounds = made[4:]  # two warm-ups of each batch size
    assert rounds == ([1] * 8 + [4] * 2) * 3


def test_choice_compares_measured_times():
    counted = [Updates(m, (100 + 1000 / m,)) for m in (4, 256)]
    seconds = {4: 1.0, 16: 1.0, 64: 2.5, 256: 8.0}  # an update at 16 costs no more than at 4
    choice = choose(seconds, counted)
    assert choice.batch == 16
    assert choice.predicted[64] == pytest.approx((100 + 1000 / 64) * 2.5)
    assert choice.closed_form == choice.knee.knee


def test_a_law_that_predicts_no_updates_is_refused():
    counted = [Updates(m, (-1 + 1000 / m,)) for m in (1, 16, 64)]
    with pytest.raises(ValueError, match="batch=4096 no updates"):
        choose({1: 1.0, 4096: 5.0}, counted)


def clusters():
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(4, (400,), generator=generator)
    inputs = torch.randn(400, 8, generator=generator) + 2 * F.one_hot(targets, 8)
    return inputs, targets


def linear(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Linear(8, 4)


def test_the_method_on_a_model_loss_and_data():
    choice = choose_batch(
        linear, F.cross_entropy, clusters(), rate=0.1, threshold=0.45, batches=(1, 8, 64), seeds=(0, 1), rounds=2
    )
    assert choice.batch in (1, 8, 64)
    assert choice.batch == min(choice.predicted, key=choice.predicted.get)
    assert [u.batch for u in choice.counted] == [1, 8, 64]
    counts = [sum(u.seen) / len(u.seen) for u in choice.counted]
    assert counts[0] > counts[1] >= 0.8 * counts[2], "noise costs updates"


def test_a_threshold_out_of_reach_says_so():
    with pytest.raises(FitError, match=r"threshold=0\.001 and limit=40.*none of the runs"):
        choose_batch(
            linear, F.cross_entropy, clusters(), rate=0.1, threshold=0.001, batches=(4, 64), limit=40, rounds=1
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batches": (4,)}, "two or more sizes"),
        ({"batches": (4, 4000)}, "within the 400 examples"),
        ({"batches": (4, 16), "converge": (4,)}, "at least two batch sizes"),
        ({"batches": (4, 16), "share": 0.0}, "share=0"),
    ],
)
def test_bad_requests_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        choose_batch(linear, F.cross_entropy, clusters(), rate=0.1, threshold=0.5, **options)


def test_a_model_whose_state_cannot_be_replayed_is_refused():
    make = lambda seed: nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
    with pytest.raises(ValueError, match="batch norm or dropout"):
        choose_batch(make, F.cross_entropy, clusters(), rate=0.1, threshold=0.5, batches=(4, 16))
