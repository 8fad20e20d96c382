"""The four-step method on a small model: sizes that diverge or cannot run, nothing to measure, ties, a budget."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from suite.batch_size.choice import Method, choose_batch
from suite.batch_size.chosen import choose
from suite.batch_size.law import FitError, Updates
from suite.batch_size.trainer import Trainer


def line() -> tuple[torch.Tensor, torch.Tensor]:
    """Least squares with noise."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(256, 20, generator=generator)
    return inputs, inputs @ torch.randn(20, 1, generator=generator) + 0.1 * torch.randn(256, 1, generator=generator)


def linear(seed: int) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Linear(20, 1)


def chosen(make=linear, **options):
    settings = {"rate": 0.02, "threshold": 1.0, "batches": (2, 8, 32, 128), "seeds": (0, 1), "rounds": 2}
    return choose_batch(make, options.pop("loss", F.mse_loss), line(), **{**settings, **options})


def test_the_method_on_a_model_loss_and_data():
    choice = chosen(batches=(1, 8, 64))
    assert choice.batch in (1, 8, 64)
    assert choice.batch == min(choice.predicted, key=choice.predicted.get)
    assert [u.batch for u in choice.counted] == [1, 8, 64]
    counts = [sum(u.seen) / len(u.seen) for u in choice.counted]
    assert counts[0] > counts[1] >= 0.8 * counts[2], "noise costs updates"


def test_a_threshold_out_of_reach_says_so():
    with pytest.raises(FitError, match=r"threshold=0\.001 and limit=20.*none of the runs"):
        chosen(threshold=0.001, limit=20)


def test_updates_repeat_with_batch_norm_and_dropout():
    """A replay from any state on gives the same bits, whatever was tested in between."""

    def noisy(seed):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return nn.Sequential(nn.Linear(20, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))

    trainer = Trainer(noisy, F.mse_loss, line(), 0.02, 0.2)
    trainer.begin(0)
    straight = trainer.advance(trainer.state, 0, 20, 8)
    halfway = trainer.advance(trainer.state, 0, 10, 8)
    trainer._read(halfway, 0.1)
    trainer.advance(halfway, 10, 15, 32)
    for one, other in zip(straight, trainer.advance(halfway, 10, 20, 8), strict=True):
        assert torch.equal(one, other)


def test_a_budget_ends_with_the_answer_so_far():
    """Here it ends in the fifth of nine runs, when each batch size has been counted once."""
    method = Method(Trainer(linear, F.mse_loss, line(), 0.02, 0.2), (0, 1, 2), 1.0, 20_000, 0.01, 2, None, print)
    method.tell = lambda p: setattr(method, "deadline", -math.inf) if p.doing == "counting" and p.done == 4 else None
    method.trainer.begin(0)
    method.time([8, 32, 64])
    method.deadline = math.inf
    method.count([64, 32, 8])
    assert method.answer().unfinished == "5 of 9 runs were not counted within the budget"
    assert [len(u.seen) for u in method.answer().counted] == [1, 1, 2]


def test_sizes_that_do_not_fit_into_memory_are_left_out():
    class Hungry(nn.Linear):
        def forward(self, x):
            if len(x) == 64:
                raise torch.OutOfMemoryError("tried to allocate 2 GiB")
            return super().forward(x)

    choice = chosen(lambda seed: Hungry(20, 1), batches=(1, 32, 64), seeds=(0, 1, 2, 3), rate=0.04)
    assert choice.left_out == {64: "tried to allocate 2 GiB"}
    assert set(choice.seconds) == {1, 32}


def test_a_size_that_diverges_is_left_out_with_those_below_and_another_is_counted():
    """At this rate one example and two diverge; of the sizes to count the next larger one takes the place."""
    choice = chosen(batches=(1, 2, 8, 32, 64, 128), converge=(2, 32, 128), rate=0.15)
    assert set(choice.left_out) == {1, 2}
    assert "at rate=0.15 within" in choice.left_out[2]
    assert choice.left_out[1].startswith("below 2, where the loss became")
    assert set(choice.seconds) == {8, 32, 64, 128}
    assert [updates.batch for updates in choice.counted] == [8, 32, 128]
    assert {len(updates.seen) for updates in choice.counted} == {2}
    assert choice.batch in choice.seconds


