"""The benchmark gate: as silent as it says on unchanged code, as sharp as it says on slower code."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
import typer
from hostile import shaken
from scipy import stats

from suite.claims.intervals import holm
from suite.commands import gate
from suite.speed.baselines import GateError, baseline, find_baseline, place, read, write
from suite.speed.gate import ALARM, FLOOR, accept, alarms, compare, exit_code, judged, level, lines, threshold
from suite.speed.rank_shift import detectable, lower_limit, p_value, shift

# Spreads of log ratios on two busy CPU cores: medians of processes, and rounds, which have heavy tails.
BETWEEN, WITHIN = 0.01, 0.025
SESSIONS, ROUNDS, WORKLOADS = 10, 15, 4


def sessions(draw: np.random.Generator, count: int, slower: float = 0.0) -> list[list[float]]:
    """Log ratios as measured: a centre for each session, and rounds around it by Student's t with 3 degrees."""
    return [
        (slower + draw.normal(0, BETWEEN) + WITHIN * draw.standard_t(3, ROUNDS) / math.sqrt(3)).tolist()
        for _ in range(count)
    ]


def document(
    names: dict[str, float], draw: np.random.Generator, machine: str = "cpu-a", rounds: int = ROUNDS
) -> dict:
    """A benchmark document of workloads and by how much (log) ours is slower than its rival."""
    made = {}
    for name, slower in names.items():
        rival = 0.01 * np.exp(draw.normal(0, 0.5, rounds))  # the machine's own pace, which divides out
        ours = rival * np.exp(slower + draw.normal(0, WITHIN, rounds))
        sides = {
            "ours": {"seconds": ours.tolist(), "processor": ours.tolist(), "threads": 1},
            "plain, 1 thread": {"seconds": rival.tolist(), "processor": rival.tolist(), "threads": 1},
            "plain fused, 1 thread": {"not_available": "no such form"},
        }
        made[name] = {"family": "training", "sides": sides}
    return {"format": 1, "machine": {"class": machine}, "versions": {"torch": "2.13.0"}, "workloads": made}


def several(names: dict[str, float], seed: int, count: int = 5, **options: object) -> dict:
    draw = np.random.default_rng(seed)
    return baseline([document(names, draw, **options) for _ in range(count)])


@pytest.fixture
def without_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least slowdown that a row would find takes a second to compute, and is another test's."""
    monkeypatch.setattr("suite.speed.gate.detectable", lambda *a, **k: 0.1)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 3), (5, 5), (8, 20), (20, 8)])
def test_the_distribution_of_ranks_is_mann_and_whitneys(m: int, n: int):
    draw = np.random.default_rng(m * n)
    for _ in range(5):
        new, base = draw.normal(0.5, 1, m), draw.normal(0, 1, n)
        expected = stats.mannwhitneyu(new - 0.1, base, alternative="greater", method="exact").pvalue
        assert p_value(new, base, 0.1) == pytest.approx(expected, rel=1e-12)


def test_estimate_and_limit_follow_a_shift_and_shrug_at_outliers():
    base = [0.01 * i for i in range(20)]
    new = [value + 0.3 for value in base]
    new[3] = 50.0
    assert shift(new, base) == pytest.approx(0.31, abs=0.01)
    assert lower_limit([1.0, 2.0], [0.0, 0.0], 0.001) == -math.inf  # two against two can never be that sure


@pytest.mark.parametrize(("m", "n", "alarm"), [(6, 9, 0.01), (12, 7, 0.2), (20, 20, 1e-3), (4, 4, 1 / 70)])
def test_the_limit_is_where_the_probability_crosses_the_alarm(m: int, n: int, alarm: float):
    draw = random.Random(m)
    new, base = ([draw.gauss(0, 1) for _ in range(count)] for count in (m, n))
    limit = lower_limit(new, base, alarm)
    assert p_value(new, base, limit - 1e-9) <= alarm < p_value(new, base, limit)
    assert lower_limit([1.0, 2.0], [0.0, 0.5], 0.1) == -math.inf


def test_unchanged_code_alarms_no_more_often_than_stated():
    """1,000 documents of unchanged code, each against a baseline of its own."""
    draw = np.random.default_rng(1)
    count = 0
    for _ in range(1000):
        pairs = [(sessions(draw, SESSIONS), sessions(draw, 1)) for _ in range(WORKLOADS)]
        count += any(alarms(pairs))
    assert count / 1000 <= ALARM


