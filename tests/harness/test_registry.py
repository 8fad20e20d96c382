"""The registered papers: in what order they stand, where they come from, and what executes their runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from suite.papers import registry
from suite.papers.registry import PAPERS, experiment, homes, paper, papers_of, registered
from suite.runner.cost import TRAIN
from suite.runs.environment import ROOT

OURS = ["isgd", "inverse_law", "rudra", "matex_agd", "crossbow", "together"]
ELSEWHERE = "paper_figures.isgd:PAPER"  # a package that can be found


def entries(*names, value=ELSEWHERE):
    return lambda group: [SimpleNamespace(name=name, value=value) for name in names if group == registry.GROUP]


def test_installed_papers_come_after_the_checkout_s_in_alphabetical_order(monkeypatch):
    monkeypatch.setattr(registry.metadata, "entry_points", entries("zebra", "rudra", "ant", "moth"))
    assert list(registered()) == [*OURS, "ant", "moth", "zebra"]
    assert registered()["ant"].load() is paper("isgd")


def test_the_checkout_s_own_entry_stands_over_an_installed_one_of_that_name(monkeypatch):
    monkeypatch.setattr(registry.metadata, "entry_points", entries("rudra", value="nowhere_to_be_found:PAPER"))
    assert registered()["rudra"].load() is paper("rudra")


def test_outside_a_checkout_only_what_is_installed_is_registered(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    monkeypatch.setattr(registry.metadata, "entry_points", entries("moth", "ant"))
    assert list(registered()) == ["ant", "moth"]
    assert registered()["ant"].home == ROOT / "paper_figures"


@pytest.mark.parametrize("place", ["nowhere_to_be_found:PAPER", "only_a_folder.inside:PAPER"])
def test_a_registered_paper_whose_package_is_gone_is_named(monkeypatch, tmp_path, place):
    (tmp_path / "only_a_folder").mkdir()  # what an uninstalled package may leave behind
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry.metadata, "entry_points", entries("ant", value=place))
    with pytest.raises(ModuleNotFoundError, match=f"the paper at {place} is registered, but its package cannot be"):
        registered()


def test_a_home_has_the_papers_that_come_from_it(monkeypatch, tmp_path):
    assert papers_of(ROOT / "paper_figures") == OURS
    assert papers_of(ROOT / "suite" / ".." / "paper_figures") == OURS
    assert papers_of(tmp_path) == []
    monkeypatch.setitem(PAPERS, "ant", registry.Registered(lambda: None, tmp_path))
    assert papers_of(tmp_path) == ["ant"]
    assert papers_of(ROOT / "paper_figures") == OURS


def test_each_home_is_named_once(monkeypatch, tmp_path):
    assert homes() == [ROOT / "paper_figures"]
    for name in ("ant", "bee"):
        monkeypatch.setitem(PAPERS, name, registry.Registered(lambda: None, tmp_path))
    assert homes() == [ROOT / "paper_figures", tmp_path]


def test_an_experiment_is_its_paper_s_or_the_training_that_all_share():
    assert experiment("train") is TRAIN
    assert experiment("isgd/latency") is paper("isgd").experiments["isgd/latency"]
    for name in ("isgd/nothing", "nobody/latency", "isgd"):
        with pytest.raises(KeyError):
            experiment(name)


def test_a_paper_is_imported_once_and_lies_in_its_home():
    assert paper("rudra") is paper("rudra")
    assert {registered.home for registered in PAPERS.values()} == {Path(ROOT / "paper_figures")}
