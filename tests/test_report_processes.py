"""Pages made in several processes are those that one makes."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from suite.papers.evidence import committed
from suite.papers.registry import paper
from suite.report.site import rows
from suite.report.site.changed import read_once
from suite.runs.archive import Layered

CHEAP = ("isgd/example5_3", "isgd/fig4", "rudra/eq1", "crossbow/fig8")  # two with figures, from three papers


def opened() -> Layered:
    """The evidence; in every process anew."""
    return Layered(committed())


@pytest.mark.processes
def test_several_processes_make_the_same_pages_in_order(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(rows, "FEW", 1)
    ids = {name: [row.id for row in rows.rows_of(paper(name))] for name in ("isgd", "rudra", "crossbow")}
    todo = [(which, ids[which].index(name)) for name in CHEAP if (which := name.partition("/")[0])]
    with ProcessPoolExecutor(
        1, get_context("spawn"), rows._begin, (opened,)
    ) as pool:  # this one has seen other tests
        alone = list(pool.map(rows._make, todo))
    with rows.makers(read_once(opened()), todo, opened) as made:
        assert type(made).__name__ != "generator" or made.gi_code.co_name != "<genexpr>"  # not in this process
        several = list(made)
    assert [found for found, _ in several] == [found for found, _ in alone]
    other = [
        name for (_, a), (_, b) in zip(alone, several, strict=True) for name in a | b if a.get(name) != b.get(name)
    ]
    assert other == []
    assert [{path.partition(".")[0] for path in files} for _, files in several] == [{name} for name in CHEAP]


@pytest.mark.processes
def test_a_page_that_fails_in_another_process_fails_here(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(rows, "FEW", 1)
    with pytest.raises(IndexError), rows.makers(read_once(opened()), [("isgd", 10_000)] * 2, opened) as made:
        list(made)
