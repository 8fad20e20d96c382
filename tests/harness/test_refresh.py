"""Generated files are written where they are out of date, and with ``check`` only named."""

from __future__ import annotations

import pytest
import typer

from suite.commands import refresh


@pytest.fixture
def home(tmp_path, monkeypatch):
    """One home, of which two files are generated: one as it should be, one out of date."""
    (tmp_path / "well.csv").write_text("a\n")
    (tmp_path / "old.csv").write_text("b\n")
    monkeypatch.setattr(refresh, "homes_of", lambda papers: [tmp_path])
    monkeypatch.setattr(refresh, "project", lambda home: home)
    wanted = {tmp_path / "well.csv": "a\n", tmp_path / "old.csv": "c\n", tmp_path / "new.csv": "d\n"}
    monkeypatch.setattr(refresh, "generated", lambda home, root: wanted)
    return tmp_path


def code_of(**options) -> int:
    with pytest.raises(typer.Exit) as end:
        refresh.command(**options)
    return end.value.exit_code


def test_what_is_out_of_date_or_absent_is_written(home, capsys):
    assert code_of() == 0
    assert capsys.readouterr().out == f"{home / 'old.csv'}: renewed\n{home / 'new.csv'}: renewed\n"
    assert [(home / name).read_text() for name in ("well.csv", "old.csv", "new.csv")] == ["a\n", "c\n", "d\n"]
    assert code_of(check=True) == 0
    assert capsys.readouterr().out == "all generated files are up to date\n"


def test_a_check_writes_nothing_and_fails(home, capsys):
    assert code_of(check=True) == 1
    assert capsys.readouterr().out == f"{home / 'old.csv'}: out of date\n{home / 'new.csv'}: out of date\n"
    assert (home / "old.csv").read_text() == "b\n"
    assert not (home / "new.csv").exists()


def test_one_in_the_last_digit_makes_nothing_out_of_date(tmp_path, monkeypatch):
    (tmp_path / "made.csv").write_text("a,-0.242013\n")
    monkeypatch.setattr(refresh, "homes_of", lambda papers: [tmp_path])
    monkeypatch.setattr(refresh, "project", lambda home: home)
    for written, code in (("a,-0.242012\n", 0), ("a,-0.242019\n", 1)):
        monkeypatch.setattr(refresh, "generated", lambda home, root, text=written: {home / "made.csv": text})
        assert code_of(check=True) == code


def test_a_run_that_the_evidence_lost_keeps_its_line_and_is_told(tmp_path):
    """Another seed is added; of one run the contents changed, and one is gone."""
    path = tmp_path / refresh.RUNS
    path.parent.mkdir()
    path.write_text("a 1\nb 2\nc 3\n")
    text, said = refresh.kept(path, "a 1\nb 4\nd 5\n", tmp_path)
    assert text == "a 1\nb 2\nb 4\nc 3\nd 5\n"
    assert said == [
        f"{path}: the evidence holds {run} no more; delete its line if that is meant" for run in ("b 2", "c 3")
    ]
