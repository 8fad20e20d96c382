"""Processes that do not do the same: one has fewer batches, or averages while the other steps.

That one stalls or dies is told as in tests/matex/test_processes.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import optim_bodies as bodies
import pytest
import torch
from door import MOMENTUM, RATE, examples, network, rows
from torch import nn

from suite.communication.launch import WorkersFailed, spawn

pytestmark = pytest.mark.processes


STANDS = "is alive but has not answered within 4 s; it stands at update 3"


@pytest.mark.parametrize(
    ("what", "first", "second"),
    [
        (
            "average",
            rf"in a sum over workers: worker 1 of 2 {STANDS}, in average\(\), this",
            r"in average\(\): worker 0",
        ),
        ("save", rf"worker 1 of 2 {STANDS}, in the agreement on", r"in the agreement on the groups' settings: w"),
        ("take up", rf"worker 1 of 2 {STANDS}, in take_up", r"in take_up\(\): worker 0"),
    ],
)
def test_processes_that_come_apart_are_told_who_waits_for_what(tmp_path: Path, what: str, first: str, second: str):
    """Within the timeout that was asked for and the look for who is missing, in a process group of the caller's."""
    failures = None
    try:
        spawn(bodies.meets_others, 2, what, str(tmp_path / "end"), timeout=16)
    except WorkersFailed as error:
        failures = error
    for rank, expected in enumerate((first, second)):
        report = tmp_path / f"end{rank}"
        assert report.exists(), failures
        said, seconds = json.loads(report.read_text())
        assert re.search(expected, said)
        assert seconds < 16


def test_a_process_without_batches_goes_on_exchanging_zeros_that_count_as_in_torch():
    """The synchronous mean is torch's alone, with half the gradient where the other process has none."""
    names = ["SMA", "two learners", "AdamW", "EASGD", "DelayedSGD", "delay 1"]
    found, other = spawn(bodies.all_unequal, 2, names, timeout=30)
    assert found == other
    assert {name: each["t"] for name, each in found.items()} == {**dict.fromkeys(names, 8), "two learners": 4}
    module = network(torch.float64)
    opt = torch.optim.SGD(module.parameters(), lr=RATE, momentum=MOMENTUM)
    inputs, targets = examples(torch.float64)
    for t in range(8):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(module(inputs[rows(t)]), targets[rows(t)])
        (loss if t < 3 or t == 7 else loss / 2).backward()
        opt.step()
    wanted = nn.utils.parameters_to_vector(module.parameters())
    assert torch.allclose(
        torch.tensor(found["DelayedSGD"]["model"], dtype=torch.float64), wanted, rtol=1e-12, atol=1e-14
    )
