"""Every drawing of the paper from fabricated runs that follow a known law: it can be drawn, and shows the law."""

from __future__ import annotations

import re

import fabricated_searches as fabricated
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from paper_figures.inverse_law import PAPER, fig2, plots, settings
from paper_figures.inverse_law.plots import TICKS
from suite.batch_size.law import Updates
from suite.claims.judge import judge
from suite.papers.artifact import Evidence
from suite.papers.published import published
from suite.papers.verdicts import measure
from suite.report import style

pytestmark = pytest.mark.evidence


@pytest.fixture(scope="module")
def store():
    return fabricated.fill()


def drawn(store, name) -> Figure:
    """The figure as it is drawn; measuring what it rests on would take longer than the drawing."""
    artifact = PAPER.artifact(f"inverse_law/{name}")
    with style.applied(artifact.id):
        figure = Figure(figsize=artifact.size, layout="constrained")
        FigureCanvasAgg(figure)
        artifact.draw(Evidence(store, artifact.runs("reduced"), "reduced"), figure)
        figure.draw_without_rendering()
    return figure


def legend(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_panel_of_figure_1_for_every_curve_with_the_law_through_it(store):
    *panels, corner = drawn(store, "fig1a").axes
    rows = list(settings.BY_NAME.values())
    titles = [axes.get_title(loc="left") for axes in panels]
    assert [title.split("\n")[0] for title in titles] == [row.title for row in rows]
    assert "a run" in legend(corner)
    for axes, row, title in zip(panels, rows, titles, strict=True):
        ending = "one seed" if row.seeds == 1 else "), printed -1" if row in settings.ROWS else row.title
        assert title.endswith(ending)
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        ticks = [float(t.get_text()) for t in axes.get_xticklabels()]
        sizes = row.sizes or row.powers
        assert ticks == list(sizes[:: 1 if len(sizes) <= TICKS else 2])
        assert axes.get_legend() is None
        names = [f"{t:.2g}" for lower in (False, True) for t in row.thresholds("reduced", lower=lower)]
        assert [text.get_text() for text in axes.texts] == names
        (first, *_) = (line for line in axes.lines if len(line.get_xdata()) == 80)  # the fitted laws
        (m, *_, most), (n, *_, least) = first.get_data()
        sensitivity = (n - least) / (1 / m - 1 / most)
        tolerance = 0.1 if row.seeds > 1 else 0.3
        assert sensitivity == pytest.approx(fabricated.SENSITIVITY, rel=tolerance)
        assert n - sensitivity / m == pytest.approx(fabricated.FLOOR, rel=tolerance)
        drawn_of_each = 3  # its runs, their standard deviations, and the law's interval
        assert len(axes.collections) == drawn_of_each * (len(row.halvings) + len(row.lower))


@pytest.mark.parametrize(("panel", "rate"), list(zip("abcd", fig2.RATES, strict=True)))
def test_words_follow_the_law_where_the_whole_of_europarl_does(panel, rate):
    (claim,) = (claim for claim in published("inverse_law") if claim.id == f"inverse_law/fig2{panel}/law")
    runs = fig2.panel_runs(rate)("paper")
    found = dict(fig2.measure_panel(Evidence(fabricated.fill("paper"), runs, "paper")))["law"]
    assert judge(claim, found, "paper").verdict == "reproduced"


def test_captions_decide_nothing(store):
    runs = fig2.panel_runs(fig2.REDUCED_RATE)("reduced")
    found = dict(fig2.measure_captions(Evidence(store, runs, "reduced")))["law-captions"]
    assert found.proxy
    assert found.note.endswith("BLEU 10.0 to 11.0 where they end")


def test_the_table_behind_the_curves_holds_every_run_and_threshold(store):
    artifact = PAPER.artifact("inverse_law/fig1a")
    table = artifact.frame(Evidence(store, artifact.runs("reduced"), "reduced"))
    rows = list(settings.BY_NAME.values())
    assert list(table["curve"].unique()) == [row.name for row in rows]
    for row in rows:
        part = table[table["curve"] == row.name]
        assert len(part) == len((*row.halvings, *row.lower)) * len(row.sizes or row.powers) * row.seeds


def test_residuals_exponents_and_the_rival_law(store):
    residuals, exponents, rival = drawn(store, "fig1b").axes
    values = [value for line in residuals.lines for value in line.get_ydata()]
    assert 0 < max(map(abs, values)) < 100 * 5 * fabricated.SCATTER
    curves = sum(row.seeds > 1 for row in settings.ROWS)
    (printed,) = [line for line in exponents.lines if line.get_label() == "printed"]
    assert list(printed.get_xdata()) == [-1] * (curves + 1)
    assert printed.get_markerfacecolor() == "none"
    assert exponents.get_yticklabels()[-1].get_text() == "all curves together"
    assert len(rival.patches) == curves
    assert all(bar.get_width() > 0 for bar in rival.patches), "the runs follow this law"


def test_the_table_of_the_laws_has_each_quantity_of_each_curve_once(store):
    artifact = PAPER.artifact("inverse_law/fig1b")
    table = artifact.frame(Evidence(store, artifact.runs("reduced"), "reduced"))
    titles = {row.title for row in settings.ROWS if row.seeds > 1}
    for quantity, besides in (("preference", set()), ("exponent", {"all curves together"})):
        part = table[table["quantity"] == quantity]
        assert part["curve"].is_unique
        assert set(part["curve"]) == titles | besides
    assert (table.loc[table["quantity"] == "exponent", "printed"] == -1).all()


def test_translation_shows_runs_that_did_not_reach_a_threshold(store):
    figure = drawn(store, "fig2d")
    panels = figure.axes
    assert ["sittings" in axes.get_title(loc="left") for axes in panels] == [True, False]
    assert "stand-in" in panels[1].get_title(loc="left")
    for axes, sizes in zip(panels, (fig2.WORD_BATCHES, fig2.CAPTION_WORDS), strict=True):
        assert [t.get_text() for t in axes.get_xticklabels()] == [str(words) for words in sizes]
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "none" and len(line.get_xdata())]
        assert hollow
    said = [text.get_text() for text in figure.legends[0].get_texts()]
    assert said[-2:] == ["not reached within its limit", "beside a curve: its loss"]


