"""What may explain a delay's loss: the loss with and without a remedy, and LeNet's largest rates, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from fabricated_frames import frame_of, student
from matex_claims import found, verdict
from matex_worlds import ended

from paper_figures.matex_agd.settings import TRAINED, lenet_rates
from suite.papers.artifact import Frame, Missing

LOSSES = {"serial": (0.20, 0.22, 0.21), "agd3": (0.08, 0.10, 0.07)}  # 12, 12 and 14 points


def trained(**ends: tuple[float, ...]) -> Frame:
    groups = {row.replace("_", " "): [ended([0.1] * 8 + [end]) for end in row_ends] for row, row_ends in ends.items()}
    return frame_of(groups, "reduced")


def test_a_remedy_is_held_against_the_loss_at_the_defaults() -> None:
    frame = trained(
        **LOSSES, plain_serial=(0.19, 0.18, 0.20), plain_agd3=(0.17, 0.17, 0.15), slower_agd3=LOSSES["agd3"]
    )
    assert found("fig1b/momentum-costs", frame).spans == (pytest.approx(student([12 - 2, 12 - 1, 14 - 5])),)
    assert found("fig1b/rate-costs", frame).spans == (pytest.approx((0, 0, 0), abs=1e-9),)
    assert verdict("fig1b/momentum-costs", frame) == "reproduced"
    assert verdict("fig1b/rate-costs", frame) == "not reproduced"
    constant = trained(**LOSSES, constant_serial=(0.3, 0.3, 0.3), constant_agd3=(0.3, 0.29, 0.3))
    assert found("fig1b/schedule-costs", constant).spans == (pytest.approx(student([12, 11, 14])),)
    assert found("fig1b/end-plain-serial", frame).spans == (pytest.approx(student([19, 18, 20])),)
    parts = trained(sgd=(0.18, 0.19, 0.17), agd3=LOSSES["agd3"])
    assert found("fig1b/delay-loses", parts).spans == (pytest.approx(student([10, 9, 10])),)
    assert verdict("fig1b/delay-loses", trained(sgd=LOSSES["agd3"], agd3=LOSSES["agd3"])) == "not reproduced"


def rates(largest: dict[str, tuple[float, ...]]) -> Frame:
    """LeNet at the registered rates: it trains up to the largest of each seed and guesses beyond."""
    largest = {"plain serial": (0.2,) * 3, "plain agd1": (0.1,) * 3, "plain agd2": (0.1,) * 3} | largest
    largest = {"plain agd3": (0.05,) * 3} | largest
    groups: dict[str, list[dict[str, Any]]] = {
        group: [
            {"tables": {"evaluations": {"test_error": [0.9, 0.03 if fits else math.nan]}}, "settings": spec.settings}
            for spec in specs
            for fits in [spec.settings["rate"] <= largest[group.removeprefix("rates ")][spec.seed] + 1e-9]
        ]
        for group, specs in lenet_rates("reduced").items()
    }
    frame = frame_of(groups)
    for group, specs in lenet_rates("reduced").items():
        for run, spec in zip(frame.runs_of(group), specs, strict=True):
            run.spec.seed = spec.seed
    return frame


def test_the_largest_rates_are_compared_by_seed() -> None:
    seen = {"serial": (0.064,) * 3, "agd1": (0.032, 0.032, 0.016), "agd2": (0.008,) * 3, "agd3": (0.004,) * 3}
    frame, two = rates(seen), math.log(2)
    steps = [student([two] * 3), student([2 * two, 2 * two, two]), student([two, two, 2 * two])]
    assert found("fig1b/largest-rates", frame).spans == tuple(map(pytest.approx, steps))
    assert verdict("fig1b/largest-rates", rates(seen | {"agd1": (0.032,) * 3})) == "reproduced"
    assert verdict("fig1b/largest-rates", rates(seen | {"agd3": (0.008,) * 3})) == "not reproduced"
    assert found("fig1b/rate-kept", frame).spans[1] == pytest.approx((1 / 8,) * 3)
    assert found("fig1b/plain-rate-kept", frame).spans[2] == pytest.approx((1 / 4,) * 3)
    # without momentum a half, a half and a quarter stay
    assert found("fig1b/momentum-cuts", frame).spans == (pytest.approx(student([0, 0, two])),)
    assert verdict("fig1b/momentum-cuts", frame) == "inconclusive"
    assert verdict("fig1b/momentum-cuts", rates(seen | {"agd1": (0.016,) * 3})) == "reproduced"
    worse = seen | {"agd1": (0.032,) * 3, "plain agd1": (0.05,) * 3}
    assert verdict("fig1b/momentum-cuts", rates(worse)) == "not reproduced"


@pytest.mark.parametrize("beyond", [0.0, 1.0])
def test_a_largest_rate_outside_the_grid_is_no_number(beyond: float) -> None:
    seen = dict.fromkeys(TRAINED, (0.008,) * 3) | {"serial": (0.064,) * 3, "agd1": (0.032, 0.032, beyond)}
    with pytest.raises(Missing, match="a grid of rates that holds the largest"):
        found("fig1b/largest-rates", rates(seen))
