"""What is read of hosts that sleep to compute, on frames made by hand, and that what they exchange is an average."""

from __future__ import annotations

import time

import pytest
from crossbow_worlds import found, frame_for
from fabricated_frames import verdict

from paper_figures.crossbow.experiments.hosts import Learners
from paper_figures.crossbow.server import spec
from suite.communication.collectives import Local
from suite.communication.link import Device


def world(exchange: float, figure: str, growth: float = 1.0, task=(1.0, 1.619, 2.857)):
    """Iterations of a task and its share of an exchange, ``growth`` times as long for each learner more."""
    rows = [
        {
            "repeat": repeat,
            "learners": m,
            "tau": tau,
            "barrier": barrier,
            "seconds": (task[at] + exchange * growth ** (m - 1) / tau * (2 if barrier else 1) if tau else task[at])
            * (repeat + (m + tau) % 3 / 1000),
        }
        for repeat in range(1, spec().settings["repeats"] + 1)
        for at, m in enumerate((1, 2, 4))
        for tau, barrier in ((1, False), (2, False), (4, False), (0, False), (1, True))
    ]
    table = {name: [row[name] for row in rows] for name in rows[0]}
    return frame_for(figure, "reduced", lambda *given: {"skipped": "", "tables": {"hosts": table}})


@pytest.mark.parametrize(
    ("name", "true", "false"),
    [
        ("fig17/gain-m1", {"exchange": 0.2}, {"exchange": 0.01}),
        ("fig17/gain-m4", {"exchange": 0.77}, {"exchange": 0.4}),
        ("fig17/rises-with-tau", {"exchange": 0.1}, {"exchange": -0.1}),
        ("fig13a/throughput", {"exchange": 0.1, "growth": 0.5}, {"exchange": 0.1, "growth": 8.0}),
    ],
)
def test_both_verdicts_follow_from_seconds(name, true, false):
    figure = name.partition("/")[0]
    assert verdict(f"crossbow/{name}", world(figure=figure, **true)) == "reproduced"
    assert verdict(f"crossbow/{name}", world(figure=figure, **false)) == "not reproduced"


def test_gains_are_paired_by_repeat():
    gain = found("fig17/gain-m1", world(0.2, "fig17"))
    assert gain.values == pytest.approx([20], abs=0.2)
    ((_, low, high),) = gain.spans
    assert high - low < 0.2, "repeats differ fivefold, and each ratio by thousandths"


def test_hosts_exchange_what_algorithm_1_says():
    """Two replicas at 0 and 4 approach the average model, which takes their corrections; by hand with alpha = 1/2."""
    learners, device = Learners(Local(2), 2, 3, 1, barrier=True), Device()
    learners.gradient.zero_()
    learners.replicas[1] = 4.0
    began = time.monotonic()
    for t in range(3):
        learners.iterate(t, device, 0.01)
    assert learners.replicas[:, 0].tolist() == pytest.approx([1.9, 2.4])
    assert learners.average.tolist() == pytest.approx([2.22] * 3)
    assert time.monotonic() - began >= 0.03
