"""Every id that a claim ever had leads to a claim, a test, a contradiction or a figure that is there."""

from __future__ import annotations

import ast
from functools import cache

import pytest
import toy

from suite.claims.judge import BOARD
from suite.papers import catalogue
from suite.papers.catalogue import Place, entries, homes, moved, paper, published
from suite.papers.register import read
from suite.report.readme import every_id

KINDS = (*BOARD, "row", "test", "contradiction", "figure")
PLACES = catalogue.places()
PAPERS = sorted({name.partition("/")[0] for name in PLACES})


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((toy.CHECKOUT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("which", PAPERS)
def test_each_id_leads_somewhere(which: str) -> None:
    claims = {claim.id: claim for claim in entries(which)}
    drawn = {artifact.id for artifact in paper(which).artifacts if artifact.draw}
    for name, place in PLACES.items():
        if not name.startswith(f"{which}/"):
            continue
        assert place.becomes in KINDS, name
        if place.becomes == "test":
            file, _, function = place.target.partition("::")
            assert function in functions_of(file), name
        elif place.becomes == "figure":
            assert place.target in drawn, name
        else:
            assert place.target in claims, name
            assert name in claims or not claims[place.target].row_of or place.becomes == "claim", name
            row = name in claims and claims[name].kind in BOARD and claims[name].row_of
            assert (place.becomes == "row") == bool(row), name
            assert place.becomes not in BOARD or place.target != name or claims[name].kind == place.becomes, name


@pytest.mark.parametrize("which", PAPERS)
def test_no_id_is_lost(which: str) -> None:
    own = lambda names: {name for name in names if name.startswith(f"{which}/")}
    judged = {claim.id for claim in entries(which) if claim.kind in BOARD}
    for home in homes():
        assert own(read(home).rules) <= {claim.id for claim in published(which)} | PLACES.keys()
        assert own(read(home).merged) <= PLACES.keys() - judged


def test_an_id_that_moved_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        "a/b/c": Place("test", "tests/x.py::y"),
        "a/b/d": Place("claim", "a/b/d"),
        "a/b/e": Place("row", "a/b/d"),
    }
    monkeypatch.setattr(catalogue, "places", lambda: table)
    assert moved("a/b/c") == "a/b/c is held by the test tests/x.py::y"
    assert moved("a/b/d") == moved("a/b/e") == moved("a/b/f") == ""


def test_the_last_verdict_of_a_claim_taken_from_the_board_is_told() -> None:
    (row,) = (line for line in every_id([]).splitlines() if line.startswith("| `inverse_law/fig1b/law-together`"))
    assert row.endswith("| figure | `inverse_law/fig1b` | not reproduced until 2026-11-26 |")
