"""Training of one's own module ended and taken up again: the same bits, and only what every worker has."""

from __future__ import annotations

import bodies
import pytest
from torch import nn

from reference_impls.crossbow import SMA
from suite.distributed.training import Training, join, spawn

CASES = [
    ("matex_agd", {}, 1),
    ("matex_agd", {"delay": 2}, 1),
    ("matex_agd", {"delay": 1, "segmented": True, "order": "backward", "solver": "read"}, 1),
    ("crossbow", {}, 2),
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The folder, and what came out by worker and case; the processes are started once."""
    folder = tmp_path_factory.mktemp("checkpoints")
    return folder, spawn(bodies.interrupted, 2, str(folder), CASES, timeout=30)


@pytest.mark.processes
@pytest.mark.parametrize("case", range(len(CASES)), ids=[f"{name} {options}" for name, options, _ in CASES])
def test_an_interrupted_training_ends_in_the_same_bits(seen, case):
    """Batch norm, dropout, a changed rate and exchanges under way included."""
    folder, workers = seen
    for worker in workers:
        assert worker[case]["interrupted"] == worker[case]["straight"]
        assert worker[case]["plain"] == {"at": 7}
    assert [path.name for path in (folder / str(case)).iterdir()] == ["update-7"]


@pytest.mark.processes
def test_only_a_checkpoint_that_every_worker_has_whole_is_taken_up(tmp_path):
    for nothing, lacking, damaged, refusal in spawn(bodies.partly_lost, 2, str(tmp_path), timeout=30):
        assert nothing == {}
        assert lacking == damaged == {"at": 1}
        assert "DelayedSGD(delay=1" in refusal.partition("not")[0]
        assert "DelayedSGD(delay=2" in refusal.partition("not")[2]
    with join(timeout=5) as group, pytest.raises(ValueError, match="number of workers = 2, not 1"):
        bodies.made(group, ("matex_agd", {"delay": 1}, 1), 0).resume(tmp_path)


def test_a_checkpoint_in_the_middle_of_an_update_is_refused(tmp_path):
    with join(timeout=5) as group:
        training = Training(bodies.network(), group, SMA, rate=0.1, learners=2)
        inputs, targets = bodies.examples()
        training.update(nn.functional.cross_entropy(training.module(inputs[:4]), targets[:4]))
        with pytest.raises(ValueError, match="1 of 2 learners had had their batch of update 0"):
            training.save(tmp_path)
