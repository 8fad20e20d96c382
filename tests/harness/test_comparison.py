"""Regressions between two stores: a planted one is found, rounding is not mistaken for one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd
import pytest
from toy import files_of

from suite.runs.comparison import compare_runs, identical, lines, quantity
from suite.runs.run import Outcome, Run, encode, verified
from suite.runs.store import Store
from suite.spec import RunSpec

SPECS = [RunSpec("train", {"setting": s}, r) for s in range(6) for r in range(3)]


def filled(root: Path, result: Callable[[RunSpec], dict], status: Callable[[RunSpec], str], specs=SPECS) -> Store:
    store = Store(root, create=True)
    for spec in specs:
        store.commit(spec.id, files_of(spec, status(spec), **result(spec)))
    return store


def finished(spec: RunSpec) -> str:
    return "finished"


def error(spec: RunSpec) -> float:
    return 0.1 * (1 + spec.settings["setting"]) + 0.01 * spec.seed


@pytest.fixture
def base(tmp_path: Path) -> Store:
    return filled(tmp_path / "base", lambda s: {"test_error": error(s), "updates": 5}, finished)


def compared(tmp_path: Path, base: Store, result, status=finished, specs: Iterable[RunSpec] = SPECS) -> dict:
    return compare_runs(base, filled(tmp_path / "new", result, status, specs))


def test_equal_runs_have_no_regression_and_those_of_one_store_are_counted(tmp_path: Path, base: Store):
    specs = [*SPECS[2:], RunSpec("train", {"setting": 0}, 99)]
    result = lambda s: {"test_error": error(s), "updates": 7}  # no target: any number will do
    found = compared(tmp_path, base, result, specs=specs)
    assert (found["compared"], found["changed"], found["regressions"]) == (16, [], [])
    assert lines(found) == ["16 runs compared, 0 quantities differ, 2 only in the base, 1 only in the new"]


def test_a_planted_common_rise_is_found_where_no_single_setting_shows_it(tmp_path: Path, base: Store):
    noise = random.Random(1)
    found = compared(tmp_path, base, lambda s: {"test_error": error(s) * (1.1 + noise.uniform(-0.08, 0.08))})
    assert [line.partition(":")[0] for line in found["regressions"]] == ["train, all settings"]
    assert "test_error rose by" in found["regressions"][0]


def test_a_fall_is_a_change_and_no_regression(tmp_path: Path, base: Store):
    found = compared(tmp_path, base, lambda s: {"test_error": error(s) * 0.5})
    assert found["changed"]
    assert found["regressions"] == []


def test_a_run_that_no_longer_finishes_is_a_regression(tmp_path: Path, base: Store):
    lost = SPECS[4].id
    found = compared(
        tmp_path,
        base,
        lambda s: {"test_error": float("nan") if s.id == lost else error(s)},
        lambda s: "diverged" if s.id == lost else "finished",
    )
    assert found["regressions"] == [f"{lost} (train): finished before, diverged now"]


def test_a_number_that_a_finished_run_has_no_longer_is_a_regression():
    found = compare_runs(seeds([0.25, 0.5, 0.75]), seeds([float("nan"), 0.625, 0.75]))
    lost, first = (RunSpec("train", {"setting": 0}, seed).id for seed in range(2))
    assert found["regressions"] == [f"{lost} (train): test_error was 0.25, and is no number now"]
    assert {row["runs"][0] for row in found["changed"]} == {first}


def test_updates_count_where_there_is_a_target(tmp_path: Path):
    specs = [RunSpec("train", {"stop": {"below": 0.1, "metric": "test_error"}}, s) for s in range(5)]
    base = filled(tmp_path / "base", lambda s: {"updates": 1000 + s.seed}, finished, specs)
    found = compared(tmp_path, base, lambda s: {"updates": 1200 + 2 * s.seed}, specs=specs)
    assert len(found["regressions"]) == 2  # of its one setting, and of all


class Memory:
    """A source of runs with these test errors or other results, by specification."""

    def __init__(self, results: dict[RunSpec, dict], status: str = "finished"):
        self.runs = {spec.id: verified(spec.id, files_of(spec, status, **found)) for spec, found in results.items()}

    def ids(self) -> set[str]:
        return set(self.runs)

    def read(self, run_id: str) -> Run:
        return self.runs[run_id]


def seeds(values: Iterable[float], name: str = "test_error", setting: int = 0) -> Memory:
    return Memory({RunSpec("train", {"setting": setting}, r): {name: value} for r, value in enumerate(values)})


def test_either_way_a_steady_shift_of_just_a_hundredth_is_negligible():
    """0, 100 and 200 have a deviation of 100, in doubles too."""
    base = seeds([0.0, 100.0, 200.0], "test_loss")
    for shift, moved in ((1.0, False), (-1.0, False), (1.2, True), (-1.2, True)):
        new = seeds([shift, 100.0 + shift, 200.0 + shift], "test_loss")
        found = compare_runs(base, new, either_way=True)
        assert bool(found["regressions"]) == moved
        assert [row["rose"] or row["fell"] for row in found["changed"]] == [moved]


def test_one_way_no_steady_rise_is_negligible():
    found = compare_runs(seeds([0.1, 0.2, 0.3]), seeds([0.10001, 0.20001, 0.30001]))
    assert [line.partition(":")[0] for line in found["regressions"]] == ["train, one setting"]


@pytest.mark.parametrize("either_way", [False, True])
@pytest.mark.parametrize(("share", "alarms"), [(0.99, False), (1.01, True)])
def test_a_change_counts_beyond_the_interval_that_alarms_once_in_100(either_way: bool, share: float, alarms: bool):
    """One way two quantities change, of the setting and of all: each takes half of the alarm, on one side.

    4.6041 is Student's t at 0.005 and four degrees of freedom, from a table.
    """
    mean = share * 4.6041 * (2.5 / 5) ** 0.5
    base, new = [1000.0] * 5, [1000.0 + mean + change for change in (-2.0, -1.0, 0.0, 1.0, 2.0)]
    found = compare_runs(seeds(base), seeds(new), either_way=either_way)
    assert bool([line for line in found["regressions"] if "one setting" in line]) == alarms


def test_one_run_alone_tells_nothing_of_spread():
    for either_way in (False, True):
        found = compare_runs(seeds([0.1]), seeds([0.9]), either_way=either_way)
        assert found["regressions"] == []
        row = found["changed"][0]
        assert (row["change"], row["low"], row["high"], row["n"]) == (pytest.approx(0.8), None, None, 1)


def test_changes_are_differences_in_one_setting_and_ratios_over_all():
    spec = [RunSpec("train", {"setting": i}) for i in range(2)]
    base = Memory({spec[0]: {"test_error": 0.25}, spec[1]: {"test_error": 0.5}})
    new = Memory({spec[0]: {"test_error": 0.5}, spec[1]: {"test_error": 1.0}})
    found = compare_runs(base, new)
    whole = [row for row in found["changed"] if row["group"] == "train, all settings"]
    assert [(row["change"], row["low"], row["high"], row["relative"]) for row in whole] == [
        (*[pytest.approx(1.0)] * 3, True)
    ]
    single = [row for row in found["changed"] if row["group"] == "train, one setting"]
    assert {(row["change"], row["low"], row["high"], row["relative"]) for row in single} == {
        (0.25, None, None, False),
        (0.5, None, None, False),
    }
    assert sum(" relative over 2 runs" in line for line in lines(found)) == 1


@pytest.mark.parametrize("settings", [{"stop": {"below": 0.1}}, {"monitors": ["test_error"]}, {}])
def test_updates_are_a_result_where_something_may_stop_them(settings: dict):
    spec = RunSpec("train", settings)
    run = verified(spec.id, files_of(spec, updates=7, test_error=0.5))
    assert quantity(run, "updates") == (7.0 if settings else None)
    assert quantity(run, "test_error") == 0.5


HUGE = pytest.param(10**400, id="huge")  # an integer beyond a float


@pytest.mark.parametrize("value", [True, "0.1", None, float("inf"), float("nan"), [0.1], HUGE])
def test_what_is_no_finite_number_is_no_quantity(value: object):
    spec = RunSpec("train")
    assert quantity(verified(spec.id, files_of(spec, test_error=value)), "test_error") is None


def held(results: dict, **curves: dict) -> Run:
    spec = RunSpec("train")
    tables = {name: pd.DataFrame(columns) for name, columns in curves.items()}
    return verified(spec.id, encode(spec, {}, Outcome("finished", results, tables)))


ONE = held({"a": 1, "b": 2, "seconds": 3.0}, t={"x": [1], "y": [2], "seconds": [3]}, u={"z": [4], "seconds": [5]})
T, U = {"x": [1], "y": [2], "seconds": [9]}, {"z": [4], "seconds": [9]}


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (held({"b": 2, "seconds": 9.0, "a": 1}, t=T, u=U), True),
        (held({"a": 1, "b": 3, "seconds": 3.0}, t=T, u=U), False),
        (held({"a": 1, "b": 2}, t=T), False),
        (held({"a": 1, "b": 2}, t=T, u=U, v=U), False),
        (held({"a": 1, "b": 2}, t=T | {"x": [0]}, u=U), False),
        (held({"a": 1, "b": 2}, t=T | {"y": [0]}, u=U), False),
        (held({"a": 1, "b": 2}, t=T, u=U | {"z": [0]}), False),
        (held({"a": 1, "b": 2}, t=T | {"w": [0]}, u=U), False),
    ],
)
def test_two_runs_are_identical_in_all_but_their_times(other: Run, expected: bool):
    assert identical(ONE, other) == expected
    assert identical(other, ONE) == expected
