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
from suite.papers.artifact import Artifact, Quantity
from suite.papers.catalogue import PAPERS, committed, paper, published
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


ONE_OF_EACH = list({claim.rpartition("/")[0]: claim for claim in CLAIMS}.values())
WIDE = ["list", "check", "plan --profile paper", "--help"]  # of what is told to a terminal too


def alone(commands: list[str], terminal: list[str]) -> dict[str, str]:
    """What commands print in a process of their own, which must have loaded neither torch nor matplotlib.

    In one process, since the first ``check`` measures everything; what is told to a terminal stands under " to it".
    """
    script = f"""
import json, sys, walk
told = {{line: walk.call(*line.split()).fine().out for line in {commands!r}}}
told |= {{f"{{line}} to it": walk.call(*line.split(), terminal=True).fine().out for line in {terminal!r}}}
assert not {{"torch", "matplotlib"}} & set(sys.modules)
print(json.dumps(told))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(walk.__file__).parent)))}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return json.loads(done.stdout)


def columns(shown: str) -> int:
    """The widest line, without colours."""
    return max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()))


def test_every_claim_is_judged_and_listed_and_one_of_each_artifact_explained(here):
    """And a terminal of eighty columns holds every line."""
    asked = [f"{line}{more}" for line in WIDE[:3] for more in ("", " --json")]
    told = alone(["check -v", *(f"explain {claim}" for claim in ONE_OF_EACH), *asked], WIDE)
    assert [claim for claim in CLAIMS if claim.rpartition("/")[2] not in told["check -v"]] == []
    assert all(claim in told[f"explain {claim}"] for claim in ONE_OF_EACH)
    assert all(told[line] for line in asked)
    assert all(json.loads(told[line]) for line in asked if line.endswith("--json"))
    assert {row["id"] for row in json.loads(told["check --json"])} == set(CLAIMS)
    assert max(columns(told[f"{line} to it"]) for line in WIDE) <= 80
    assert columns(walk.call("doctor", terminal=True).fine().out) <= 80


def test_a_report_has_the_page_of_each_artifact(here):
    """Of three; tests/test_pictures.py makes the page of every artifact."""
    asked = ["isgd/fig7b", ONE, "rudra/table4"]
    walk.call("report", *asked).fine()
    assert all((here / "report" / f"{artifact}.html").exists() for artifact in asked)


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
    assert told.count("proxy, open, 1 of 5 seeds at reduced:") == 3
    assert "evidence: 2 yours, 0 committed" in told


def broken(*_: object) -> None:
    raise ZeroDivisionError("planted")


def in_drawing(artifact: Artifact, patch: pytest.MonkeyPatch) -> Artifact:
    return replace(artifact, draw=broken)


def in_measuring(artifact: Artifact, patch: pytest.MonkeyPatch) -> Artifact:
    return replace(artifact, quantities={name: Quantity(broken) for name in artifact.quantities})


def in_grading(artifact: Artifact, patch: pytest.MonkeyPatch) -> Artifact:
    patch.setattr(measurement.Grading, "grade", broken)
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