def test_batch_norm_takes_no_batch_of_one_and_the_others_answer():
    def make(seed):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return nn.Sequential(nn.Linear(20, 8), nn.BatchNorm1d(8), nn.Dropout(0.1), nn.Linear(8, 1))

    choice = chosen(make, batches=(1, 4, 16, 64), threshold=5.0)
    assert choice.left_out.keys() == {1}
    assert "ValueError: Expected more than 1 value per channel" in choice.left_out[1]


@pytest.mark.parametrize(
    ("data", "given"),
    [
        (torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*line())), "DataLoader"),
        (line()[:1], "Tensor"),
        ((line()[0], line()[1].numpy()), "Tensor, ndarray"),
    ],
)
def test_what_is_no_pair_of_tensors_is_refused_in_one_sentence(data, given):
    with pytest.raises(TypeError, match=rf"data must be two tensors \(inputs, targets\), not {given}; "):
        choose_batch(linear, F.mse_loss, data, rate=0.1, threshold=0.5)
    with pytest.raises(ValueError, match="data has 256 inputs and 100 targets"):
        choose_batch(linear, F.mse_loss, (line()[0], line()[1][:100]), rate=0.1, threshold=0.5)


MODEL = nn.Linear(20, 1)
SHARED = nn.Linear(20, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1e6}, r"threshold=1000000.0 lies above .* before its first update"),
        ({"make": lambda seed: MODEL}, "the same module, or a part of it, twice"),
        ({"make": lambda seed: nn.Sequential(SHARED, nn.Linear(4, 1))}, "the same module, or a part of it, twice"),
        ({"make": lambda seed: MODEL, "seeds": (3,)}, "the same module"),
        ({"make": lambda seed: nn.ReLU()}, "return a torch.nn.Module with parameters, not ReLU"),
        ({"loss": nn.MSELoss(reduction="none")}, r"loss must return the mean .* not a tensor of shape \[\d+, 1\]"),
        ({"seeds": (0, 0)}, "equal seeds give the same run again"),
        *[({"rate": rate}, "rate=.* must be a positive, finite number") for rate in (0, float("nan"))],
        ({"rate": float("inf")}, "rate=inf"),
        *[({"threshold": value}, "threshold=.* must be a positive") for value in (0.0, None)],
        *[({"batches": (8, size)}, "a batch size is a whole number") for size in (16.0, True)],
        ({"converge": (8, 32.0)}, "converge has 32.0; a batch size is a whole number"),
        ({"converge": (8, 4000)}, "within the 256 examples"),
        ({"converge": (8,)}, "at least two batch sizes"),
        ({"batches": (8,)}, "two or more sizes"),
        ({"batches": (0, 8)}, "two or more sizes"),
        ({"batches": (8, 16, 4000)}, "within the 256 examples"),
        *[({"share": share}, f"share={share!r}") for share in (0.0, 1.1, "0.2")],
        *[({name: 16}, f"{name}=16 must be a sequence of numbers") for name in ("batches", "converge", "seeds")],
        ({"memory": "3"}, "memory='3' must be a number of bytes"),
        ({"seeds": (0.5, 1)}, "seeds has 0.5; a seed is a whole number"),
        ({"seeds": ()}, r"seeds=\(\) must name at least one seed"),
        *[({"rounds": rounds}, f"rounds={rounds!r} must be a whole number") for rounds in (0, "3")],
        *[({"budget": budget}, f"budget={budget!r} must be a positive") for budget in (0.0, "60")],
        *[({"limit": limit}, f"limit={limit!r} must be a whole number") for limit in (0, math.inf, math.nan, "100")],
        *[({"growth": growth}, f"growth={growth!r}") for growth in (-0.1, math.inf, "0.1")],
    ],
)
def test_where_there_is_nothing_to_measure_it_is_said_before_anything_is_timed(options, message):
    told = []
    with pytest.raises(ValueError, match=message):
        chosen(**options, callback=told.append)
    assert told == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": -1}, "fewer than two batch sizes can be trained with; left out: {2: 'an update needs 0 bytes"),
        ({"rate": 1e38}, "the loss became infinite or NaN at rate=1e"),
    ],
)
def test_a_machine_or_a_rate_that_allows_no_training_is_told(options, message):
    with pytest.raises(ValueError, match=message):
        chosen(**options)


