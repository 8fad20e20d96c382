"""The generated blocks of README and docs: only what lies between their markers is written."""

from __future__ import annotations

import re

import pytest
from fake_paper import fill, registered

from suite.report import readme
from suite.report.readme import (
    ReadmeError,
    blocks,
    main,
    rewritten,
)
from suite.runs.archive import Layered
from suite.runs.environment import ROOT


@pytest.fixture
def verdicts(tmp_path):
    """Verdicts of the fake paper on stored runs."""
    with registered(tmp_path):
        return readme.judged_of(["fake"], fill(tmp_path / "store", note="untuned"))


BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"


def test_only_the_block_between_the_markers_changes():
    text = f"# Title\n\n{BEGIN}\nold\n{END}\n\nAfter.\n"
    assert rewritten(text, "verdicts", "new") == f"# Title\n\n{BEGIN}\nnew\n{END}\n\nAfter.\n"
    assert rewritten(rewritten(text, "verdicts", "new"), "verdicts", "new") == rewritten(text, "verdicts", "new")


@pytest.mark.parametrize("text", ["", f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}{BEGIN}{END}"])
def test_a_file_without_its_markers_is_refused(text):
    with pytest.raises(ReadmeError, match="must hold <!-- verdicts:begin --> once"):
        rewritten(text, "verdicts", "new")


def test_writing_then_comparing_agrees(tmp_path, monkeypatch, verdicts, capsys):
    monkeypatch.setattr(readme, "judged", lambda source: verdicts)
    monkeypatch.setattr(readme, "answers", lambda homes: [])  # of other papers' claims
    monkeypatch.setattr(readme, "findings", lambda home: [])
    (tmp_path / "docs").mkdir()
    written = blocks(verdicts, Layered([]))
    for name, made in written.items():
        (tmp_path / name).write_text("".join(f"<!-- {block}:begin -->\n<!-- {block}:end -->\n" for block in made))
    there = ["--root", str(tmp_path)]
    assert main(there) == 1
    assert capsys.readouterr().err.count("out of date") == len(written)
    assert main(["--write", *there]) == 0
    assert main(there) == 0
    (tmp_path / "README.md").write_text("# No place for it\n")
    assert main(["--write", *there]) == 2
    assert (tmp_path / "README.md").read_text() == "# No place for it\n"
    assert main(["--root", str(tmp_path / "absent")]) == 2


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    by_hand = re.sub(r"<!-- (\w+):begin -->.*?<!-- \1:end -->", "", text, flags=re.DOTALL)
    assert len(by_hand.split()) < 550
    inside = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert inside
    assert [link for link in inside if not (ROOT / link).exists()] == []
