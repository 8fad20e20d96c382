"""What every algorithm owes to the contract, and what is particular to this one."""

from __future__ import annotations

import pytest
import torch

from lookahead_paper.algorithm import Lookahead
from suite.battery.contract import HEAVY, AlikeWorkers, Case, Contract, Stackable
from suite.battery.quadratic import BATCHES, LR, QUADRATIC, TABLE, D, close, drive, shares
from suite.communication.collectives import Local


@pytest.mark.parametrize("case", [Case(Lookahead(HEAVY, Local(3))), Case(Lookahead(HEAVY, Local(2), k=1, alpha=0.8))])
class TestLookahead(Contract, AlikeWorkers, Stackable):
    pass


def test_a_trajectory_by_hand():
    x = slow = torch.ones(D, dtype=torch.float64)
    memory = HEAVY.init(x)
    for t in range(60):
        _, gradient = QUADRATIC.evaluate(x, TABLE[t % BATCHES])
        x, memory = HEAVY.step(memory, x, gradient, LR)
        if t % 3 == 2:
            x = slow = slow + 0.25 * (x - slow)
    algorithm = Lookahead(HEAVY, Local(1), k=3, alpha=0.25)
    close(algorithm.model(drive(algorithm, 60, batches=shares(1))), slow)


def test_alpha_1_is_the_optimizer_alone():
    x = torch.ones(D, dtype=torch.float64)
    memory = HEAVY.init(x)
    for t in range(60):
        _, gradient = QUADRATIC.evaluate(x, TABLE[t % BATCHES])
        x, memory = HEAVY.step(memory, x, gradient, LR)
    assert torch.equal(drive(Lookahead(HEAVY, Local(1), alpha=1.0), 60, batches=shares(1)).x, x)


@pytest.mark.parametrize(("k", "alpha"), [(0, 0.5), (5, 0.0), (5, 1.5)])
def test_settings_out_of_range_are_refused(k, alpha):
    with pytest.raises(ValueError, match="at least 1"):
        Lookahead(HEAVY, Local(1), k, alpha)
