"""The committed table of results says what the committed runs say: a number moves with its evidence alone."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from suite.commands.refresh import RESULTS
from suite.papers.evidence import committed
from suite.papers.registry import homes, papers_of
from suite.report.data import results
from suite.report.readme import judged_of
from suite.runs.archive import Layered

pytestmark = pytest.mark.evidence

NUMBERS = ["ours", "low", "high", "beside"]


@pytest.fixture(scope="module")
def before() -> pd.DataFrame:
    return pd.read_csv(homes()[0] / RESULTS)


@pytest.mark.parametrize("paper", papers_of(homes()[0]))
def test_every_value_and_verdict_is_the_committed_one(before, paper):
    now = pd.read_csv(io.StringIO(results(judged_of([paper], Layered(committed())))))
    of_it = before[before["claim"].str.startswith(f"{paper}/")].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_it.drop(columns=NUMBERS), now.drop(columns=NUMBERS), check_dtype=False)
    pd.testing.assert_frame_equal(
        of_it[["claim", *NUMBERS]], now[["claim", *NUMBERS]], rtol=1e-4, atol=1e-8, check_dtype=False
    )


def test_every_claim_stands_in_it(before):
    assert before["claim"].nunique() == 713
    assert before.loc[before["rests on"].notna(), "ours"].notna().all()
    assert before.loc[before["rests on"].isna(), "ours"].isna().all()
