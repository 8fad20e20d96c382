"""Rudra's times and systems on fabricated frames: every row, run and system with a number of its own."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from fabricated_frames import frame_of, student
from known_worlds import PRODUCTS, ROWS, quantity

from paper_figures.rudra.plans import BASELINE, CALIBRATED, CALIBRATED4, TABLE2, TABLE3, TABLE4, printed_seconds
from paper_figures.rudra.settings import LEARNERS
from suite.claims.intervals import wilson
from suite.papers.artifact import Missing


@pytest.mark.parametrize("phase", range(4))
def test_predicted_times_are_read_row_by_row(phase: int) -> None:
    rows = list(dict.fromkeys([*ROWS, *((1, mu, 1) for mu in (4, 128))]))
    time = {row: 1500 + 400 * math.sin(3 * at + phase) + at for at, row in enumerate(rows)}
    other = {row: 50.0 + 3 * at for at, row in enumerate(CALIBRATED)}
    frame = frame_of(
        {
            "times": [{"rows": rows, "predicted": list(time.values())}],
            "left out": [{"rows": list(other), "predicted": [[t, t - 2, t + 4] for t in other.values()]}],
        }
    )
    gain = lambda n, mu, k: time[0, mu, 1] / time[n, mu, k]
    groups = [[TABLE2[at - 1] for at in several] for several in PRODUCTS]
    fastest = [sorted(group, key=time.__getitem__)[0] for group in groups]
    pairs = [(a, b) for group in groups for a in group for b in group if a[2] < b[2]]
    known: dict[str, list[float]] = {
        "table2/one-softsync-fastest": [sum(row[0] == 1 for row in fastest) / 4],
        "table2/time-falls-with-lambda": [sum(time[b] < time[a] for a, b in pairs) / len(pairs)],
        "table3/r02-training-time": [time[0, 8, 30]],
        "table3/r04-training-time": [time[0, 4, 30]],
        "fig8a/softsyncs-similar": [time[k, 128, k] / time[1, 128, k] for k in LEARNERS[1:]],
        "fig8a/hardsync-worst": [min(min(gain(k, 128, k), gain(1, 128, k)) - gain(0, 128, k) for k in (18, 30))],
        "fig8b/one-softsync-best": [gain(1, 4, 18) - gain(18, 4, 18)],
        "fig8b/hardsync-worst": [gain(30, 4, 30) - gain(0, 4, 30), gain(1, 4, 30) - gain(30, 4, 30)],
    }
    for at, row in enumerate(TABLE2, 1):
        if row not in CALIBRATED:
            known[f"table2/r{at:02d}-training-time"] = [time[row]]
    for name, values in known.items():
        each = quantity(name)
        assert each.of(frame).values == pytest.approx(values), name
    for row, name in ((TABLE2[0], "table2/r01-left-out"), (BASELINE, "table3/baseline-left-out")):
        each = quantity(name)
        found = each.of(frame)
        assert (found.spans, found.n) == (((other[row], other[row] - 2, other[row] + 4),), 1)
        assert found.note == "calibrated on the other rows; ends over 3 starts of the fit"


def test_a_model_of_times_is_held_beside_learners_alone() -> None:
    rows = list(dict.fromkeys([*TABLE2, *TABLE3]))
    near = [printed_seconds(row) * (1.21 if row == (4, 64, 4) else 1.19) for row in rows]
    found = quantity("table2/times-held-out").of(frame_of({"times": [{"rows": rows, "predicted": near}]}))
    assert found.values == (19, 14, 20)  # 14: hours of 1, 2, 10 and 30 learners, joined by lines on logarithms


def test_numbers_of_imagenet_are_read_run_by_run_and_system_by_system() -> None:
    """Three runs of processes, of which each has shares and staleness of its own."""
    system = {"base": [20.0, 23.0, 21.0], "adv": [52.0, 50.0, 57.0], "adv*": [97.0, 99.0, 98.5]}
    stale = {"base": [1.1, 1.2, 1.0], "adv": [1.3, 1.5, 1.6], "adv*": [2.0, 2.6, 2.1]}
    runs = [
        {"skipped": "", **{f"overlap {s}": of[at] for s, of in system.items()},
         **{f"staleness {s}": of[at] for s, of in stale.items()}}
        for at in range(3)
    ]  # fmt: skip
    minutes = {row: 100.0 + 17 * at for at, row in enumerate(TABLE4.values())}
    model = {"rows": list(minutes), "predicted": list(minutes.values())}
    model |= {"overlap base": 11.0, "overlap adv": 56.0, "overlap adv*": 99.0}
    left = {
        "rows": [TABLE4[name] for name in CALIBRATED4],
        "predicted": [[k + 0.5, k + 0.1, k + 0.7] for k in range(4)],
    }
    groups = {"times": [model], "left out": [left], "processes": runs, "processes, paper's pace": runs[::-1]}
    frame = frame_of(groups | {"adv": [{"mean": 1.25}], "adv*": [{"mean": 2.0}]})
    ahead = lambda found, a, b: [y - x for x, y in zip(found[a], found[b], strict=True)]
    known: dict[str, list[Any]] = {
        "fig3/staleness-higher": [0.75],
        "table1/rudra-base": [11],
        "table1/rudra-adv": [56],
        "table1/rudra-adv-star": [99],
        "table1/nearly-all-hidden": [student(system["adv*"])],
        "table1/staleness-near-one": [student(stale["base"]), student(stale["adv"])],
        "table1/staler-between-processes": [student(ahead(stale, "adv", "adv*"))],
    }
    for suffix in ("", "-at-pace"):
        known["table1/each-overlaps-more" + suffix] = [
            student(ahead(system, a, b)) for a, b in pairwise(("base", "adv", "adv*"))
        ]
    for name, row in TABLE4.items():
        known[f"table4/{name}"] = [minutes[row] / (60 if name == "baseline-hours" else 1)]
    for at, name in enumerate(CALIBRATED4):
        known[f"table4/{name.removesuffix('-time')}-left-out"] = [(at + 0.5, at + 0.1, at + 0.7)]
    for name, wanted in known.items():
        spans = [each if isinstance(each, tuple) else (each,) * 3 for each in wanted]
        assert quantity(name).of(frame).spans == tuple(map(pytest.approx, spans)), name
    groups["processes"] = [{"skipped": "no root"}] * 3
    with pytest.raises(Missing, match="no root"):
        quantity("table1/nearly-all-hidden").of(frame_of(groups))


def test_pairs_of_measurements_and_shares_of_gradients() -> None:
    ratios = [1.4, 1.9, 1.2]
    jitter = [{"mean": 0.5 + k / 10} for k in range(4)]
    frame = frame_of(
        {
            "throughput": [{"training_ratios": ratios, "product_ratios": [1 / ratio for ratio in ratios]}],
            "30-softsync": [{"above_2n": 7, "gradients": 600}],
            "zero jitter": jitter,
        }
    )
    logs = student([math.log(ratio) for ratio in ratios])
    assert quantity("fig6/small-mu-longer").of(frame).spans == (pytest.approx(tuple(map(math.exp, logs))),)
    assert quantity("fig6/gemm-throughput").of(frame).spans == (pytest.approx((-logs[0], -logs[2], -logs[1])),)
    share = wilson(7, 600)
    assert quantity("fig4b/tail").of(frame).spans == ((share.mean, share.low, share.high),)
    assert quantity("fig7b/staleness-one").of(frame_of({"zero jitter": jitter})).values == pytest.approx(
        [0.5, 0.6, 0.7, 0.8]
    )
