"""When ISGD's optimiser trains on a batch again, by losses that the closure makes up; and its mean over workers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from door import RATE, examples, network, rows
from torch import Tensor, nn

from suite.communication.collectives import Local
from suite.optim import ISGD

FUSED = pytest.mark.parametrize("fused", [True, False], ids=["fused solver", "figures' solver"])


class Told:
    """An ISGD of epochs of two batches, after a few whose loss is 1, and how often a batch is trained on."""

    def __init__(self, fused: bool, batches: int = 3, **settings: float):
        self.module = nn.Linear(1, 1, bias=False)
        self.opt = ISGD(self.module, lr=0.0, batches=2, zeta=0.01, fused=fused, **settings)
        for _ in range(batches):
            assert self.calls(1.0) == 1

    def calls(self, *losses: float | list[float] | None) -> int:
        """How often a batch is trained on whose losses these are, the last one from there on."""
        count = 0

        def closure() -> Tensor | None:
            nonlocal count
            count += 1
            self.module.weight.grad = torch.ones(1, 1)
            loss = losses[min(count, len(losses)) - 1]
            return None if loss is None else torch.tensor(loss, dtype=torch.float64)

        self.opt.step(closure)
        return count


@FUSED
def test_a_loss_at_the_limit_is_not_above_it(fused: bool):
    told = Told(fused, margin=0.0)
    assert told.opt.limit == 1.0
    assert told.calls(1.0) == 1
    assert told.calls(9.0, 9.0, 5.0) == 3
    assert told.opt.limit == 5.0


@FUSED
@pytest.mark.parametrize("stop", [0, 1, 2, 5])
def test_a_batch_is_trained_on_again_at_most_so_often(fused: bool, stop: int):
    told = Told(fused, margin=0.0, stop=stop)
    assert told.calls(9.0) == 1 + stop
    assert told.calls(20.0, 0.0) == 1 + min(stop, 1)


@FUSED
@pytest.mark.parametrize("wrong", [None, [9.0, 9.0]])
def test_a_closure_without_a_mean_is_refused_and_the_chart_has_each_batch_once(
    fused: bool, wrong: list[float] | None
):
    told = Told(fused, margin=0.0)
    for losses in ((wrong,), (9.0, wrong)):  # the second in a further step on the same batch
        with pytest.raises(ValueError, match="as one number"):
            told.calls(*losses)
    assert told.calls(3.0) == 1
    assert told.opt.limit == 6.0


@FUSED
def test_the_first_batch_that_has_a_limit_is_not_held_against_it(fused: bool):
    """Line 22 of Algorithm 1 has iter > n."""
    told = Told(fused, batches=1, margin=0.0)
    assert told.calls(3.0) == 1
    assert told.opt.limit == float("inf")
    assert told.calls(9.0) == 1
    assert told.opt.limit == 6.0
    assert told.calls(12.0, 0.0) == 2


@FUSED
def test_the_deviation_is_that_of_an_epochs_losses(fused: bool):
    """Losses of 1 and 1.5: the larger one is a deviation above the mean, and so the limit at a margin of 1."""
    told = Told(fused, margin=1.0)
    for loss in (1.5, 1.0, 1.5, 2.0):
        assert told.calls(loss) == 1
        assert told.opt.limit == max(loss, 1.5)


@FUSED
def test_a_loss_that_is_not_a_number_is_forgotten_at_the_end_of_the_next_epoch(fused: bool):
    """Losses of 3 and 5 have a mean of 4 and a deviation of 1."""
    told = Told(fused, margin=1.0)
    for loss in (float("nan"), 3.0, 5.0):
        assert told.calls(loss) == 1
    assert told.opt.limit == 5.0


def scaled(opt: ISGD, module: nn.Module, t: int, by: int) -> Tensor:
    """The loss of a batch, so many times, and its gradients."""
    inputs, targets = examples()
    opt.zero_grad()
    loss = by * nn.functional.cross_entropy(module(inputs[rows(t)]), targets[rows(t)])
    loss.backward()
    return loss


@FUSED
def test_losses_and_gradients_are_means_over_workers(monkeypatch: pytest.MonkeyPatch, fused: bool):
    """A worker beside one whose losses and gradients are nothing trains as one alone at half of its loss."""
    monkeypatch.setattr(ISGD, "_pieces", lambda self: None)  # gathered in a vector, as for several processes
    ends = []
    for workers in (1, 2):
        module = network()
        opt = ISGD(module, lr=RATE, momentum=0.9, batches=4, zeta=0.5, stop=3, margin=0.0, fused=fused)
        opt.core.algorithm = replace(opt.core.algorithm, collective=Local(workers))
        losses = [opt.step(partial(scaled, opt, module, t, workers)).item() / workers for t in range(16)]
        assert opt.t > 16, "no batch was trained on again"
        ends.append((opt.t, losses, opt.limit, opt.vector.x))
    assert ends[0][:3] == ends[1][:3]
    assert torch.equal(ends[0][3], ends[1][3])
