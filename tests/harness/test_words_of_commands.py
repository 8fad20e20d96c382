"""What ``list`` and ``doctor`` say, and how a mistake or a fault is told."""

from __future__ import annotations

from typing import Any

import pytest

from suite.cli import errors
from suite.commands import doctor, list_
from suite.commands.terminal import PIPE, duration, folded, memory, width
from suite.runs.lease import PROBED
from suite.runs.store import DamagedRun


def artifact(name: str, **runs: tuple[int, int, int]) -> dict[str, Any]:
    held = {
        profile: dict(zip(("needed", "yours", "committed"), counts, strict=True)) for profile, counts in runs.items()
    }
    return {"id": name, "title": f"About {name}", "claims": [{}, {}], "runs": held}


def test_a_listing_says_whose_runs_there_are_of_each_artifact():
    rows = [
        artifact("toy/a", smoke=(4, 1, 2), reduced=(3, 0, 0), paper=(0, 0, 0)),
        artifact("toy/b", smoke=(2, 0, 2), reduced=(2, 2, 0), paper=(0, 0, 0)),
    ]
    rows[1]["title"] = "a title that is told on several lines of its own column"
    *table, closing = list_.lines(rows, 70)
    assert table == [
        "artifact  claims  smoke       reduced     paper  title",
        "toy/a     2       1 + 2 of 4  0 of 3      -      About toy/a",
        "toy/b     2       2 of 2      2 + 0 of 2  -      a title that is told",
        f"{'':49}on several lines of",
        f"{'':49}its own column",
    ]
    assert closing.startswith("2 artifacts, 4 claims")


@pytest.mark.parametrize("width", [10, 11])
def test_a_line_as_wide_as_the_terminal_stays_and_words_are_never_cut(width: int):
    assert folded(["two  words"], width) == ["two  words"]
    assert folded(["a well-known word"], 12) == ["a well-known", "    word"]


def test_a_pipe_is_as_wide_as_columns_says_or_120(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.__stdout__", None)  # no terminal to ask
    monkeypatch.delenv("COLUMNS", raising=False)
    assert width() == PIPE == 120
    monkeypatch.setenv("COLUMNS", "72")
    assert width() == 72


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.44, "0.4 s"),
        (0.97, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599.7, "1 h 0 min"),
        (7_530, "2 h 5 min"),
        (86_399.6, "1 d 0 h"),
        (42_168_733, "488 d 1 h"),
    ],
)
def test_a_time_is_said_in_its_two_largest_units(seconds: float, text: str):
    assert duration(seconds) == text


def test_memory_is_said_in_megabytes_or_gigabytes():
    assert [memory(size) for size in (400_000, 412e6, 11.639e9)] == ["0 MB", "412 MB", "11.6 GB"]


FACTS = {
    "machine": {"cpu": "A chip", "cores": 2, "memory_bytes": 3 * 2**29, "system": "Linux", "python": "3.12"},
    "versions": {"torch": "2.13", "numpy": "2.0"},
    "gpus": [],
    "revision": "0123456789abcdef",
    "dirty": False,
    "data": {"digits": {"here": True, "where": "in it"}, "imagenet": {"here": False, "where": "nowhere"}},
    "profiles": {
        "smoke": {"can_run": True, "missing": {}},
        "paper": {"can_run": False, "missing": {"mnist": "m", "imagenet": "i"}},
    },
}


def test_a_diagnosis_names_the_machine_what_is_there_and_what_can_run():
    assert doctor.lines(FACTS) == [
        "A chip, 2 cores, 1.5 GiB, Linux, Python 3.12",
        "torch 2.13, numpy 2.0",
        "GPUs: none (GPU tests and claims will say so)",
        "revision 0123456789ab",
        "data digits           here     in it",
        "data imagenet         missing  nowhere",
        "profile smoke    can run",
        "profile paper    cannot run: needs mnist, imagenet",
    ]
    other = FACTS | {"gpus": [{"name": "G1"}, {"name": "G2"}], "dirty": True}
    assert doctor.lines(other)[2:4] == ["GPUs: G1, G2", "revision 0123456789ab with changes"]


@pytest.mark.parametrize(
    ("failing", "told"),
    [((), "two processes see each other's work"), (PROBED[:2], "CANNOT BE SHARED: it fails {}, {}")],
)
def test_a_store_is_told_with_all_that_its_file_system_fails(failing: tuple[str, ...], told: str):
    tested = {name: name not in failing for name in PROBED} | {"file_system": "ext4", "claims": "flock"}
    words = told.format(*(name.replace("_", " ") for name in failing))
    assert doctor.lines(FACTS | {"store": tested})[-1] == f"store on ext4, claims by flock: {words}"


def test_a_profile_can_run_where_nothing_that_it_needs_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "plan", lambda selection, profile: profile)
    monkeypatch.setattr(doctor, "missing_data", lambda plan, data: {"mnist": "gone"} if plan == "paper" else {})
    assert doctor.diagnose(None)["profiles"] == {
        "smoke": {"can_run": True, "missing": {}},
        "reduced": {"can_run": True, "missing": {}},
        "paper": {"can_run": False, "missing": {"mnist": "gone"}},
    }


@pytest.mark.parametrize(
    ("error", "code"), [(ValueError("a\n  b"), 2), (OSError("a b"), 2), (DamagedRun("a b"), 1)], ids=repr
)
def test_what_a_user_can_act_on_is_one_sentence(error: Exception, code: int, capsys: pytest.CaptureFixture[str]):
    assert errors.explain(error) == code
    assert tuple(capsys.readouterr()) == ("", "sgd-suite: a b\n")


def test_a_fault_of_ours_keeps_its_traceback(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(KeyError) as fault:
        {}["absent"]
    assert errors.explain(fault.value) == 2
    told = capsys.readouterr().err
    assert told.startswith("Traceback")
    assert told.endswith("KeyError: 'absent'\n")
