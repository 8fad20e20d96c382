"""Regressions between two stores: a planted one is found, rounding is not mistaken for one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from toy import files_of

from suite.runs.comparison import ALARM, compare_runs, lines
from suite.runs.store import Store, verified
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


def test_equal_stores_have_no_regression(tmp_path: Path, base: Store):
    found = compared(
        tmp_path, base, lambda s: {"test_error": error(s), "updates": 7}
    )  # no target: any number will do
    assert (found["compared"], found["changed"], found["regressions"]) == (18, [], [])
    assert lines(found) == ["18 runs compared, 0 quantities differ, 0 only in the base, 0 only in the new"]


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


def test_updates_count_where_there_is_a_target(tmp_path: Path):
    specs = [RunSpec("train", {"stop": {"below": 0.1, "metric": "test_error"}}, s) for s in range(5)]
    base = filled(tmp_path / "base", lambda s: {"updates": 1000 + s.seed}, finished, specs)
    found = compared(tmp_path, base, lambda s: {"updates": 1200 + 2 * s.seed}, specs=specs)
    assert len(found["regressions"]) == 2  # of its one setting, and of all


def test_runs_of_one_side_only_are_counted(tmp_path: Path, base: Store):
    found = compared(
        tmp_path, base, lambda s: {"test_error": error(s)}, specs=[*SPECS[1:], RunSpec("other", {"setting": 0})]
    )
    assert (found["compared"], found["only_in_base"], found["only_in_new"]) == (17, 1, 1)


def test_rounding_alarms_as_seldom_as_stated(tmp_path: Path):
    """400 comparisons of pure noise at an alarm rate of ALARM: more than 20 alarms have probability below 1e-8."""
    specs = [RunSpec("train", {"setting": s}, r) for s in range(2) for r in range(3)]
    noise = random.Random(2)

    class Memory:
        def __init__(self) -> None:
            self.runs = {
                s.id: verified(s.id, files_of(s, test_error=error(s) * (1 + noise.gauss(0, 1e-3)))) for s in specs
            }

        def ids(self) -> set[str]:
            return set(self.runs)

        def read(self, run_id: str):
            return self.runs[run_id]

    alarms = sum(bool(compare_runs(Memory(), Memory())["regressions"]) for _ in range(400))
    assert alarms <= 20
    assert ALARM == 0.01


@pytest.mark.parametrize(("shift", "moved"), [(3e-5, False), (1e-3, True), (-1e-3, True)])
def test_either_way_a_steady_shift_counts_beyond_a_hundredth_of_the_spread(tmp_path: Path, shift: float, moved: bool):
    """Two seeds 0.01 apart, a deviation of 0.007: both shifted alike, no spread is left over the pairs."""
    specs = [RunSpec("train", {"setting": 0}, r) for r in range(2)]
    base = filled(tmp_path / "base", lambda s: {"test_error": error(s)}, finished, specs)
    new = filled(tmp_path / "new", lambda s: {"test_error": error(s) + shift}, finished, specs)
    assert bool(compare_runs(base, new, either_way=True)["regressions"]) == moved
