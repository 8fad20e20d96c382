"""The report's parts one by one: tables beside figures, provenance, commands, and the runs behind them."""

from __future__ import annotations

import json
import math

import pandas as pd
import pytest
from estimates import interval
from fake_paper import claim, registered, verdict
from matplotlib.figure import Figure

from suite.claims.estimate import over_seeds as exact
from suite.papers.artifact import Artifact
from suite.report.curves import curves
from suite.report.data import values
from suite.report.verdict_details import departure_ledgers, reasons
from suite.runs.environment import ROOT


@pytest.fixture
def paper(tmp_path):
    with registered(tmp_path) as made:
        yield made


# --- tables of values


@pytest.mark.parametrize(
    ("made", "ours", "printed"),
    [
        (claim(printed=(10.0, 20.0)), (1.0, 2.0), [10.0, 20.0]),
        (claim("fake/fig1/it", "bound", (10.0,), side="lower"), (1.0, 2.0), [10.0, 10.0]),
        (claim("fake/fig1/it", "bound", (10.0, 20.0), side="lower"), (1.0, 2.0), [10.0, 20.0]),
        (claim("fake/fig1/it", "holds", (0.5,)), (1.0, 2.0, 3.0), [0.5, 0.5, 0.5]),
        (claim("fake/fig1/it", "order", (), order=("a", "b", "c")), (1.0, 2.0), [None, None]),
        (claim("fake/fig1/it", "bound", (10.0, 20.0), side="range"), (1.0, 2.0, 3.0), [10.0, 20.0, None]),
    ],
)
def test_each_value_stands_beside_what_is_printed_of_it(made, ours, printed):
    found = values([verdict(exact(ours), made=made)])
    assert [None if pd.isna(value) else value for value in found["printed"]] == printed
    assert found["ours"].tolist() == found["low"].tolist() == found["high"].tolist() == list(ours)


def test_a_verdict_is_explained_line_by_line(paper, tmp_path):
    about = {"side": "lower", "unit": "s", "tolerance": (1.0,), "quantity": "accuracy"}
    made = claim("fake/fig1/accuracy", "bound", (10.0,), **about)
    ours = verdict(interval(12.0, 10.04, 13.96), made=made, because="less data", decides=True)
    assert list(reasons(ours, paper.artifact("fake/fig1"))) == [
        ("printed", "≥ 10 s"),
        ("ours", "12.0 [10.0, 14.0] s"),
        ("why", "so it is"),
        ("rule", "bound lower, ± 1 s: a reason"),
        ("rests on", "reduced: less data (decides)"),
        ("register", "registered; 2000-01-01, with 10 other rules: for a test"),
        ("measure", "fake_paper:fig1_accuracy"),
        ("power", "catches a departure of 3.8 s four times in five"),
    ]


def test_an_exploratory_verdict_is_told_beside_the_registered_one(paper):
    later = verdict(exact(12.0), "not reproduced")
    amended = verdict(exact(10.0), made=claim(refuted_by="a six"), order="amended", exploratory=later)
    told = dict(reasons(amended, Artifact("fake/fig1", "one")))
    assert (told["register"], told["exploratory"]) == ("no line", f"not reproduced 12: {later.claim.because}")
    assert told["refuted by"] == "a six (today's rule)"


def test_the_reference_implementations_declare_departures():
    declared = {ledger["file"]: ledger["parts"] for ledger in departure_ledgers(ROOT / "reference_impls")}
    assert any("queue" in item for _, items in declared["isgd.py"] for item in items)
    assert all(items for parts in declared.values() for _, items in parts)


def test_the_points_of_curves_are_told_in_plain_words_and_numbers():
    figure = Figure()
    axes = figure.add_subplot(xscale="log", xlabel="mini-batch $\\mu$", ylabel="$N - N_\\infty$\n(updates)")
    axes.plot([1, 10, 100], [0, 20_500.0, math.nan], color=[0.0, 0.5, 1.0])
    axes.plot([1, 10], [0, 1], visible=False)
    axes.axvline(10)
    axes.set_xticks([1, 10])
    axes.set_yticks([0], ["none\nat all"])
    axes.legend(axes.lines[:1], ["$\\lambda$ = 4"])
    figure.draw_without_rendering()
    ((*words, (first, last)),) = json.loads(curves(figure))
    assert words == ["λ = 4", "mini-batch μ", "N - N_∞ (updates)"]
    assert (first[2:], last[2:]) == (["1", "none at all"], ["10", "20,500"])
