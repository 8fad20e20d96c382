"""Where things stand: a file for each figure, small files and folders, torch in experiments, little left untyped."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
from pathlib import Path

import pytest
import toy

from suite.papers.artifact import Artifact, Missing
from suite.papers.catalogue import entries, paper
from suite.report.drawing import drawing
from suite.report.verdict_details import function_of
from suite.runs.archive import Layered

PAPERS = ("isgd", "inverse_law", "rudra", "matex_agd", "crossbow")
ARTIFACTS = [artifact for name in PAPERS for artifact in paper(name).artifacts]
CHECKED = ("suite", "reference_impls", "paper_figures")  # by mypy
CODE = (*CHECKED, "benchmarks", "ci")
LINES, FILES, IGNORED = 400, 20, 10


def sources(*tops: str) -> list[Path]:
    found = sorted(path for top in tops for path in (toy.CHECKOUT / top).rglob("*.py"))
    assert found, tops
    return found


def file_of(artifact: str) -> str:
    """The module that a table, figure, algorithm or equation stands in."""
    name, _, rest = artifact.partition("/")
    stem = rest.replace("-", "_")
    if numbered := re.fullmatch(r"((?:fig|table)\d+)[a-z]?", stem):
        stem = numbered[1]
    if not (toy.CHECKOUT / "paper_figures" / name / f"{stem}.py").exists():
        kinds = {"alg": "algorithms", "eq": "equations", "fig": "systems"}
        stem = next(module for kind, module in kinds.items() if stem.startswith(kind))
    return f"paper_figures.{name}.{stem}"


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.id)
def test_an_artifact_stands_and_is_drawn_in_the_file_of_its_name(artifact: Artifact):
    file = file_of(artifact.id)
    assert artifact in vars(importlib.import_module(file)).values()
    assert artifact.draw is None or function_of(artifact.draw).__module__ == file


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.id)
def test_a_figure_without_runs_says_that_they_are_missing(artifact: Artifact):
    """At every profile: the largest is tried first, and one that is drawn all the same reads none at any."""
    with contextlib.suppress(Missing):
        drawing(artifact, Layered([]))


@pytest.mark.parametrize("name", PAPERS)
def test_the_measure_of_a_claim_has_a_name_for_explain_to_say(name: str):
    asked = {(claim.artifact, claim.quantity) for claim in entries(name)}
    measures = [
        function_of(quantity.value).__qualname__
        for artifact in paper(name).artifacts
        for known, quantity in artifact.quantities.items()
        if (artifact.id, known) in asked
    ]
    assert measures
    assert "<lambda>" not in measures


def test_files_are_short():
    paths = sources(*CODE, "tests", "examples")
    long = {path.relative_to(toy.CHECKOUT).as_posix(): len(path.read_text().splitlines()) for path in paths}
    assert {name: lines for name, lines in long.items() if lines > LINES} == {}


def test_the_page_on_architecture_names_files_that_are_there() -> None:
    page = (toy.CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+/[a-z_/]+\.(?:py|json))`", page))
    places = (toy.CHECKOUT, toy.CHECKOUT / "suite")
    assert named
    assert not {name for name in named if not any((place / name).exists() for place in places)}
