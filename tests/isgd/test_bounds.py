"""What of Algorithm 2 and Eq. 21 is measured, on tables written by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd
import pytest

from paper_figures.isgd import alg2, eq18, eq21
from suite.papers.artifact import Missing


def run_of(**tables):
    settings = {"algorithm": {"zeta": 0.3}, "rate": 0.01, "runs": 8}
    return SimpleNamespace(id="r", spec=SimpleNamespace(settings=settings), curve=lambda name: tables[name])


def traced(*chases):
    """A table of updates: before each chase one iteration; a chase is its losses, the limit is one."""
    rows = []
    for iteration, losses in enumerate(chases):
        rows.append({"iteration": iteration, "chasing": False, "loss": 2.0, "limit": 1.0})
        rows += [{"iteration": iteration, "chasing": True, "loss": loss, "limit": 1.0} for loss in losses]
    return run_of(updates=pd.DataFrame(rows))


def evidence_of(*runs):
    return SimpleNamespace(runs=lambda group: runs, run=lambda group: runs[0])


def test_an_acceleration_that_the_sgd_step_ended_needed_no_step():
    """The first loss of a chase is that after the SGD step; at or below the limit Algorithm 2 had nothing to do."""
    run = traced([0.9], [1.5, 1.2, 0.8], [1.0], [1.1, 0.9])
    assert alg2.hard_chases(run) == [3.0, 2.0]
    found = alg2.steps_needed(evidence_of(run, traced([0.5]), traced([1.5] * 7)), "endless")
    assert found.spans == ((4.75, 2.5, 7.0),)
    assert found.n == 2
    assert "zeta = 30 rates: 3 accelerations" in found.note
    with pytest.raises(Missing, match="had not ended"):
        alg2.steps_needed(evidence_of(traced([0.9])), "endless")


def bound(excess):
    rows = [(batch, updates) for batch in (1, 16) for updates in (4, 16, 64, 256)]
    table = pd.DataFrame(rows, columns=["batch", "updates"])
    return evidence_of(run_of(bound=table.assign(excess=[excess(*row) for row in rows])))


@pytest.mark.parametrize(
    ("excess", "values"),
    [
        (lambda b, t: 3 / (b * t) ** 0.5 + 3 / t, (1.0, 1.0)),
        (lambda b, t: t * (1 / (b * t) ** 0.5 + 1 / t), (256 / 16, 1.0)),
        (lambda b, t: b * (1 / (b * t) ** 0.5 + 1 / t), (1.0, 16.0)),
    ],
)
def test_one_constant_serves_all_updates_and_batches(excess, values):
    """Whatever outgrows the bound with the updates or with the batch size is told by how much."""
    assert dict(eq21.measure(bound(excess)))["bound"].values == pytest.approx(values)


def test_a_schedule_that_is_not_summable_and_converges_counts_against_equation_18():
    found = dict(eq18.measure(None))["condition"]
    assert found.values == (5 / 6,)
    assert "(1+t)^-0.5: not summable, h -> 0" in found.note
