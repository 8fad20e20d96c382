"""The gate's memory: slow rises are found, steady histories are not, and an accepted level starts anew."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from test_regression import document

from suite.speed.baselines import GateError
from suite.speed.history import (
    CREEP,
    FEWEST,
    Rise,
    _split,
    changes,
    draw,
    file_of,
    recall,
    remember,
    rises,
    series,
    session,
)

NOISE = 0.01  # between medians of sessions


def history(levels: list[float], seed: int, workloads: int = 4) -> list[dict]:
    """Sessions of several workloads, of which the first follows ``levels``."""
    draws = np.random.default_rng(seed)
    return [
        {
            "when": f"week {week:02}",
            "anew": False,
            "versions": {"torch": "2"},
            "workloads": {
                f"w{i}": {"wall": (level if i == 0 else 0.0) + draws.normal(0, NOISE)} for i in range(workloads)
            },
        }
        for week, level in enumerate(levels)
    ]


def measured(values: list[float]) -> list[dict]:
    """Sessions of one workload with these log ratios."""
    return [
        {"when": f"week {week:02}", "anew": False, "versions": {"torch": "2"}, "workloads": {"w": {"wall": value}}}
        for week, value in enumerate(values)
    ]


def stepping(rise: float) -> list[float]:
    """Eight sessions and eight more whose level lies higher by that share."""
    before = [0.001 * (3 * i % 8) for i in range(8)]
    return [*before, *(math.log1p(rise) + value for value in before)]


def test_two_per_cent_a_week_is_found_though_no_week_is_a_regression():
    """Ten weeks of five sessions: nothing for five of them, then 2% a week."""
    levels = [0.02 * max(0, week - 4) for week in range(10) for _ in range(5)]
    for seed in range(5):
        (rise,) = rises(history(levels, seed))
        assert (rise.workload, rise.clock) == ("w0", "wall")
        assert CREEP <= rise.after - rise.before < 0.12
        assert rise.changes


@pytest.mark.parametrize(
    ("rise", "told"), [(0.06, ["w: +6.0% by wall time in steps, at week 08"]), (0.04, [])], ids=["6%", "4%"]
)
def test_six_per_cent_in_all_is_told_with_its_place_and_four_is_nobodys(rise: float, told: list[str]):
    assert [str(found) for found in rises(measured(stepping(rise)))] == told


def test_a_split_is_where_the_energy_distance_of_its_sides_is_largest():
    """Twice the mean distance across, less those within, times the product of the sides' lengths over n."""
    draws = np.random.default_rng(5)
    for shift in (0.0, 1.0, 3.0):
        values = draws.normal(size=23) + shift * (np.arange(23) >= 14)
        distances = np.abs(np.subtract.outer(values, values))

        def distance(at: int, d: np.ndarray = distances) -> float:
            energy = 2 * d[:at, at:].mean() - d[:at, :at].mean() - d[at:, at:].mean()
            return energy * at * (len(d) - at) / len(d)

        places = range(FEWEST, 23 - FEWEST + 1)
        at, size = _split(distances)
        assert at == max(places, key=distance)
        assert size == pytest.approx(max(map(distance, places)))


def test_a_steady_history_seldom_shows_a_change():
    """Of 100 histories without a change, with probability 0.05 each: 18 or more with probability 1e-6."""
    draws = np.random.default_rng(0)
    assert sum(bool(changes(draws.normal(0, 1, 24), 0.05)) for _ in range(100)) < 18


def test_changes_are_found_where_they_are():
    draws = np.random.default_rng(1)
    values = np.concatenate([draws.normal(0, 1, 20), draws.normal(5, 1, 15), draws.normal(-3, 1, 12)])
    found = changes(values, 0.01)
    assert len(found) == 2
    assert abs(found[0] - 20) <= 1
    assert abs(found[1] - 35) <= 1
    assert changes([0.0] * 30, 0.01) == []
    assert changes([0.0, 1.0], 0.01) == []


def test_changes_are_listed_in_order_whichever_was_found_first():
    assert changes(np.repeat([0.0, 3.0, 40.0, 43.0], 10).tolist(), 0.05) == [10, 20, 30]


@pytest.mark.parametrize(("as_large", "places"), [(1, [4]), (2, [])])
def test_the_order_that_was_seen_counts_as_one_of_the_permutations(
    monkeypatch: pytest.MonkeyPatch, as_large: int, places: list[int]
):
    """With one of 40 as large the probability is (1 + 1) / (40 + 1) = 0.049, with two of them 0.073."""
    sizes = iter([1.0, *[1.0] * as_large, *[0.0] * 60])
    monkeypatch.setattr("suite.speed.history._split", lambda distances: (4, next(sizes)))
    assert changes([0.0] * 8, 0.05) == places


