"""The report's parts one by one: tables beside figures, provenance, commands, and the runs behind them."""

from __future__ import annotations

import csv
import io
import json

import pandas as pd
import pytest
from fake_paper import claim, registered, verdict

from suite.claims.measured import Measured, exact, interval
from suite.report.behind import reasons
from suite.report.data import results, values
from suite.report.provenance import runs_and_environments
from suite.runs.store import DamagedRun, Outcome, Run, encode
from suite.spec import RunSpec


@pytest.fixture
def paper(tmp_path):
    with registered(tmp_path) as made:
        yield made


# --- tables of values


@pytest.mark.parametrize(
    ("made", "ours", "printed"),
    [
        (claim(printed=(10.0, 20.0)), (1.0, 2.0), [10.0, 20.0]),
        (claim("fake/fig1/it", "bound", (10.0,), side="lower"), (1.0, 2.0), [10.0, 10.0]),
        (claim("fake/fig1/it", "bound", (10.0, 20.0), side="lower"), (1.0, 2.0), [10.0, 20.0]),
        (claim("fake/fig1/it", "holds", (0.5,)), (1.0, 2.0, 3.0), [0.5, 0.5, 0.5]),
        (claim("fake/fig1/it", "order", (), order=("a", "b", "c")), (1.0, 2.0), [None, None]),
        (claim("fake/fig1/it", "bound", (10.0, 20.0), side="range"), (1.0, 2.0, 3.0), [10.0, 20.0, None]),
    ],
)
def test_each_value_stands_beside_what_is_printed_of_it(made, ours, printed):
    found = values([verdict(exact(ours), made=made)])
    assert [None if pd.isna(value) else value for value in found["printed"]] == printed
    assert found["ours"].tolist() == found["low"].tolist() == found["high"].tolist() == list(ours)


def test_results_have_the_digits_of_their_interval_and_rounding_alone_reads_as_nothing():
    measured = Measured((0.123456789, 9e-10), (1.2e-9, -9e-10), (1.0, 9.9e-10), 3)
    text = results([verdict(measured, made=claim(printed=(1.0, 2.0)))])
    first, second = csv.DictReader(io.StringIO(text))
    assert [first[name] for name in ("ours", "low", "high", "beside", "n")] == ["0.123", "1.2e-09", "1", "", "3"]
    assert [second[name] for name in ("ours", "low", "high")] == ["0", "0", "0"]
    assert text.startswith("claim,says,printed,")
    assert results([]) == ""


# --- what stands behind a verdict and a page


def test_a_verdict_is_explained_line_by_line(paper, tmp_path):
    made = claim("fake/fig1/accuracy", "bound", (10.0,), side="lower", unit="s", tolerance=(1.0,))
    ours = verdict(interval(12.0, 10.04, 13.96), made=made, because="less data", decides=True)
    assert list(reasons(ours, paper.artifact("fake/fig1"))) == [
        ("printed", "≥ 10 s"),
        ("ours", "12.0 [10.0, 14.0] s"),
        ("why", "so it is"),
        ("rule", "bound lower, ± 1 s: a reason"),
        ("rests on", "reduced: less data (decides)"),
        ("register", "registered; 2000-01-01: for a test"),
        ("measure", "fake_paper:fig1_measures"),
        ("power", "catches a departure of 3.8 s four times in five"),
    ]


def test_an_exploratory_verdict_is_told_beside_the_registered_one(paper):
    later = verdict(exact(12.0), "not reproduced")
    told = dict(reasons(verdict(exact(10.0), order="amended", exploratory=later), None))
    assert (told["register"], told["exploratory"]) == ("no line", "not reproduced 12")


def stored(number, environment):
    spec = RunSpec("toy/run", {"b": 1, "a": "x"}, number)
    files = encode(spec, {}, Outcome("finished", {}, note="a note"))
    return Run(spec.id, {**files, "environment.json": json.dumps(environment).encode()})


class Given:
    """A source of these runs, one of which is damaged."""

    def __init__(self, *runs):
        self.held = {run.id: run for run in runs}

    def read(self, run_id):
        if run_id == "damaged":
            raise DamagedRun("run damaged: is broken")
        return self.held[run_id]


def test_runs_share_an_environment_that_says_the_same_whenever_they_began_and_however_it_is_ordered():
    machine = {"cpu": "one", "memory_bytes": 2**33, "cores": 2, "swap_bytes": "none"}
    one = stored(0, {"machine": machine, "source": "s", "started": "2026-11-23T18:00:00+00:00"})
    same = stored(
        1, {"processor_seconds": 3, "source": "s", "machine": dict(reversed(machine.items())), "telemetry": {}}
    )
    other = stored(2, {"machine": {**machine, "cores": 4}, "source": "s"})
    asked = [one.id, "absent", same.id, "damaged", other.id]
    environments, described = runs_and_environments(Given(one, same, other), asked)
    facts = [("machine", "cores 2, cpu one, memory_bytes 8 GiB, swap_bytes none"), ("source", "s")]
    assert environments["E1"] == {"facts": facts, "runs": 2}
    assert (list(environments), environments["E2"]["runs"]) == (["E1", "E2"], 1)
    assert [run.environment for run in described] == ["E1", "", "E1", "", "E2"]
    assert [run.fault for run in described] == [
        "", "named by a quantity, but not stored", "", "run damaged: is broken", ""
    ]  # fmt: skip
    first = described[0]
    assert (first.experiment, first.seed, first.settings, first.note) == ("toy/run", 0, 'a="x", b=1', "a note")
    assert (first.origin, described[2].origin) == (
        "code revision not recorded: begun 2026-11-23",
        "code revision not recorded: made before starts were recorded",
    )
    assert described[2].seed == 1