def test_the_printed_power_is_the_power():
    draw = np.random.default_rng(3)
    old = sessions(draw, SESSIONS)
    level = ALARM / 2 / WORKLOADS
    centred = [value - np.median(session) for session in sessions(draw, 200) for value in session]
    at = threshold(old, level)
    finds = detectable(centred, ROUNDS, ROUNDS * SESSIONS, at, level, draws=2000)
    assert at < finds < math.log(1.2)
    flat = draw.permutation(centred)[: ROUNDS * SESSIONS]
    found = 0
    for _ in range(1000):
        new = finds + draw.choice(centred, ROUNDS)
        found += p_value(new, draw.choice(centred, len(flat)), at) <= level
    assert found / 1000 == pytest.approx(0.9, abs=0.03)


def test_a_threshold_follows_the_spread_of_sessions_and_never_falls_below_the_floor():
    quiet = [[0.0, 0.001, -0.001]] * 6
    assert threshold(quiet, 0.001) == pytest.approx(math.log1p(FLOOR))
    apart = [[0.05 * i, 0.05 * i + 0.001] for i in range(6)]
    assert threshold(apart, 0.001) > 0.3
    few = [[0.2, -0.2, 0.1, -0.1, 0.0]]  # one session: the rounds' own spread
    assert threshold(few, 0.001) == pytest.approx(0.25 / 1.349)  # its quartiles with the median: -0.125 and 0.125


def test_holm_stops_at_the_first_that_is_not_small_enough():
    assert holm([0.2, 0.004, 0.011, 0.5], 0.04) == [False, True, True, False]
    assert holm([0.011, 0.02, 0.02, 0.02], 0.04) == [False] * 4
    assert holm([0.02, 0.5], 0.04) == [True, False], "as small as its share is small enough"
    assert holm([], 0.04) == []


def test_a_slower_workload_is_named_among_unchanged_ones():
    base = several({"a": 0.0, "b": -1.0, "c": 0.3}, 4)
    new = several({"a": 0.0, "b": -1.0 + math.log(1.2), "c": 0.3}, 5, count=1)
    found = compare(base, new)
    assert {line.partition(":")[0] for line in found["regressions"]} == {"b"}
    assert exit_code(found) == 1
    text = "\n".join(lines(found))
    assert "REGRESSION b: +" in text
    assert "finds" in text
    slower = [row for row in found["rows"] if row["workload"] == "b"]
    assert {row["clock"] for row in slower} == {"wall", "processor"}
    assert all(0.15 < row["change"] < 0.25 and row["detectable"] < 0.2 for row in slower)


def test_a_faster_workload_is_no_regression_and_said():
    found = compare(several({"a": 0.0}, 6), several({"a": -0.5}, 7, count=1))
    assert exit_code(found) == 0
    assert any("accept a new baseline" in line for line in lines(found))


def test_another_machine_class_is_refused_in_one_sentence():
    with pytest.raises(GateError, match=r"^the baseline is of machine class cpu-a, the new document of gpu-b"):
        compare(several({"a": 0.0}, 12), several({"a": 0.0}, 13, machine="gpu-b"))


def test_an_accepted_baseline_reads_back_and_takes_further_sessions(tmp_path: Path):
    draw = np.random.default_rng(16)
    first = [document({"a": 0.0}, draw) for _ in range(2)]
    path = accept(first, tmp_path)
    assert path == find_baseline(tmp_path, "cpu-a") == tmp_path / "cpu-a" / "benchmark.json"
    assert read(path) == baseline(first)
    more = baseline([read(path), document({"a": 0.0}, draw)])
    assert more["sessions"] == 3
    assert len(more["workloads"]["a"]["wall"]) == 3
    with pytest.raises(GateError, match=r"no baseline of machine class gpu-b.*there is cpu-a|there are cpu-a"):
        find_baseline(tmp_path, "gpu-b")


def sides(ours: list[float], rival: list[float]) -> str:
    """A document of one workload with the seconds of two sides."""
    timed = {"ours": {"seconds": ours}, "plain": {"seconds": rival}}
    return json.dumps({"format": 1, "workloads": {"w": {"sides": timed}}, "machine": {"class": "a"}})


