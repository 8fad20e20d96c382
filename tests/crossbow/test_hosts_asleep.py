"""What is read of hosts that sleep to compute, on frames made by hand, and that what they exchange is an average."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from crossbow_worlds import found, frame_for
from fabricated_frames import student, verdict

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
    ],
)
def test_both_verdicts_follow_from_seconds(name, true, false):
    figure = name.partition("/")[0]
    assert verdict(f"crossbow/{name}", world(figure=figure, **true)) == "reproduced"
    assert verdict(f"crossbow/{name}", world(figure=figure, **false)) == "not reproduced"


def test_seconds_are_compared_repeat_by_repeat():
    """Repeats differ fivefold, and each ratio by thousandths."""
    frame = world(0.2, "fig17", growth=1.3)
    table = frame.table("hosts", "hosts").set_index(["learners", "tau", "barrier"])["seconds"].sort_index()
    log = lambda m, tau: np.log(table.loc[m, tau, False].to_numpy())  # [repeats]
    for m in (1, 4):
        percent = [100 * math.expm1(end) for end in student(log(m, 1) - log(m, 0))]
        assert found(f"fig17/gain-m{m}", frame).spans == (pytest.approx(tuple(percent)),)
    steps = [student(log(1, shorter) - log(1, longer)) for shorter, longer in ((1, 2), (2, 4), (4, 0))]
    assert found("fig17/rises-with-tau", frame).spans == tuple(map(pytest.approx, steps))


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
