"""The gate's memory: slow rises are found, steady histories are not, and an accepted level starts anew."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_regression import document

from suite.speed.history import (
    CREEP,
    FEWEST,
    _split,
    changes,
    recall,
    remember,
    rises,
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


def test_two_per_cent_a_week_is_found_though_no_week_is_a_regression():
    """Ten weeks of five sessions: nothing for five of them, then 2% a week."""
    levels = [0.02 * max(0, week - 4) for week in range(10) for _ in range(5)]
    for seed in range(5):
        (rise,) = rises(history(levels, seed))
        assert (rise.workload, rise.clock) == ("w0", "wall")
        assert CREEP <= rise.after - rise.before < 0.12
        assert rise.changes


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


def test_a_recovered_level_is_no_rise_and_other_versions_begin_anew():
    assert rises(history([0.0] * 20 + [0.2] * 10 + [0.0] * 10, 3)) == []
    rising = history([0.0] * 20 + [0.2] * 20, 4)
    assert rises(rising)
    for old in rising[:20]:
        old["versions"] = {"torch": "1"}
    assert rises(rising) == []


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
