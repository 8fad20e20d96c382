"""Eq. 19: what is timed of several processes, and what a line explains of it."""

from __future__ import annotations

import json
import random

import pandas as pd
import pytest
from fabricated_isgd_trainings import evidence

from paper_figures.isgd import eq19, settings
from suite.claims.judge import judge
from suite.papers.counterfeits import Forged
from suite.papers.published import entries
from suite.papers.registry import paper
from suite.runner.execute import RunnerConfig, execute
from suite.runs.store import Store
from suite.spec import RunSpec

GROUPS = settings.update_times("paper")


def taking(seconds, groups=GROUPS):
    """Runs in which an update of a batch takes ``seconds(batch, processes)``, 1% apart between repetitions."""

    def make(name, spec):
        draw, settings = random.Random(name), spec.settings
        rows = [
            {"batch": b, "repeat": r, "communicated": 0.002}
            | {"seconds": seconds(b, settings["processes"]) * draw.gauss(1, 0.01)}
            for r in range(settings["repeats"])
            for b in settings["batches"]
        ]
        files = {"spec.json": spec.to_json().encode(), "outcome.json": json.dumps({"status": "finished"}).encode()}
        return Forged(spec.id, {**files, "updates.parquet": b""}, {}, {"updates": pd.DataFrame(rows)})

    return evidence(groups, make)


def judged(seen):
    measured = dict(eq19.measure(seen))
    claim = next(claim for claim in entries("isgd") if claim.id == "isgd/eq19/linear")
    return judge(claim, measured[claim.quantity], "paper").verdict, measured[claim.quantity]


def test_images_over_a_rate_and_a_constant_are_a_line_and_both_are_told():
    verdict, measured = judged(taking(lambda batch, processes: batch / (10_000 * processes) + 0.05))
    assert verdict == "reproduced"
    told = measured.note.split("; ")
    assert len(told) == len(measured.runs) == 4
    two, four = (next(text for text in told if f"caffe_lenet on {n} processes" in text) for n in (2, 4))
    assert 19_000 < float(two.split("C1 ")[1].split()[0]) < 21_000
    assert 38_000 < float(four.split("C1 ")[1].split()[0]) < 42_000
    assert 45 < float(two.split("C2 ")[1].split()[0]) < 55
    assert "(the sum alone 2 ms)" in two


@pytest.mark.parametrize("power", [0.5, 2])
def test_one_case_that_is_no_line_decides(power):
    bent = lambda batch, processes: 1e-4 * (batch if processes == 2 else 3000 * (batch / 3000) ** power)
    verdict, measured = judged(taking(bent))
    assert verdict == "not reproduced"
    assert measured.values[0] < 0.98


@pytest.mark.processes
def test_processes_time_an_update_and_the_sum_within_it(tmp_path):
    store = Store(tmp_path, create=True)
    spec = RunSpec(
        "isgd/update-times", {"model": "digits_lenet", "processes": 2, "batches": (4, 16, 64), "repeats": 2}
    )
    ended = execute(spec, paper("isgd").experiments.__getitem__, RunnerConfig(store=tmp_path))
    assert ended.state == "stored", ended.why
    table = store.read(spec.id).curve("updates")
    assert sorted(zip(table["batch"], table["repeat"], strict=True)) == [(b, r) for b in (4, 16, 64) for r in (0, 1)]
    assert (table["communicated"] > 0).all()
    assert (table["communicated"] < table["seconds"]).all()