def counts(scatter: float) -> list[Updates]:
    return [Updates(m, tuple((100 + 1000 / m) * (1 + scatter * more) for more in (-1, 0, 1))) for m in (4, 16, 64)]


@pytest.mark.parametrize(
    ("scatter", "seconds", "errors", "tied"),
    [
        (0.01, {4: 1.0, 16: 1.0, 64: 3.0}, {}, ()),
        (0.01, {4: 1.0, 16: 1.0, 64: 1.41}, {}, (64,)),
        (0.6, {4: 1.0, 16: 1.0, 64: 1.6}, {}, (4, 64)),
        (0.01, {4: 1.0, 16: 1.0, 64: 3.0}, {64: 2.0}, (64,)),
    ],
)
def test_sizes_that_cannot_be_told_apart_are_named(scatter, seconds, errors, tied):
    choice = choose(seconds, counts(scatter), errors=errors)
    assert choice.batch == 16
    assert choice.tied() == tied
    table = choice.frame()
    assert tuple(table.loc[table["tied"], "batch"]) == tied


SECONDS = {256: 8.0, 4: 1.0, 64: 2.5, 16: 1.0}
THREE = [Updates(m, tuple(100 + 1000 / m + more for more in (0.0, 5.0, -5.0))) for m in (4, 256)]


def test_a_size_that_never_arrives_is_not_chosen_nor_a_smaller_one():
    """By the law, fitted to the others, batches of 1 and 2 would take the least time."""
    never = Updates(2, (None, None), 5000)
    choice = choose({**SECONDS, 1: 0.01, 2: 0.02}, [never, *THREE])
    assert choice.batch == 16
    assert set(choice.left_out) == {1, 2}
    assert set(choice.predicted) == set(SECONDS)
    with pytest.raises(ValueError, match="none is one that arrives"):
        choose({1: 1.0, 2: 1.0}, [never, *THREE])


def test_counts_may_be_an_array_and_numbers_numpys():
    own = [Updates(np.int64(each.batch), np.array(each.seen)) for each in THREE]
    assert choose(SECONDS, own).predicted == choose(SECONDS, THREE).predicted
    choice = chosen(batches=np.array((2, 8, 32)), converge=np.array((2, 32)), seeds=np.arange(2))
    assert [updates.batch for updates in choice.counted] == [2, 32]
    with pytest.raises(FitError, match="a number for each run"):
        Updates(4, 352.0)


def test_seconds_to_converge_are_updates_times_the_seconds_of_one():
    choice = choose(SECONDS, THREE)
    assert choice.batch == 16  # where an update takes no more than at 4
    assert choice.closed_form == choice.knee.knee
    assert choice.predicted[64] == pytest.approx((100 + 1000 / 64) * 2.5, rel=1e-3)
    assert list(choice.predicted) == list(choice.frame()["batch"]) == [4, 16, 64, 256]
    for batch, row in zip((4, 16, 64, 256), choice.frame().to_dict("records"), strict=True):
        updates, spent = choice.law.prediction_interval(batch, 0.95), SECONDS[batch]
        assert 0 < updates.low < updates.mean < updates.high
        assert [row[name] for name in ("updates from", "updates", "updates to")] == [
            updates.low,
            updates.mean,
            updates.high,
        ]
        limits = [spent * updates.low, spent * updates.mean, spent * updates.high]
        assert [row[name] for name in ("seconds from", "seconds", "seconds to")] == pytest.approx(limits)
        assert choice.interval(batch) == choice.interval(batch, 0.95)
        assert choice.interval(batch, 0.5).high < choice.interval(batch).high
    axes = choice.plot()
    assert axes.get_xlabel() == "batch size"
    assert len(axes.lines) == 2