def test_each_curve_has_its_name_at_its_end_and_one_that_no_run_reached_too():
    axes = Figure().add_subplot()
    lost = [Updates(m, (None, None), 50.0) for m in (1, 2, 4)]
    rising = [Updates(m, (10.0 + 100 / m, 11.0 + 101 / m), 500.0) for m in (1, 2, 4)]
    for order, (label, counted) in enumerate((("low", lost), ("high", rising))):
        plots.draw_law(axes, counted, label, order)
    plots.finish_law(axes, [lost, rising])
    places = {text.get_text(): text.xy for text in axes.texts}
    assert places == {"low": (4, 50.0), "high": (4, pytest.approx((35.0 + 36.25) / 2))}
    assert axes.get_legend() is None


def test_predicted_and_measured_times_with_the_regret_of_the_choice(store):
    axes, ratio = drawn(store, "eq5").axes
    assert legend(ratio) == ["rule: 0.75 to 1.25"]
    assert axes.get_title(loc="left").startswith("picked 16, fastest 16: time at the choice over the best 1.00")
    (knee,) = drawn(store, "eq4").axes
    assert re.search(r"knee at 1[3-9]", legend(knee)[-1])


def test_scaling_regimes_change_where_the_formulas_say(store):
    left, right = drawn(store, "alg-scaling").axes
    strong, weak, best = (list(line.get_ydata()) for line in left.lines[:3])
    assert all(b <= min(s, w) * (1 + 1e-9) for s, w, b in zip(strong, weak, best, strict=True))
    turns = [line.get_xdata()[0] for line in right.lines[3:]]
    assert turns == [32, pytest.approx(50_000 * 5e-2 / (500 * 1e-3 * 64))]


def test_no_measure_stumbles_over_a_full_store(store):
    """Figure 2's searches are told by words, Figure 1's by examples: both are read alike."""
    seen = {
        name: measure(PAPER.artifact(f"inverse_law/{name}"), store, "reduced") for name in ("fig1b", "fig2d", "eq8")
    }
    assert [measurement.damaged for measurement in seen.values()] == [[], [], []]
    laws = [seen["fig2d"].found[name] for name in ("law", "law-captions")]
    assert [law.proxy for law in laws] == [False, True]
    assert [law.values[0] for law in laws] == pytest.approx([-1, -1], abs=0.3)
    assert {f"rival-{row.name}" for row in settings.ROWS if row.halvings} <= set(seen["fig1b"].found)
    assert seen["eq8"].found["regret"].values == (1.0,)
