"""A fraud in the algorithm itself: Algorithm 2 stands still, and the runs say nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from paper_figures.isgd import alg2
from reference_impls.isgd import ISGD
from suite.claims.judge import judge
from suite.papers.artifact import Evidence
from suite.papers.catalogue import entries, paper
from suite.papers.counterfeits import rerun
from suite.papers.evidence import with_committed

CLAIM = "isgd/alg2/lowers-loss"


def verdict(change: Callable[[Evidence], Evidence] = lambda evidence: evidence) -> str:
    groups = paper("isgd").artifact("isgd/alg2").runs("smoke")
    measured = dict(alg2.measure_small_steps(change(Evidence(with_committed(None), groups, "smoke"))))
    claim = next(claim for claim in entries("isgd") if claim.id == CLAIM)
    return judge(claim, measured[claim.quantity], "smoke").verdict


def made_now(evidence: Evidence) -> Evidence:
    """The runs made again, by the code as it stands, under the specifications of the committed ones."""
    return rerun(evidence, lambda settings: settings, "subproblem")


def test_zeta_of_nothing_in_the_algorithm_is_found_out(monkeypatch: pytest.MonkeyPatch):
    assert [verdict(), verdict(made_now)] == ["reproduced", "reproduced"]
    update = ISGD.update
    monkeypatch.setattr(ISGD, "update", lambda self, *given: update(replace(self, zeta=0.0), *given))
    assert verdict(made_now) == "not reproduced"
