"""Every row of torch's own tests, written for ours, on every optimiser, and the committed table."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_rows import MAKERS, REFUSED, ROWS, outcome, table

pytestmark = [pytest.mark.torch_rows, pytest.mark.filterwarnings("ignore::UserWarning:torch")]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", MAKERS)
def test_a_row_works_or_is_refused_in_a_sentence(name: str, row: str):
    message, _ = REFUSED.get((row, name), ("", ""))
    said = outcome(name, row)
    assert message in said if message else said == "works"


def test_the_committed_table_is_the_present_one():
    """``python tests/optim/torch_rows.py > tests/optim/torch_rows.md`` makes it anew."""
    assert Path(__file__).with_name("torch_rows.md").read_text() == "\n".join(table()) + "\n"
