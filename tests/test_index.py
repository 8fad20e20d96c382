"""The committed table of artifacts, claims and runs is the one the papers make."""

from __future__ import annotations

import pytest

from suite.papers import catalogue


@pytest.mark.parametrize("home", catalogue.homes())
def test_the_index_is_up_to_date(home) -> None:
    committed = (home / catalogue.INDEX).read_text(encoding="utf-8")
    assert committed == catalogue.index_text(home), "sgd-suite refresh renews it"
