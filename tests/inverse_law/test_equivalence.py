"""The claim of equivalence with the inverse law: its value and interval on curves whose misfit is known."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from paper_figures.inverse_law.misfits import from_law, largest_misfit, misfits
from suite.batch_size.law import Updates

SIZES = tuple(2**k for k in range(11))


def inverse(batch):
    return 200 * (1 + 10 / batch)


def curve(law=inverse, seeds=10, scatter=0.05, sizes=SIZES, name="a"):
    """Updates by a law; seed j is late by its own factor at every size, and by one of that size."""
    late = [random.Random(f"{name} {j}").gauss(0, scatter) for j in range(seeds)]
    return [
        Updates(m, tuple(law(m) * math.exp(late[j] + random.Random(f"{name} {m} {j}").gauss(0, scatter))
                         for j in range(seeds)), 20_000.0)
        for m in sizes
    ]  # fmt: skip


def bent(at, factor):
    return lambda batch: inverse(batch) * (factor if batch == at else 1)


def test_a_true_law_lies_inside_and_its_exact_counts_have_no_misfit():
    found = largest_misfit([curve(), curve(name="b")])
    assert found.high < 0.1
    exact = largest_misfit([curve(scatter=0.0)])
    assert exact.mean == pytest.approx(0, abs=1e-9)
    assert exact.high == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("power", [0.5, 0.7, 1.3])
def test_another_power_lies_outside(power):
    assert largest_misfit([curve(lambda m: 200 * (1 + 10 / m**power))]).low > 0.1


def test_updates_that_hardly_fall_refute_the_law_and_do_not_confirm_it():
    flat = lambda off: [curve(lambda m: 2000 * (1 + 0.1 / m) * (off if m == 4 else 1), scatter=0.005)]
    assert (largest_misfit(flat(1.0)).mean < 0.1, largest_misfit(flat(1.0)).high) == (True, math.inf)
    assert largest_misfit(flat(1.4)).low > 0.1


def test_one_size_off_the_law_is_found_among_many_and_is_the_value():
    """The law is drawn towards the odd size, so that the misfit is a little less than what was put in."""
    one = largest_misfit([curve(), curve(bent(2, 1.4), name="b")])
    assert one.low > 0.1
    assert 0.2 < one.mean < 0.4
    direct = misfits(curve(bent(2, 1.4), scatter=0.0), from_law).misfit
    assert int(np.abs(direct).argmax()) == SIZES.index(2)


def test_a_size_at_which_a_seed_did_not_arrive_is_not_asked_and_counted_as_arrived_it_would_be_found():
    off = curve(bent(1, 3.0))
    lost = [replace(off[0], seen=(None, *off[0].seen[1:])), *off[1:]]
    assert largest_misfit([lost]).high < 0.1
    at_limit = [replace(off[0], seen=(off[0].limit, *off[0].seen[1:])), *off[1:]]
    assert largest_misfit([at_limit]).low > 0.1


def test_seeds_are_paired_across_sizes():
    """Seeds that are late at every size widen nothing; exchanged at half of the sizes they do."""
    late = curve(scatter=0.0)
    paired = [replace(u, seen=tuple(n * math.exp(0.1 * (j - 4.5)) for j, n in enumerate(u.seen))) for u in late]
    mixed = [replace(u, seen=u.seen[::-1]) if k % 2 else u for k, u in enumerate(paired)]
    assert largest_misfit([paired]).high < 0.01 < 0.1 < largest_misfit([mixed]).high


@pytest.mark.parametrize(
    ("law", "share"), [(inverse, 1.0), (lambda m: 200 * (1 + 10 / m**0.7), 0.0)], ids=["true", "0.7"]
)
def test_the_power_that_the_rule_states(law, share):
    """Ten seeds that scatter by 5% over 1 to 1,024: a true law is always found so, another power never."""
    found = [largest_misfit([curve(law, name=f"{k} {t}") for t in range(3)]) for k in range(12)]
    assert np.mean([each.high <= 0.1 for each in found]) == share
