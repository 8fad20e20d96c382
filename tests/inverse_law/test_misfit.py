"""How far the law is off, and from which batch size on it holds: known answers."""

from __future__ import annotations

import fabricated_searches as fabricated
import pytest

from paper_figures.inverse_law import misfit
from paper_figures.inverse_law.exponents import FAR
from suite.batch_size.law import Updates, fit_inverse_law
from suite.papers.artifact import Evidence, Missing
from suite.papers.catalogue import paper
from suite.runs.archive import Layered

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
SCATTER = (0.98, 1.0, 1.02)  # of three seeds


def updates(factors: dict[int, float]) -> list[Updates]:
    """100 + 400 / M updates, at some batch sizes times a factor."""
    return [Updates(m, tuple(s * factors.get(m, 1.0) * (100 + 400 / m) for s in SCATTER), 1e6) for m in SIZES]


def test_the_misfit_is_that_of_the_typical_seed():
    counted = updates({2: 1.3})
    law = fit_inverse_law([u for u in counted if u.batch != 2], blocks=True)
    assert misfit.misfit(law, counted[1]) == pytest.approx(0.3, abs=1e-3)
    assert misfit.misfit(law, counted[5]) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(
    ("factors", "least"),
    [({}, 1), ({1: 1.2}, 2), ({4: 1.2}, 8), ({2: 0.8, 8: 1.2}, FAR), ({1: 1.08, 2: 0.93}, 1)],
)
def test_the_law_holds_down_to_the_first_batch_size_that_leaves_it(factors, least):
    assert misfit._onset(updates(factors)) == least


def test_a_batch_size_at_which_a_seed_never_arrived_leaves_the_law():
    counted = updates({})
    counted[2] = Updates(4, (*counted[2].seen[:2], None), 1e6)
    assert misfit._onset(counted) == 8


def test_both_are_measured_on_runs_that_follow_the_law():
    artifact = paper("inverse_law").artifact("inverse_law/fig1a")
    evidence = Evidence(fabricated.fill(), artifact.runs("reduced"), "reduced")
    found = dict(misfit.measure_misfit(evidence)) | dict(misfit.measure_onset(evidence))
    networks, curves, smallest, largest, seeds = found["misfit-behind"].values
    assert (networks, smallest, largest) == (3, 1, 1024)
    assert curves >= 9
    assert seeds > 1
    assert found["largest-misfit"].values[0] < 10
    thresholds, batches = found["onset-thresholds"].values, found["onset-batches"].values
    assert list(thresholds) == sorted(thresholds, reverse=True)
    assert len(thresholds) == len(batches)
    with pytest.raises(Missing):
        list(misfit.measure_misfit(Evidence(Layered(()), artifact.runs("reduced"), "reduced")))
