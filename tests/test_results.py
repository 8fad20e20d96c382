"""What is committed says what the committed runs say: grades, the table of results, the README and the docs.

All papers are measured once for all of these tests.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from suite.claims.board import corrected_verdicts
from suite.claims.judge import TEST
from suite.commands import refresh
from suite.commands.reproduce import committed_verdicts
from suite.papers.catalogue import PAPERS, entries, homes, paper, papers_of, published
from suite.papers.evidence import committed
from suite.papers.grades import Grading
from suite.papers.measurement import measurements, verdicts
from suite.papers.register import DECIDING, read
from suite.report import data
from suite.report.numerals import alike
from suite.report.readme import blocks, rewritten
from suite.runner.cost import TRAIN
from suite.runs.archive import Layered
from suite.runs.environment import ROOT
from suite.runs.run import Run

pytestmark = pytest.mark.evidence


def committed_rows():
    return data.read((homes()[0] / data.FILE).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def judged():
    """Verdicts of all papers on the committed evidence, and the evidence."""
    source = Layered(committed())
    found = []
    for name in PAPERS:
        artifacts = {claim.artifact for claim in published(name)}
        alone = verdicts(paper(name), source, artifacts=artifacts)
        found += corrected_verdicts(alone, read(PAPERS[name].home).families)
    return found, source


@pytest.mark.parametrize("name", papers_of(homes()[0]))
def test_every_value_and_verdict_is_the_committed_one(judged, name):
    now = data.rows(verdict for verdict in judged[0] if verdict.claim.paper == name)
    before = [row for row in committed_rows() if row["claim"].startswith(f"{name}/")]
    assert data.merged(before, now) == before


@pytest.mark.parametrize("name", papers_of(homes()[0]))
def test_every_statement_holds(judged, name):
    """Entries of kind *test*: what cannot be false of our own code, a setting read back, arithmetic on print."""
    _, source = judged
    statements = [entry for entry in entries(name) if entry.kind == TEST]
    artifacts = {entry.artifact for entry in statements}
    found = verdicts(paper(name), source, artifacts=artifacts, claims=statements)
    assert [(v.claim.id, v.verdict, v.why) for v in found if v.verdict != "reproduced"] == []


def test_no_committed_run_is_lost_or_changed():
    assert refresh.stored(homes()[0]) == (homes()[0] / refresh.RUNS).read_text(encoding="utf-8")


def test_values_are_compared_as_numbers():
    row = next(row for row in committed_rows() if row["low"] and float(row["low"]) < float(row["high"]) < 1e9)
    value, width = float(row["ours"]), float(row["high"]) - float(row["low"])
    beside = lambda by: [row | {"ours": f"{value + by:.10g}"}]
    assert data.merged([row], beside(5e-3 * width)) == beside(5e-3 * width)
    assert data.moved([row], beside(5e-3 * width)) == {row["claim"]: [row]}
    assert data.moved([row], [beside(5e-3 * width)[0] | {"runs": "others"}]) == {}
    assert data.merged([row], beside(5e-4 * width)) == [row]


def test_every_claim_with_a_grade_has_a_number():
    table = pd.read_csv(homes()[0] / data.FILE, keep_default_na=False)  # "nan" is what was measured to be no number
    assert ((table["rests on"] == "") == (table["ours"] == "")).all()


def test_every_committed_grade_follows_from_the_stored_specifications(judged):
    """Read again from the run folders: specification and machine, and nothing that was computed."""
    found, source = judged
    told = [verdict for verdict in found if verdict.measured is not None]
    assert told
    for verdict in told:
        claim = verdict.claim
        artifact = paper(claim.paper).artifact(claim.artifact)
        rests = measurements(artifact, source, claimed=True)[verdict.profile].rests[claim.quantity]
        assert set(verdict.measured.runs) <= {run.id for run in rests.runs}, claim.id
        again = replace(rests, runs=tuple(Run(run.id, source.read(run.id).files) for run in rests.runs))
        experiments = {"train": TRAIN, **paper(claim.paper).experiments}
        found = Grading(claim.paper, experiments).grade(claim.id, again)
        assert (found.rests_on, found.because) == (verdict.rests_on, verdict.because), claim.id
        assert verdict.decides is (found.decides and verdict.order in DECIDING), claim.id


def test_the_main_job_expects_no_verdict_of_a_claim_that_is_gone():
    there = {claim.id for name in papers_of(homes()[0]) for claim in published(name)}
    assert set(committed_verdicts("smoke")) <= there


def test_nothing_that_is_committed_is_red(judged):
    assert judged[0]
    assert [(v.claim.id, v.why) for v in judged[0] if v.red] == []


def test_readme_and_docs_say_what_the_committed_evidence_says(judged):
    found, source = judged
    for name, made in blocks(found, source).items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for block, wanted in made.items():
            assert alike(text, rewritten(text, block, wanted)), f"{name}: sgd-suite refresh brings it up to date"
