"""The generated blocks of README and docs: only what lies between their markers is written."""

from __future__ import annotations

import re
import tomllib

import pytest

from suite.lazy import TESTED
from suite.report.readme import ReadmeError, rewritten
from suite.runs.environment import ROOT

BEGIN, END = "<!-- verdicts:begin -->", "<!-- verdicts:end -->"


def test_only_the_block_between_the_markers_changes():
    text = f"# Title\n\n{BEGIN}\nold\n{END}\n\nAfter.\n"
    assert rewritten(text, "verdicts", "new") == f"# Title\n\n{BEGIN}\nnew\n{END}\n\nAfter.\n"
    assert rewritten(rewritten(text, "verdicts", "new"), "verdicts", "new") == rewritten(text, "verdicts", "new")


@pytest.mark.parametrize("text", ["", f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}{BEGIN}{END}"])
def test_a_file_without_its_markers_is_refused(text):
    with pytest.raises(ReadmeError, match="must hold <!-- verdicts:begin --> once"):
        rewritten(text, "verdicts", "new")


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    by_hand = re.sub(r"<!-- (\w+):begin -->.*?<!-- \1:end -->", "", text, flags=re.DOTALL)
    assert len(by_hand.split()) < 550
    inside = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert inside
    assert [link for link in inside if not (ROOT / link).exists()] == []


def test_the_badge_names_the_releases_of_torch():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (oldest,) = (each.partition(">=")[2] for each in project["dependencies"] if each.startswith("torch>="))
    newest = f"{TESTED[0]}.{TESTED[1] - 1}"
    assert f"![torch {oldest} to {newest}]" in (ROOT / "README.md").read_text(encoding="utf-8")
