"""The registered papers: in what order they stand, where they come from, and what executes their runs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from suite.papers import catalogue
from suite.papers.catalogue import RegistryError, registered

ELSEWHERE = "paper_figures.isgd:PAPER"  # a package that can be found


def entries(*names, value=ELSEWHERE):
    return lambda group: [SimpleNamespace(name=name, value=value) for name in names if group == catalogue.GROUP]


@pytest.mark.parametrize("place", ["nowhere_to_be_found:PAPER", "only_a_folder.inside:PAPER"])
def test_a_registered_paper_whose_package_is_gone_is_named(monkeypatch, tmp_path, place):
    (tmp_path / "only_a_folder").mkdir()  # what an uninstalled package may leave behind
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(catalogue.metadata, "entry_points", entries("ant", value=place))
    with pytest.raises(RegistryError, match=f"the paper at {place} is registered, but its package cannot be"):
        registered()
