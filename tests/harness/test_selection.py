"""Selectors: a paper, an artifact or a glob, and no paper is imported that none of them can mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.papers import catalogue
from suite.papers.artifact import Artifact, Paper
from suite.papers.catalogue import SelectorError, matching, select

ARTIFACTS = {"ant": ("fig1", "fig2", "table1"), "bee": ("fig1", "alg2")}


@pytest.fixture
def imported(monkeypatch):
    """Two papers instead of the registered ones; the names of those that were imported."""
    seen = []

    def loading(name):
        def load():
            seen.append(name)
            return Paper(name, "", "", tuple(Artifact(f"{name}/{a}", "") for a in ARTIFACTS[name]), {})

        return load

    papers = {name: catalogue.Registered(loading(name), Path()) for name in ARTIFACTS}
    catalogue.paper.cache_clear()
    monkeypatch.setattr(catalogue, "PAPERS", papers)
    yield seen
    catalogue.paper.cache_clear()


def chosen(*selectors):
    return [artifact.id for _, artifacts in select(selectors) for artifact in artifacts]


ALL = ["ant/fig1", "ant/fig2", "ant/table1", "bee/fig1", "bee/alg2"]


@pytest.mark.parametrize(
    ("selectors", "ids", "papers"),
    [
        ((), ALL, ["ant", "bee"]),
        (("ant",), ALL[:3], ["ant"]),
        (("bee/fig1",), ["bee/fig1"], ["bee"]),
        (("bee/fig1", "ant/fig2"), ["ant/fig2", "bee/fig1"], ["ant", "bee"]),
        (("bee/*", "bee"), ALL[3:], ["bee"]),
        (("ant/fig?",), ["ant/fig1", "ant/fig2"], ["ant"]),
        (("*/fig1",), ["ant/fig1", "bee/fig1"], ["ant", "bee"]),
        (("b[e]e/alg2",), ["bee/alg2"], ["bee"]),
        (("a*1",), ["ant/fig1", "ant/table1"], ["ant", "bee"]),  # a star also stands for a slash
        (("*",), ALL, ["ant", "bee"]),
    ],
)
def test_a_selector_means_a_paper_an_artifact_or_a_glob(imported, selectors, ids, papers):
    assert chosen(*selectors) == ids
    assert imported == papers


@pytest.mark.parametrize(
    ("selectors", "unknown", "instead"),
    [
        (("wasp",), "wasp", r"name a paper \(ant, bee\)"),
        (("ant", "ant/fig9"), "ant/fig9", "ant has fig1, fig2, table1$"),
        (("ant/y", "ant/x"), "ant/y", "ant has fig1, fig2, table1$"),
        (("bee/fig1/seven",), "bee/fig1/seven", "name the artifact, bee/fig1; a single claim"),
    ],
)
def test_the_first_selector_that_means_nothing_is_named(imported, selectors, unknown, instead):
    with pytest.raises(SelectorError, match=rf"^nothing is called '{unknown}'; {instead}"):
        select(selectors)
    with pytest.raises(SelectorError, match=f"'{unknown}'"):
        matching(selectors, ALL)
