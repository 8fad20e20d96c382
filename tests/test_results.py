"""The committed table of results says what the committed runs say: a number moves with its evidence alone."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from suite.commands.refresh import RESULTS
from suite.papers.evidence import committed
from suite.papers.registry import homes
from suite.report.data import results
from suite.report.readme import judged_of
from suite.runs.archive import Layered

pytestmark = pytest.mark.evidence

NUMBERS = ["ours", "low", "high"]


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    home = homes()[0]
    now = pd.read_csv(io.StringIO(results(judged_of(home, Layered(committed())))))
    return pd.read_csv(home / RESULTS), now


def test_every_value_and_verdict_is_the_committed_one(tables):
    before, now = tables
    pd.testing.assert_frame_equal(before.drop(columns=NUMBERS), now.drop(columns=NUMBERS))
    pd.testing.assert_frame_equal(before[["claim", *NUMBERS]], now[["claim", *NUMBERS]], rtol=1e-4, atol=1e-8)


def test_every_claim_stands_in_it(tables):
    before, _ = tables
    assert before["claim"].nunique() == 713
    assert before.loc[before["rests on"].notna(), "ours"].notna().all()
    assert before.loc[before["rests on"].isna(), "ours"].isna().all()
