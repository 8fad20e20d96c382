"""The generated blocks of README and docs equal what the committed evidence and the committed measurements say."""

from __future__ import annotations

import re
import tomllib

import pytest
from fake_paper import PUBLISHED, fake_paper, fill

from suite.claims.judge import judge, load, not_run
from suite.papers.evidence import committed
from suite.papers.verdicts import measure
from suite.report import readme
from suite.report.readme import (
    ReadmeError,
    blocks,
    first_results,
    first_table,
    judged,
    main,
    results,
    rewritten,
    table,
    telling,
)
from suite.runs.archive import Layered
from suite.runs.environment import ROOT


@pytest.fixture
def verdicts(tmp_path):
    """Verdicts of the fake paper on stored runs."""
    (tmp_path / "fake.toml").write_text(PUBLISHED)
    paper, store = fake_paper(), fill(tmp_path / "store", note="untuned")
    result = []
    for claim in load(tmp_path / "fake.toml"):
        artifacts = [a for a in paper.artifacts if a.id == claim.artifact]
        found = measure(artifacts[0], store, "smoke").found if artifacts else {}
        if claim.profile == "smoke":
            result.append(judge(claim, found[claim.quantity], "smoke", found.get("shown")))
        else:
            result.append(not_run(claim, "needs a cluster", found.get(claim.quantity)))
    return result


def test_the_table_counts_empirical_claims_first(verdicts):
    lines = table(verdicts).splitlines()
    assert lines[0].startswith("| Empirical claims | reproduced | not reproduced | inconclusive | not run |")
    assert "| fake | 2 | 2 | 1 | 2 | 1 | 0 | 8 |" in lines
    definitions = lines.index(next(line for line in lines if line.startswith("| Definitions and arithmetic")))
    assert definitions > lines.index("| fake | 2 | 2 | 1 | 2 | 1 | 0 | 8 |")
    assert lines[definitions + 2] == "| fake | 2 | 0 | 0 | 0 | 0 | 1 | 3 |"


def test_the_readme_tells_the_definitions_in_a_sentence(verdicts):
    lines = first_table(verdicts).splitlines()
    assert "| all | 2 | 2 | 1 | 2 | 1 | 0 | 8 |" in lines
    assert lines[-1] == "Definitions and arithmetic: 2 reproduced, 1 paper contradicts itself."


def test_the_results_told_are_decided_and_empirical_findings_first(verdicts):
    told = telling(verdicts)
    assert [v.claim.id for v in told] == ["fake/fig1/gain", "fake/fig1/accuracy", "fake/fig1/unexplained"]
    text = results(verdicts)
    assert first_results(verdicts) == text.splitlines()[0]  # one of this one paper's
    assert (
        "- **not reproduced** (`fake/fig1`): It needs 26.79% less time than SGD. Printed: 26.79%; ours: "
        "2.68 [2.37, 2.99]% (measured, smoke profile, n = 3). The gain shrinks to a tenth once both are tuned alike."
    ) in text


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
    (tmp_path / "docs").mkdir()
    for name, made in blocks(verdicts).items():
        (tmp_path / name).write_text("".join(f"<!-- {block}:begin -->\n<!-- {block}:end -->\n" for block in made))
    there = ["--root", str(tmp_path)]
    assert main(there) == 1
    assert capsys.readouterr().err.count("out of date") == 3
    assert main(["--write", *there]) == 0
    assert main(there) == 0
    (tmp_path / "README.md").write_text("# No place for it\n")
    assert main(["--write", *there]) == 2
    assert (tmp_path / "README.md").read_text() == "# No place for it\n"
    assert main(["--root", str(tmp_path / "absent")]) == 2


@pytest.fixture(scope="module")
def committed_verdicts():
    """Verdicts of all papers on the committed evidence, as ``sgd-suite check`` without a profile gives them."""
    return judged(Layered(committed()))


def test_nothing_that_is_committed_is_red(committed_verdicts):
    assert len(committed_verdicts) > 700
    assert [(v.claim.id, v.why) for v in committed_verdicts if v.red] == []


def test_readme_and_docs_say_what_the_committed_evidence_says(committed_verdicts):
    for name, made in blocks(committed_verdicts).items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for block, wanted in made.items():
            assert rewritten(text, block, wanted) == text, (
                f"{name}: python -m suite.report.readme --write brings it up to date"
            )


def test_the_badges_are_true():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "Python 3.11 to 3.13" in text
    assert project["requires-python"] == ">=3.11,<3.14"
    assert "torch 2.11 to 2.15" in text
    assert "torch>=2.11,<2.16" in project["dependencies"]
    assert ("Apache License 2.0" in text) == (project["license"] == "Apache-2.0")


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) < 900
    inside = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert inside
    assert [link for link in inside if not (ROOT / link).exists()] == []
