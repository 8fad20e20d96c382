"""A claim that is not run names the runs that its own measure lacks, at its own profile."""

from __future__ import annotations

import pytest

from suite.papers.catalogue import paper
from suite.papers.measurement import verdicts
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
        ("inverse_law/fig1a/misfit-cifar10_medium-adam", "has 0 of 5 batch sizes of cifar10_medium-adam at reduced"),
        # its own profile's, not the largest's
        ("inverse_law/fig2d/law", "no run of panel at reduced"),
    ],
)
def test_without_any_run_each_claim_names_its_own(claim: str, why: str):
    name, artifact, _ = claim.split("/")
    found = verdicts(paper(name), Layered([]), artifacts=[f"{name}/{artifact}"])
    (given,) = [verdict.why for verdict in found if verdict.claim.id == claim]
    assert given.endswith(f"): {why}")
