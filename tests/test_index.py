"""The committed table of artifacts, claims and runs is the one the papers make."""

from __future__ import annotations

from suite.papers import index


def test_the_index_is_up_to_date() -> None:
    assert index.main() == 0, "python -m suite.papers.index --write"
