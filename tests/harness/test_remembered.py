"""Verdicts on committed evidence are kept between calls, and judged anew when anything behind them changes."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from suite.claims.judge import PROFILES
from suite.cli import pictures
from suite.commands.check import check_selection
from suite.papers import remembered
from suite.papers.evidence import committed, exported_files
from suite.papers.published import published
from suite.papers.registry import paper
from suite.papers.verdicts import verdicts
from suite.runs import kept
from suite.runs.archive import Archive, Layered
from suite.runs.environment import ROOT
from suite.runs.store import Store

PAPER, ARTIFACT = paper("isgd"), "isgd/fig5a"


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The artifacts that were judged anew, with an empty folder for what is kept."""
    anew: list[str] = []

    def noted(*given, artifacts, **options):
        anew.extend(artifacts)
        return verdicts(*given, artifacts=artifacts, **options)

    monkeypatch.delenv(remembered.FRESH, raising=False)
    monkeypatch.setenv("SGD_SUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(remembered, "verdicts", noted)
    return anew


def judge(*own: Store):
    return remembered.judge_artifact(PAPER, ARTIFACT, None, Layered([*own, *committed()]))


def test_what_is_kept_is_what_was_judged(judged: list[str]):
    first, again = judge(), judge()
    assert judged == [ARTIFACT]
    assert again == first == verdicts(PAPER, Layered(committed()), artifacts=[ARTIFACT])
    assert any(verdict.measured and verdict.rests_on for verdict in again)


def test_what_could_not_be_read_is_judged_anew_the_next_time(judged: list[str], monkeypatch: pytest.MonkeyPatch):
    def stale(archive: Archive, name: str) -> bytes:
        raise OSError(errno.ESTALE, "Stale file handle")

    source = Layered([Archive(file) for file in sorted(exported_files())])
    with monkeypatch.context() as patch:
        patch.setattr(Archive, "_unpack", stale)
        found = remembered.judge_artifact(PAPER, ARTIFACT, None, source)
    assert any(verdict.red and "cannot be read (Stale file handle)" in verdict.why for verdict in found)
    assert judge() == verdicts(PAPER, Layered(committed()), artifacts=[ARTIFACT])


def test_another_state_of_code_or_evidence_is_judged_anew(judged: list[str], monkeypatch: pytest.MonkeyPatch):
    judge()
    monkeypatch.setattr(remembered, "state", lambda: "another")
    judge()
    assert judged == [ARTIFACT] * 2


def test_the_state_follows_code_tables_and_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = []
    for name, content in (
        ("a.py", "x = 1"),
        ("a.py", "x = 2"),
        ("b.toml", ""),
        ("c.md", ""),
        ("evidence/d.zip", "e"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
        monkeypatch.setattr(remembered, "homes", lambda: [tmp_path])
        monkeypatch.setattr(remembered, "folders", lambda: [tmp_path / "evidence"])
        remembered.state.cache_clear()
        found.append(remembered.state())
    remembered.state.cache_clear()
    assert len(set(found)) == 4
    assert found[2] == found[3], "a text is no reason to judge anew"


def test_a_run_of_the_users_own_is_read_each_time(judged: list[str], tmp_path: Path):
    own, other = Store(tmp_path / "own", create=True), Store(tmp_path / "other", create=True)
    judge(other)  # holds nothing that the artifact reads
    judge()
    assert judged == [ARTIFACT]
    shipped = Layered(committed())
    groups = [specs for profile in PROFILES for specs in PAPER.artifact(ARTIFACT).runs(profile).values()]
    run = shipped.read(min({spec.id for specs in groups for spec in specs} & shipped.ids()))
    own.commit(run.id, dict(run.files))
    judge(own)
    judge(own)
    assert judged == [ARTIFACT] * 3


def test_what_cannot_be_read_is_judged_anew(judged: list[str], tmp_path: Path):
    judge()
    (kept,) = (tmp_path / "cache").rglob("*.json")
    kept.write_text("[{}")
    judge()
    assert judged == [ARTIFACT] * 2


@pytest.mark.parametrize(
    "edit", [lambda data: data.replace(b'"inconclusive"', b'"reproduced"'), lambda data: data[:-1]]
)
def test_what_is_not_what_was_kept_is_judged_anew(judged: list[str], tmp_path: Path, edit: Callable[[bytes], bytes]):
    """A disk that fails, or an editor: whoever edits the digest too can edit the source as well."""
    first = judge()
    (place,) = (tmp_path / "cache").rglob("*.json")
    kept = place.read_bytes()
    assert edit(kept) != kept
    place.write_bytes(edit(kept))
    assert judge() == first
    assert judged == [ARTIFACT] * 2


def test_nothing_comes_from_memory_where_that_is_asked(judged: list[str], monkeypatch: pytest.MonkeyPatch):
    judge()
    monkeypatch.setenv(remembered.FRESH, "1")
    judge()
    assert judged == [ARTIFACT] * 2


def test_a_check_says_how_many_verdicts_come_from_memory(judged: list[str], capsys: pytest.CaptureFixture[str]):
    said = []
    for _ in range(2):
        evidence = Layered(committed())
        check_selection([ARTIFACT], None, evidence, set(), as_json=False, junit_path=None, verbose=False)
        said.append(" ".join(capsys.readouterr().out.split()))
    assert "memory" not in said[0]
    count = len([claim for claim in published("isgd") if claim.artifact == ARTIFACT])
    assert f"{count} of {count} verdicts from memory" in said[1]


@pytest.mark.parametrize("command", ["refresh", "reproduce"])
def test_what_commits_or_compares_verdicts_judges_anew(command: str, monkeypatch: pytest.MonkeyPatch):
    seen: list[str | None] = []

    def asked(*_: object, **__: object) -> tuple[int, list[str]] | int:
        seen.append(os.environ.get(remembered.FRESH))
        return (0, []) if command == "refresh" else 0

    monkeypatch.setenv(remembered.FRESH, "")  # given back when the test ends
    place = {"refresh": "refresh.refresh", "reproduce": "reproduce.reproduce_selection"}[command]
    monkeypatch.setattr(f"suite.commands.{place}", asked)
    with pytest.raises(typer.Exit):
        {"refresh": pictures.refresh_, "reproduce": pictures.reproduce}[command]()
    assert seen == ["1"]


def test_no_workflow_that_judges_takes_verdicts_from_memory():
    for name in (".ci/run", ".github/workflows/gpu.yml", ".github/workflows/tests.yml"):
        assert re.search(rf"{remembered.FRESH}(=1|: \"1\")", (ROOT / name).read_text()), name


def test_only_the_last_states_are_kept(judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(5):
        monkeypatch.setattr(remembered, "state", lambda number=number: f"state-{number}")
        judge()
    assert len(list((tmp_path / "cache" / "verdicts").iterdir())) == kept.STATES