@pytest.mark.parametrize("step", [0.001, 0.1, 1 / 3])
def test_of_eight_sessions_nothing_is_sure_to_one_in_a_hundred(step: float):
    """Two of the 70 halves lie as far apart as these, also where their sums are rounded otherwise: 0.029."""
    assert changes([step * i for i in range(8)], 0.01) == []


def test_all_series_of_a_history_share_one_per_cent_of_false_alarms(monkeypatch: pytest.MonkeyPatch):
    shares: list[float] = []
    monkeypatch.setattr("suite.speed.history.changes", lambda values, alarm: shares.append(alarm) or [])
    assert rises(history([0.0] * 8, 1, workloads=5)) == []
    assert (len(shares), sum(shares)) == (5, pytest.approx(0.01))


def test_a_change_needs_the_fewest_sessions_on_either_side_and_no_more():
    """Of the 70 ways to halve eight values in no order, two are as far apart as these halves."""
    values = [0.0, 0.1, 0.2, 0.3, 9.0, 9.1, 9.2, 9.3]
    assert FEWEST == 4
    assert changes(values, 0.1) == [4]
    assert changes(values[1:], 0.1) == []


@pytest.mark.parametrize(
    "levels", [[0.0] * 20 + [0.8 * CREEP] * 20, [0.2] * 20 + [0.0] * 20], ids=["below what counts", "faster"]
)
def test_what_is_small_or_faster_is_no_rise(levels: list[float]):
    assert rises(history(levels, 2)) == []


def test_a_rise_of_just_what_counts_is_one():
    (rise,) = rises(measured([0.0] * 20 + [CREEP] * 20))
    assert (rise.before, rise.after, rise.changes) == (0.0, CREEP, ("week 20",))


def test_a_recovered_level_is_no_rise_and_other_versions_begin_anew():
    assert rises(history([0.0] * 20 + [0.2] * 10 + [0.0] * 10, 3)) == []
    rising = history([0.0] * 20 + [0.2] * 20, 4)
    assert rises(rising)
    for old in rising[:20]:
        old["versions"] = {"torch": "1"}
    assert rises(rising) == []


def test_only_sessions_with_the_versions_of_the_last_one_are_compared():
    sessions = measured([0.1, 0.2, 0.3, 0.4])
    for one, version in zip(sessions, ("3", "2", "2", "3"), strict=True):
        one["versions"] = {"torch": version}
    assert series(sessions) == {("w", "wall"): (["week 00", "week 03"], [0.1, 0.4])}


def test_sessions_are_added_unless_the_first_of_several_begins_anew(tmp_path: Path):
    draws = np.random.default_rng(8)
    documents = [document({"a": 0.1}, draws) for _ in range(3)]
    for _ in range(2):
        remember(documents, tmp_path)
    assert [row["anew"] for row in recall(tmp_path, "cpu-a")] == [False] * 6
    remember(documents, tmp_path, anew=True)
    assert [row["anew"] for row in recall(tmp_path, "cpu-a")] == [True, False, False]
    assert session(documents[0])["anew"] is False


@pytest.mark.parametrize(
    "change",
    [
        {"workloads": {"w": {"wall": 0.1, "processor": math.nan}}},
        {"workloads": {"w": {"wall": math.inf}}},
        {"when": 3},
        {"versions": ["torch"]},
    ],
    ids=str,
)
def test_a_line_with_one_spoilt_value_is_no_session(tmp_path: Path, change: dict):
    path = file_of(tmp_path, "cpu-a")
    path.parent.mkdir()
    good, other = measured([0.1, 0.2])
    path.write_text(f"{json.dumps(good)}\n{json.dumps(other | change)}\n")
    with pytest.raises(GateError, match="line 2, is no session"):
        recall(tmp_path, "cpu-a")


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_last_line_that_was_cut_off_is_passed_over_and_the_next_session_follows(
    tmp_path: Path, cut: int, capsys: pytest.CaptureFixture[str]
):
    """A disk was full while it was written."""
    draws = np.random.default_rng(5)
    documents = [document({"a": 0.1}, draws) for _ in range(4)]
    path = remember(documents[:3], tmp_path)
    path.write_bytes(path.read_bytes()[:-cut])
    assert len(recall(tmp_path, "cpu-a")) == 2
    assert "its last line was cut off and is passed over" in capsys.readouterr().err
    remember(documents[3:], tmp_path)
    found = [row["workloads"]["a"]["wall"] for row in recall(tmp_path, "cpu-a")]
    assert found == [session(documents[place])["workloads"]["a"]["wall"] for place in (0, 1, 3)]


