"""The committed table of results says what the committed runs say: a number moves with its evidence alone."""

from __future__ import annotations

import io
import re

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
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def numbers_and_words(notes: pd.Series) -> tuple[list[float], list[str]]:
    """The numbers that notes give, and the notes without them: the last digit may be another elsewhere."""
    texts = notes.fillna("").tolist()
    return [float(number) for text in texts for number in NUMBER.findall(text)], [NUMBER.sub("#", t) for t in texts]


@pytest.fixture(scope="module")
def before() -> pd.DataFrame:
    return pd.read_csv(homes()[0] / RESULTS)


@pytest.mark.parametrize("paper", papers_of(homes()[0]))
def test_every_value_and_verdict_is_the_committed_one(before, paper):
    now = pd.read_csv(io.StringIO(results(judged_of([paper], Layered(committed())))))
    of_it = before[before["claim"].str.startswith(f"{paper}/")].reset_index(drop=True)
    plain = [*NUMBERS, "note"]
    pd.testing.assert_frame_equal(of_it.drop(columns=plain), now.drop(columns=plain), check_dtype=False)
    pd.testing.assert_frame_equal(
        of_it[["claim", *NUMBERS]], now[["claim", *NUMBERS]], rtol=1e-4, atol=1e-8, check_dtype=False
    )
    (numbers, words), (numbers_now, words_now) = (numbers_and_words(table["note"]) for table in (of_it, now))
    assert words_now == words
    assert numbers_now == pytest.approx(numbers, rel=1e-2, abs=1e-8)


def test_every_claim_stands_in_it(before):
    assert before.loc[before["rests on"].notna(), "ours"].notna().all()
    assert before.loc[before["rests on"].isna(), "ours"].isna().all()
