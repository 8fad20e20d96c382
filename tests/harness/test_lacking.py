"""A claim that is not run names the runs that its own measure lacks, at its own profile."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from suite.claims.estimate import Estimate, exact
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities, row_by_row
from suite.papers.catalogue import paper
from suite.papers.grades import Rests
from suite.papers.measurement import Measurement, measure_evidence
from suite.papers.verdicts import lacking, verdicts
from suite.runs.archive import Layered


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        # of the groups that a quantity reads, the first that lacks runs
        ("crossbow/alg2/milliseconds", "no run of throughput at paper"),
        ("crossbow/alg2/few-first", "no run of growing at paper, and of 1 other group"),
        # of several rows, its own
        ("rudra/table2/r04-test-error", "no run of (10, 16, 10) at paper"),
        ("rudra/table2/r23-test-error", "no run of (10, 128, 10) at paper"),
        # a name that is put together stands in the reason
        ("inverse_law/fig1a/law-cifar10_medium-adam", "0 of 11 batch sizes of cifar10_medium-adam at paper"),
        # its own profile's, not the largest's
        ("inverse_law/fig2d/law", "no run of panel at reduced"),
    ],
)
def test_without_any_run_each_claim_names_its_own(claim: str, why: str):
    name, artifact, _ = claim.split("/")
    found = verdicts(paper(name), Layered([]), artifacts=[f"{name}/{artifact}"])
    (given,) = [verdict.why for verdict in found if verdict.claim.id == claim]
    assert given.endswith(f"): {why}")


def told(quantity: str, *missing: str, **found: str) -> str:
    """What is told of a quantity where functions lack ``missing``, and which of them found others elsewhere."""
    functions: list[Any] = [Mock(__module__="nowhere", __qualname__=text) for text in missing]
    here, elsewhere = Measurement(), Measurement()
    here.missing = {function: Missing(text) for function, text in zip(functions, missing, strict=True)}
    elsewhere.rests = {name: Rests(functions[missing.index(text)], ()) for name, text in found.items()}
    claim: Any = SimpleNamespace(lacks="", needs="cpu-small", quantity=quantity, profile="paper")
    return lacking(claim, {"paper": here, "reduced": elsewhere})


def test_the_function_that_finds_it_elsewhere_is_the_one_that_stopped():
    assert told("one", "runs a", "runs b", one="runs b") == "needs profile paper (cpu-small): runs b"


def test_where_nobody_knows_which_function_it_is_no_reason_is_guessed():
    assert told("one", "runs a", "runs b") == "needs profile paper (cpu-small)"
    assert told("one", "runs a", "runs a").endswith(": runs a")
    assert told("law-a", "runs a", "runs ab").endswith(": runs a")


def test_rows_say_what_each_lacks():
    def row(evidence: Evidence, group: str) -> Estimate:
        return exact(len(evidence.runs(group)))

    def measure(evidence: Evidence) -> Quantities:
        yield from row_by_row((name, partial(row, evidence, name)) for name in ("a", "b"))
        yield "never", exact(1)

    artifact = Artifact("toy/rows", "Rows", lambda _: {}, (measure,))
    found = measure_evidence(artifact, Evidence(Layered([]), {}, "paper"))
    (error,) = found.missing.values()
    assert str(error) == "2 of 2 rows lack their runs"
    assert error.rows == {name: f"no runs of {name!r} at paper" for name in ("a", "b")}
    assert not found.found