def test_accepted_sessions_are_remembered_until_a_level_is_wanted(tmp_path: Path):
    draws = np.random.default_rng(5)
    documents = [document({"a": 0.1}, draws) for _ in range(3)]
    path = remember(documents, tmp_path)
    assert path == file_of(tmp_path, "cpu-a")
    found = recall(tmp_path, "cpu-a")
    assert [row["workloads"]["a"]["wall"] for row in found] == [
        session(one)["workloads"]["a"]["wall"] for one in documents
    ]
    assert math.isclose(found[0]["workloads"]["a"]["wall"], 0.1, abs_tol=0.05)
    remember(documents[:1], tmp_path, anew=True)
    assert len(recall(tmp_path, "cpu-a")) == 1
    assert recall(tmp_path, "cpu-b") == []
    for odd in ("no session", '{"when": "", "anew": false, "workloads": {"w": {"wall": "1"}}, "versions": {}}', "[]"):
        kept = path.read_text()
        path.write_text(f"{kept}{odd}\n")
        with pytest.raises(GateError, match="line 5, is no session"):
            recall(tmp_path, "cpu-a")
        path.write_text(kept)


def test_the_history_is_drawn(tmp_path: Path):
    figure = draw(history([0.0] * 10 + [0.2] * 10, 6))
    assert [axes.get_title() for axes in figure.axes] == ["w0", "w1", "w2", "w3"]
    levels = figure.axes[0].collections
    assert len(levels) == 2
    with pytest.raises(GateError, match="begins a history"):
        draw([])


def test_the_drawing_shows_every_session_and_the_level_between_changes():
    values = stepping(0.06)
    (axes,) = draw(measured(values)).axes
    (points,) = axes.lines
    assert points.get_ydata() == pytest.approx(np.exp(values))
    levels = [segment for collection in axes.collections for segment in collection.get_segments()]
    before, after = math.exp(0.0035), 1.06 * math.exp(0.0035)
    assert np.ravel(levels) == pytest.approx([-0.5, before, 7.5, before, 7.5, after, 15.5, after])
    assert axes.get_xticks().tolist() == [0, 15]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["week 00", "week 15"]


def test_workloads_are_drawn_in_the_order_of_their_names_after_one_session_too():
    (one,) = measured([0.1])
    one["workloads"] = {name: {"wall": 0.1} for name in "bca"}
    drawn = draw([one]).axes
    assert [axes.get_title() for axes in drawn] == ["a", "b", "c"]
    assert {tuple(label.get_text() for label in axes.get_xticklabels()) for axes in drawn} == {("week 00",)}


@pytest.mark.parametrize(("workloads", "rows", "columns"), [(1, 1, 1), (3, 1, 3), (4, 1, 4), (5, 2, 4)])
def test_a_row_of_the_drawing_holds_four_workloads_at_most(workloads: int, rows: int, columns: int):
    first, *_ = draw(history([0.0], 0, workloads)).axes
    assert first.get_subplotspec().get_gridspec().get_geometry() == (rows, columns)


def test_the_command_remembers_finds_and_draws(tmp_path: Path, sgd):
    """Eight accepted sessions, then eight 30% slower ones accepted as the baseline: nothing is slower than that."""
    folder, draws = tmp_path / "baselines", np.random.default_rng(7)
    names = []
    for number in range(18):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(document({"a": 0.0 if number < 8 else 0.3}, draws)))
        names.append(path.name)
    for some in (names[:8], names[8:16]):
        assert sgd("gate", *some, "--baselines", folder, "--accept").returncode == 0
    alarm = sgd("gate", names[16], "--baselines", folder)
    assert alarm.returncode == 1, alarm.stdout
    assert "REGRESSION" not in alarm.stdout
    assert "CREEPING a: +" in alarm.stdout
    drawn = sgd("gate", names[16], "--baselines", folder, "--history", "history.svg")
    assert (drawn.returncode, (tmp_path / "history.svg").stat().st_size > 1000) == (0, True)
    assert drawn.stdout.startswith("16 accepted sessions")
    assert sgd("gate", *names[8:16], "--baselines", folder, "--accept", "--anew").returncode == 0
    assert sgd("gate", names[17], "--baselines", folder).returncode != 1


def test_a_rise_is_told_in_per_cent_of_the_level_before_it():
    rise = Rise("lenet", "processor", math.log(1.1), math.log(1.21), ("2026-01-01", "2026-02-01"))
    assert str(rise) == "lenet: +10.0% by processor time in steps, at 2026-01-01, 2026-02-01"
