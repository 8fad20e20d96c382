"""Every drawing of the paper from fabricated runs that follow a known law: it can be drawn, and shows the law."""

from __future__ import annotations

import fabricated_searches as fabricated
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from paper_figures.inverse_law import PAPER, settings
from paper_figures.inverse_law.plots import TICKS
from suite.papers.artifact import Evidence
from suite.papers.measurement import measure
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


def test_the_table_behind_the_curves_holds_every_run_and_threshold(store):
    artifact = PAPER.artifact("inverse_law/fig1a")
    table = artifact.frame(Evidence(store, artifact.runs("reduced"), "reduced"))
    rows = list(settings.BY_NAME.values())
    assert list(table["curve"].unique()) == [row.name for row in rows]
    for row in rows:
        part = table[table["curve"] == row.name]
        assert len(part) == len((*row.halvings, *row.lower)) * len(row.sizes or row.powers) * row.seeds


def test_the_table_of_the_laws_has_each_quantity_of_each_curve_once(store):
    artifact = PAPER.artifact("inverse_law/fig1b")
    table = artifact.frame(Evidence(store, artifact.runs("reduced"), "reduced"))
    titles = {row.title for row in settings.ROWS if row.seeds > 1}
    for quantity, besides in (("preference", set()), ("exponent", {"all curves together"})):
        part = table[table["quantity"] == quantity]
        assert part["curve"].is_unique
        assert set(part["curve"]) == titles | besides
    assert (table.loc[table["quantity"] == "exponent", "printed"] == -1).all()


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
