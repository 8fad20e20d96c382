"""Every command over every artifact, from the committed evidence."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import walk

from suite.papers import catalogue, measurement
from suite.papers.artifact import Artifact
from suite.papers.catalogue import PAPERS, paper, published
from suite.papers.evidence import committed
from suite.papers.panel import Quantity
from suite.runs.archive import Layered
from suite.runs.environment import ROOT
from suite.runs.store import Store

pytestmark = pytest.mark.journeys

CLAIMS = [claim.id for name in PAPERS for claim in published(name)]
ONE = "isgd/fig8"  # an artifact with a run, a drawing and measures, and quickly walked


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, and one core, so that everything happens in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SGD_SUITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``check`` remembers from one test to the next."""
    return tmp_path_factory.mktemp("cache")


def alone(*commands: list[str]) -> str:
    """What commands print in a process of their own, which must have loaded neither torch nor matplotlib."""
    script = f"""
import sys
from suite.cli import main
for words in {commands!r}:
    sys.argv[1:] = words
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, (words, stop.code)
assert not {{"torch", "matplotlib"}} & set(sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return done.stdout


def test_every_claim_is_judged_and_listed_and_one_of_each_artifact_explained(here, cache, monkeypatch):
    monkeypatch.setenv("SGD_SUITE_CACHE", str(cache))
    one_of_each = {claim.rpartition("/")[0]: claim for claim in CLAIMS}.values()
    told = alone(["check", "-v"], *(["explain", claim] for claim in one_of_each))
    assert all(claim.rpartition("/")[2] in told for claim in CLAIMS)
    assert all(claim in told for claim in one_of_each)
    for command in (["list"], ["plan", "--profile", "paper"], ["check"]):
        assert walk.call(*command).fine().out
        document = json.loads(walk.call(*command, "--json").fine().out)
        assert document
    assert {row["id"] for row in document} == set(CLAIMS)


@pytest.mark.parametrize("words", [["list"], ["check"], ["plan", "--profile", "paper"], ["doctor"], ["--help"]])
def test_a_terminal_of_eighty_columns_holds_every_line(here, cache, monkeypatch, words):
    monkeypatch.setenv("SGD_SUITE_CACHE", str(cache))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", walk.call(*words, terminal=True).fine().out)  # without colours
    assert max(map(len, shown.splitlines())) <= 80


def test_a_report_is_written_once(here):
    """Of one paper; tests/test_pictures.py makes the page of every artifact."""
    walk.call("report", "matex_agd").fine()
    pages = [here / "report" / f"{artifact.id}.html" for artifact in paper("matex_agd").artifacts]
    assert all(page.exists() for page in pages)
    assert "nothing has changed" in walk.call("report", "matex_agd").fine().err


def test_one_seed_ends_in_a_curve_a_number_and_how_many_seeds_it_is(here):
    """As ``run isgd/fig5a --profile reduced --seeds 1`` leaves it."""
    fig5a, source = paper("isgd").artifact("isgd/fig5a"), Layered(committed())
    store = Store(here / "runs.store", create=True)
    for specs in fig5a.runs("reduced").values():
        store.commit(specs[0].id, source.read(specs[0].id).files)
    done = walk.call("figures", fig5a.id, "--only-mine", "--data", "csv").fine()
    assert "reduced profile · 1 of 5 seeds" in done.err
    assert "1 of 5 seeds" in (here / "figures/isgd-fig5a.svg").read_text()
    assert set(pd.read_csv(here / "figures/isgd-fig5a.csv")["method"]) == {"SGD", "ISGD"}
    rows = json.loads(walk.call("check", fig5a.id, "--only-mine", "--json").fine().out)
    lead = next(row for row in rows if row["id"] == "isgd/fig5a/isgd-at-least-sgd")
    assert lead["proxy"]["note"].startswith("1 of 5 seeds at reduced")
    assert "4 of 5 runs of sgd at reduced are missing" in lead["why"]
    told = walk.call("check", fig5a.id, "--only-mine").fine().out
    assert "stand-in, open" in told
    assert "evidence: 2 yours, 0 committed" in told


def broken(*_: object) -> None:
    raise ZeroDivisionError("planted")


def in_drawing(artifact: Artifact, patch: pytest.MonkeyPatch) -> Artifact:
    return replace(artifact, draw=broken)


def in_measuring(artifact: Artifact, patch: pytest.MonkeyPatch) -> Artifact:
    return replace(artifact, quantities={name: Quantity(broken) for name in artifact.quantities})


def in_grading(artifact: Artifact, patch: pytest.MonkeyPatch) -> Artifact:
    patch.setattr(measurement, "grade", broken)
    return artifact


@pytest.mark.parametrize("plant", [None, in_drawing, in_measuring, in_grading])
def test_an_exception_anywhere_turns_the_walk_red(here, monkeypatch, plant: Callable | None):
    known = catalogue.PAPERS["isgd"]
    which = paper("isgd")
    made = [plant(a, monkeypatch) if plant and a.id == ONE else a for a in which.artifacts]
    monkeypatch.setitem(
        catalogue.PAPERS, "isgd", catalogue.Registered(lambda: replace(which, artifacts=tuple(made)), known.home)
    )
    catalogue.paper.cache_clear()
    red = []
    for step in (lambda: walk.figures(here / "figures", ONE), lambda: walk.judged(ONE)):
        try:
            step()
        except AssertionError as error:
            red.append(str(error))
    catalogue.paper.cache_clear()
    assert bool(red) == bool(plant), red
    assert all(ONE in said and "planted" in said for said in red)
