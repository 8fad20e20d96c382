"""The committed table of results says what the committed runs say: a number moves with its evidence alone."""

from __future__ import annotations

import pandas as pd
import pytest

from suite.commands.refresh import RESULTS
from suite.papers.evidence import committed
from suite.papers.registry import homes, papers_of
from suite.report.data import results
from suite.report.numerals import alike
from suite.report.readme import judged_of
from suite.runs.archive import Layered

pytestmark = pytest.mark.evidence


@pytest.fixture(scope="module")
def before() -> pd.DataFrame:
    return pd.read_csv(homes()[0] / RESULTS)


@pytest.mark.parametrize("paper", papers_of(homes()[0]))
def test_every_value_and_verdict_is_the_committed_one(paper):
    now = results(judged_of([paper], Layered(committed())))
    head, *rows = (homes()[0] / RESULTS).read_text(encoding="utf-8").splitlines(keepends=True)
    of_it = [row for row in rows if row.startswith(f"{paper}/")]
    changed = [(a, b) for a, b in zip([head, *of_it], now.splitlines(keepends=True), strict=True) if not alike(a, b)]
    assert changed == []


def test_every_claim_stands_in_it(before):
    assert before.loc[before["rests on"].notna(), "ours"].notna().all()
    assert before.loc[before["rests on"].isna(), "ours"].isna().all()
