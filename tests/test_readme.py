"""The generated blocks of README and docs equal what the committed evidence and the committed measurements say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fake_paper import fill, registered

from suite.papers.evidence import committed
from suite.papers.grades import Rests, grade, read_of
from suite.papers.register import DECIDING
from suite.papers.registry import PAPERS, paper
from suite.report import readme
from suite.report.numerals import alike
from suite.report.page import all_verdicts
from suite.report.readme import (
    ReadmeError,
    blocks,
    main,
    rewritten,
)
from suite.runner.cost import TRAIN
from suite.runs.archive import Layered
from suite.runs.environment import ROOT
from suite.spec import RunSpec


@pytest.fixture
def verdicts(tmp_path):
    """Verdicts of the fake paper on stored runs."""
    with registered(tmp_path) as paper:
        return all_verdicts(paper, fill(tmp_path / "store", note="untuned"))


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
    (tmp_path / "docs").mkdir()
    for name, made in blocks(verdicts, Layered([])).items():
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
def committed_measured():
    """What every artifact's committed runs say, by paper, and the verdicts on it."""
    source, measured = Layered(committed()), {}
    found = [verdict for name in PAPERS for verdict in all_verdicts(paper(name), source, measured)]
    return found, measured, source


@pytest.fixture(scope="module")
def committed_verdicts(committed_measured):
    """Verdicts of all papers on the committed evidence, as ``sgd-suite check`` without a profile gives them."""
    return committed_measured[0]


@pytest.mark.evidence
def test_every_committed_grade_follows_from_the_stored_specifications(committed_measured):
    """Read again from the run folders: specification and machine, and nothing that was computed."""
    found, measured, source = committed_measured
    told = [verdict for verdict in found if verdict.measured is not None]
    assert told
    for verdict in told:
        claim = verdict.claim
        rests = measured[claim.artifact, verdict.profile].rests[claim.quantity]
        assert set(verdict.measured.runs) <= {read.spec.id for read in rests.runs}, claim.id
        runs = [source.read(read.spec.id) for read in rests.runs]
        again = tuple(replace(read_of(run), spec=RunSpec.from_json(run.files["spec.json"].decode())) for run in runs)
        experiments = {"train": TRAIN, **paper(claim.paper).experiments}
        found = grade(claim.id, Rests(rests.measure, again), experiments)
        assert (found.rests_on, found.because) == (verdict.rests_on, verdict.because), claim.id
        assert verdict.decides is (found.decides and verdict.order in DECIDING), claim.id


@pytest.mark.evidence
def test_nothing_that_is_committed_is_red(committed_verdicts):
    assert committed_verdicts
    assert [(v.claim.id, v.why) for v in committed_verdicts if v.red] == []


@pytest.mark.evidence
def test_readme_and_docs_say_what_the_committed_evidence_says(committed_measured):
    found, _, source = committed_measured
    for name, made in blocks(found, source).items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for block, wanted in made.items():
            assert alike(text, rewritten(text, block, wanted)), (
                f"{name}: python -m suite.report.readme --write brings it up to date"
            )


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    by_hand = re.sub(r"<!-- (\w+):begin -->.*?<!-- \1:end -->", "", text, flags=re.DOTALL)
    assert len(by_hand.split()) < 550
    inside = [link for link in re.findall(r"\]\(([^)#]+)", text) if not link.startswith("http")]
    assert inside
    assert [link for link in inside if not (ROOT / link).exists()] == []
