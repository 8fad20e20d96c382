"""Rudra's Table 4 trained on a stand-in: what its rows have in common, and what is read of their errors."""

from __future__ import annotations

import math
from itertools import islice, pairwise
from statistics import fmean

import pytest
from fabricated_frames import frame_of, student
from known_worlds import quantity, trained
from scipy import stats

from paper_figures.rudra import stand_in
from paper_figures.rudra.plans import TABLE4
from suite.papers.artifact import Missing
from suite.parameter_server.simulation import simulation
from suite.spec import thaw, trainings

ENDS = ([80, 81, 80.5], [83, 82, 83.5], [83, 84, 85], [86, 85, 87])  # % of errors, a list a row, a seed each
MINUTES = {"base-hardsync": 300.0, "base-softsync": 240.0, "adv-softsync": 200.0, "adv-star-softsync": 100.0}
TIMES = {"rows": [TABLE4[f"{name}-time"] for name in MINUTES], "predicted": list(MINUTES.values())}


def test_rows_differ_in_what_the_paper_names() -> None:
    """Softsync's three begin with one epoch of base-hardsync; all see three epochs, and drop the rate together."""
    hardsync, *softsyncs = (stand_in.training(name, 1) for name in stand_in.SYSTEMS)
    own = hardsync.settings
    assert own["rate"] == pytest.approx(0.01 * math.sqrt(16 * 18 / 256))
    before = [thaw(trainings(spec)[0].settings) for spec in softsyncs]
    for warm in before:
        warm.pop("record")
        assert warm == before[0]
        assert {name: warm[name] for name in ("rate", "batch", "workers", "descent")} == thaw(
            {name: own[name] for name in ("rate", "batch", "workers", "descent")}
        )
    for spec in (hardsync, *softsyncs):
        stages = [stage.settings for stage in trainings(spec)]
        seen = [s["updates"] * s["batch"] * s["workers"] / 50_000 for s in stages]
        assert sum(seen) == pytest.approx(3, rel=2e-3)
        last, examples = stages[-1], stages[-1]["batch"] * stages[-1]["workers"]
        drops = [at * examples / 50_000 + sum(seen[:-1]) for at, _ in last["drops"]]
        assert drops == pytest.approx([1.5, 2.5], rel=2e-3)
        assert [factor for _, factor in last["drops"]] == [0.1, 0.01]
        assert last["algorithm"]["history"] >= 1 + stalest(last)
        assert bool(stages[1:]) == (last["descent"]["rule"] == "adagrad")


def stalest(settings) -> int:
    """The largest staleness among the first updates."""
    server = simulation(settings["server"], settings["workers"], settings["algorithm"]["n"], settings["batch"], 1)
    return max(turn.t - entry.read for _, turn in islice(iter(server), 300) for entry in turn.entries)


def test_errors_step_from_row_to_row_with_the_spread_of_all() -> None:
    runs = {
        name: [{"test_error": end / 100} for end in ends] for name, ends in zip(stand_in.SYSTEMS, ENDS, strict=True)
    }
    squares = sum((end - fmean(ends)) ** 2 for ends in ENDS for end in ends)
    half = stats.t.ppf(0.975, 8) * math.sqrt(squares / 8 * 2 / 3)
    steps = [fmean(more) - fmean(less) for less, more in pairwise(ENDS)]
    found = quantity("table4/error-order").of(frame_of(runs))
    assert found.spans == tuple(pytest.approx((step, step - half, step + half)) for step in steps)
    assert (found.n, found.freedom) == (3, 8)
    with pytest.raises(Missing, match="a single seed"):
        quantity("table4/error-order").of(frame_of({name: ends[:1] for name, ends in runs.items()}))


def test_times_to_the_highest_of_the_ends_on_straight_lines_between_tests() -> None:
    """Of each seed the level is where adv*-softsync ends, after 300 + 3 x 100 minutes; hardsync has no start before.

    Base-hardsync falls from 99 to 60% in four epochs, the others of softsync from 90 to 60% in three.
    """
    ends, runs = [84.0, 78.0, 75.0], {}
    for name in stand_in.SYSTEMS:
        hard, last = name == "base-hardsync", name == stand_in.SYSTEMS[-1]
        runs[name] = [
            trained([0, 4] if hard else [0, 3], [0.99 if hard else 0.9, end / 100 if last else 0.6]) for end in ends
        ]
    ratios = {
        "base-hardsync": [math.log(1200 * (99 - end) / 39 / 600) for end in ends],
        "base-softsync": [math.log((300 + 720 * (90 - end) / 30) / 600) for end in ends],
        "adv-softsync": [math.log((300 + 600 * (90 - end) / 30) / 600) for end in ends],
    }
    seen = [student(each) for each in ratios.values()]
    found = quantity("fig9/first-to-48").of(frame_of(runs | {"times": [TIMES]}))
    assert found.spans == (pytest.approx(tuple(min(ends) for ends in zip(*seen, strict=True))),)
    assert stand_in.minutes_to([(0.0, 0.5), (9.0, 0.4)], 0.6) == 0
