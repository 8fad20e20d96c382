"""What is committed says what the committed runs say: grades, the table of results, the README and the docs.

All papers are measured once for all of these tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise

import pandas as pd
import pytest

from suite.claims.board import corrected_verdicts
from suite.claims.judge import TEST
from suite.commands import refresh
from suite.commands.reproduce import committed_verdicts
from suite.papers.catalogue import PAPERS, committed, entries, homes, paper, papers_of, published
from suite.papers.grades import Grading
from suite.papers.measurement import measurements, relate, verdicts
from suite.papers.register import DECIDING, LATE, parsed, read
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
    """Of several versions the first decides, so that another one could take the place of what was committed."""
    held, source = refresh.stored(homes()[0]), Layered(committed())
    assert held == (homes()[0] / refresh.RUNS).read_text(encoding="utf-8")
    listed = Counter(line.split()[0] for line in held.splitlines())
    versions = [source.versions(run) for run, count in listed.items() if count > 1]
    assert {relate(first, other) for first, *others in versions for other in others} <= {"confirmed"}


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


# --- what the history of the project bears out: the files themselves are written by whoever likes to


REGISTER = "paper_figures/published/register.jsonl"
SINCE = "2026-11-26T05:00:00+00:00"  # a claim that leaves the board leaves its last verdict in the register


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def begun():
    """The revision that began the register, and when (UTC); all revisions. Skips without the whole history."""
    try:
        whole = (ROOT / ".git").exists() and git("rev-parse", "--is-shallow-repository") == "false\n"
        whole &= git("rev-list", "--count", "HEAD", "--", REGISTER) != "1\n"  # a copy of the files, committed anew
    except (OSError, subprocess.SubprocessError):
        whole = False
    if not whole:
        pytest.skip("there is no history of the project, or not all of it")
    *_, revision, date = git("log", "--diff-filter=A", "--format=%H %cI", "--", REGISTER).split()
    return revision, datetime.fromisoformat(date).astimezone(UTC).isoformat(), set(git("rev-list", "HEAD").split())


@cache
def register_at(revision):
    return parsed(git("show", f"{revision}:{REGISTER}").splitlines(), REGISTER)


def test_the_rules_of_each_verdict_stood_at_the_revisions_of_its_runs(judged, begun):
    """When the first run began, these rules and no others; of the grid each run, and none that is there besides."""
    found, source = judged
    first, since, history = begun
    for verdict in (v for v in found if v.runs):
        claim, now = verdict.claim, read(PAPERS[verdict.claim.paper].home)
        asked, then = now.grids[claim.artifact], []
        about = {run: source.read(run).environment for run in verdict.runs}
        for run in sorted(about, key=lambda run: about[run].get("started", "")):
            revision = about[run]["revision"] if about[run].get("started", "") > since else first
            assert revision in history, f"{run}: merge the revision that computed it"
            then.append(register_at(revision))
            grid = then[-1].grids.get(claim.artifact, {})
            assert run in grid or verdict.order == LATE, claim.id
            assert not (grid.keys() - asked.keys()) & source.ids(), claim.id
            assert then[-1].families in ("", now.families)
        in_force = [line for line in now.rules[claim.id] if line["date"] <= verdict.began or "order" in line]
        assert in_force == then[0].rules.get(claim.id, []), claim.id


# How those revisions digested their own code, as a whole or by experiment
DIGESTS = """
try:
    from suite.runs.source import digest
    print(digest())
except ImportError:
    from suite.papers.registry import experiment
    print(*(experiment(name).code for name in ("train", "rudra/train", "isgd/latency")))
"""


def test_what_computed_runs_of_changed_trees_is_the_code_of_the_revisions_named(begun, tmp_path):
    """The digests of code that these runs recorded are computed anew from the revisions' own files."""
    sources = read(PAPERS["rudra"].home).sources
    for revision in set(sources.values()):
        folder = tmp_path / revision
        git("archive", "--output", tmp_path / "files.tar", revision)
        shutil.unpack_archive(tmp_path / "files.tar", folder, filter="data")
        asked = {
            "cwd": folder,
            "env": {**os.environ, "PYTHONPATH": str(folder)},
            "capture_output": True,
            "check": True,
        }
        digests = subprocess.run([sys.executable, "-c", DIGESTS], text=True, **asked).stdout.split()
        assert set(digests) == {digest for digest, named in sources.items() if named == revision}


def versions(path):
    """A committed file as it was at each revision of the main line, oldest first, and as it is."""
    revisions = git("log", "--first-parent", "--reverse", f"--since={SINCE}", "--format=%H", "--", path).split()
    return [*(git("show", f"{revision}:{path}") for revision in revisions), (ROOT / path).read_text(encoding="utf-8")]


def test_no_number_moved_and_no_claim_or_run_left_without_a_reason(begun):
    """Nor does the register name a number of before that no table held: it would stand as the claim's own."""
    now, tables = read(homes()[0]), [*map(data.read, versions(f"paper_figures/{data.FILE}"))]
    for before, after in pairwise(tables):
        assert refresh.unexplained(homes()[0], before, after) == {}
        old, new = data.by_claim(before), data.by_claim(after)
        for claim in old.keys() - new.keys():
            assert now.merged.get(claim, "").startswith(f"{old[claim][0]['verdict']} until"), claim
    for claim, lines in now.moved.items():
        rows = [data.by_claim(table).get(claim, []) for table in tables]
        told = [data.number_of(each) for each in rows if each and each[0]["ours"]]
        assert [line for line in lines if line["moved"] not in told] == []
    *earlier, held = (set(text.splitlines()) for text in versions(f"paper_figures/{refresh.RUNS}"))
    gone = {line.split()[0] for line in set().union(*earlier) - held}
    assert gone <= set().union(*now.removed.values())
