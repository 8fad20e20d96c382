"""Verdicts on committed evidence are kept between calls, and judged anew when anything behind them changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from suite.claims.judge import PROFILES
from suite.papers import remembered
from suite.papers.evidence import committed
from suite.papers.registry import paper
from suite.papers.verdicts import verdicts
from suite.runs.archive import Layered
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
