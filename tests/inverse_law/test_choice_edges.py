"""The edges of ``choose_batch``: sizes that diverge or cannot run, nothing to measure, ties."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from suite.batch_size.choice import choose_batch
from suite.batch_size.chosen import choose
from suite.batch_size.law import Updates


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
    return choose_batch(make, F.mse_loss, line(), **{**settings, **options})


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


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm1d, lambda width: nn.Sequential(nn.BatchNorm1d(width), nn.Dropout(0.1))]
)
def test_batch_norm_takes_no_batch_of_one_and_the_others_answer(norm):
    def make(seed):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return nn.Sequential(nn.Linear(20, 8), norm(8), nn.Linear(8, 1))

    choice = chosen(make, batches=(1, 4, 16, 64), threshold=5.0)
    assert choice.left_out.keys() == {1}
    assert "ValueError: Expected more than 1 value per channel" in choice.left_out[1]


MODEL = nn.Linear(20, 1)
SHARED = nn.Linear(20, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1e6}, r"threshold=1000000.0 lies above .* before its first update"),
        ({"make": lambda seed: MODEL}, "the same module, or a part of it, twice"),
        ({"make": lambda seed: nn.Sequential(SHARED, nn.Linear(4, 1))}, "the same module, or a part of it, twice"),
        ({"make": lambda seed: MODEL, "seeds": (3,)}, "the same module"),
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
        ({"share": 0.0}, "share=0"),
        ({"seeds": ()}, r"seeds=\(\) must name at least one seed"),
        ({"rounds": 0}, "rounds=0 must be at least 1"),
        ({"budget": 0.0}, "budget=0.0 must be a positive number of seconds"),
        ({"limit": 0}, "limit=0"),
        ({"growth": -0.1}, "growth=-0.1"),
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
        ({"rate": 1e38}, "the loss became NaN at rate=1e"),
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