def accepted(workload: dict[str, list]) -> str:
    """A baseline of one workload."""
    return json.dumps({"format": 1, "sessions": 1, "workloads": {"w": workload}, "machine": {"class": "a"}})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[", "cannot be read"),
        ("{}", "is no benchmark document"),
        ('{"format": 1, "workloads": {}}', "are mappings by name"),
        ('{"format": 1, "workloads": {}, "machine": {}}', "the machine class None is no name"),
        ('{"format": 1, "workloads": {}, "machine": {"class": "../elsewhere"}}', "no name of a folder"),
        ('{"format": 1, "workloads": {}, "machine": {"class": "a"}, "versions": {"a": 1}}', "versions are texts"),
        ('{"format": 1, "workloads": {"w": 3}, "machine": {"class": "a"}}', "'w' is no mapping"),
        ('{"format": 1, "workloads": {"w": {}}, "machine": {"class": "a"}}', "'w' has no sides"),
        (accepted({"odd": [[0.1]]}), "'w' has no sessions by 'odd'"),
        (accepted({"wall": []}), "'w' has no sessions by 'wall'"),
        (accepted({"wall": [["0.1"]]}), "'w' has sessions that are no lists of log ratios"),
        (sides([0.1, 0.2], [0.1, -0.2]), "'w' has samples that are no equally long lists of positive numbers"),
        (sides([0.1, 0.2], [0.1]), "'w' has samples that are no equally long lists of positive numbers"),
        (sides([0.1, math.nan], [0.1, 0.2]), "'w' has samples that are no equally long lists of positive numbers"),
        (sides([], []), "'w' has samples that are no equally long lists of positive numbers"),
        ("[" * 200_000, "cannot be read"),
    ],
)
def test_files_that_are_no_documents_are_refused(tmp_path: Path, content: str, why: str):
    path = tmp_path / "b.json"
    path.write_text(content)
    with pytest.raises(GateError, match=why):
        read(path)


@pytest.mark.parametrize("kept", [False, True], ids=["document", "baseline"])
@pytest.mark.usefixtures("without_power")
def test_a_forged_document_is_used_or_refused_in_a_sentence(tmp_path: Path, kept: bool):
    """One place in each of 80 is anything that JSON can say."""
    draw, rng, path = np.random.default_rng(3), random.Random(4), tmp_path / "forged.json"
    true = document({"a": 0.0, "b": 0.1}, draw, rounds=4)
    known, refused, told = baseline([true]), 0, set()
    write(place(tmp_path, known["machine"]["class"]), known)
    for _ in range(80):
        path.write_text(json.dumps(shaken(known if kept else true, rng)))
        try:
            forged = read(path)
            found = judged(baseline([forged]), tmp_path)
            assert all(map(str, lines(found)))
            assert exit_code(found) in (0, 1, 3)
        except GateError as error:
            refused += 1
            told.add(str(error).count("\n"))
    assert 15 < refused < 80
    assert told == {0}


@pytest.mark.usefixtures("without_power")
def test_the_command_gates(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(gate, "FOLDER", tmp_path / "baselines")
    draw = np.random.default_rng(17)
    names = []
    for i, slower in enumerate((0.0, 0.0, 0.0, 0.0, 0.0, math.log(1.3))):
        names.append(tmp_path / f"{i}.json")
        names[-1].write_text(json.dumps(document({"a": slower}, draw)))
    with pytest.raises(GateError, match="nox -s guard -- --accept"):
        gate.command(names[:1])
    accept([read(name) for name in names[:5]], tmp_path / "baselines")
    with pytest.raises(typer.Exit) as red:
        gate.command(names[5:], as_json=True)
    assert red.value.exit_code == 1
    assert json.loads(capsys.readouterr().out)["rows"][0]["sessions"] == 5


@pytest.mark.usefixtures("without_power")
def test_of_each_workload_the_fastest_accepted_baseline_is_the_level(tmp_path: Path):
    draw = np.random.default_rng(8)
    first, last = ([document({"a": a, "b": b}, draw) for _ in range(5)] for a, b in ((0.0, 0.0), (-0.3, 0.02)))
    accept(first, tmp_path)
    accept(last, tmp_path)
    held = level(tmp_path, baseline(last))
    assert held is not None
    assert held["workloads"]["a"] == baseline(last)["workloads"]["a"]
    assert held["workloads"]["b"] == baseline(first)["workloads"]["b"]
    assert level(tmp_path, {**baseline(last), "versions": {"torch": "another"}}) is None
