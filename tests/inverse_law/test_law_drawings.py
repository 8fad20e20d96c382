"""Every drawing of the paper from fabricated runs that follow a known law: it can be drawn, and shows the law."""

from __future__ import annotations

import re

import fabricated_searches as fabricated
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from paper_figures.inverse_law import PAPER, settings
from suite.papers.artifact import Evidence
from suite.papers.verdicts import measure
from suite.report import style


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fabricated.fill(tmp_path_factory.mktemp("store"))


def drawn(store, name) -> Figure:
    """The figure as it is drawn; measuring what kinds of evidence it shows would take longer than the drawing."""
    artifact = PAPER.artifact(f"inverse_law/{name}")
    with style.applied(artifact.id):
        figure = Figure(figsize=artifact.size, layout="constrained")
        FigureCanvasAgg(figure)
        artifact.draw(Evidence(store, artifact.runs("reduced"), "reduced"), figure)
        figure.draw_without_rendering()
    return figure


def legend(axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_panel_of_figure_1_for_every_curve_with_the_law_in_its_legend(store):
    panels = drawn(store, "fig1a").axes
    rows = [row for row in settings.ROWS if row.batches]
    assert [axes.get_title(loc="left") for axes in panels] == [row.title for row in rows]
    for axes, row in zip(panels, rows, strict=True):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert [float(t.get_text()) for t in axes.get_xticklabels()] == list(row.batches)
        said = legend(axes)
        assert len(said) == len(row.halvings) + (1 in row.batches)
        floor, sensitivity = (
            float(number.replace(",", "")) for number in re.search(r": ([\d,]+) \+ ([\d,]+)/M", said[0]).groups()
        )
        assert floor == pytest.approx(fabricated.FLOOR, rel=0.1)
        assert sensitivity == pytest.approx(fabricated.SENSITIVITY, rel=0.1)
        assert len(axes.collections) == len(row.halvings), "an interval for each threshold"


def test_residuals_and_the_rival_law(store):
    residuals, rival = drawn(store, "fig1b").axes
    values = [value for line in residuals.lines for value in line.get_ydata()]
    assert 0 < max(map(abs, values)) < 100 * 5 * fabricated.SCATTER
    assert len(rival.patches) == sum(bool(row.batches) for row in settings.ROWS)
    assert all(bar.get_width() > 0 for bar in rival.patches), "the runs follow this law"


def test_translation_shows_runs_that_did_not_reach_a_threshold(store):
    (axes,) = drawn(store, "fig2d").axes
    assert [t.get_text() for t in axes.get_xticklabels()] == ["12", "25", "50", "100", "200", "400", "800", "1600"]
    assert legend(axes)[-1] == "not reached (limit)"


def test_predicted_and_measured_times_with_the_regret_of_the_choice(store):
    (axes,) = drawn(store, "eq5").axes
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
    law = seen["fig2d"].found["law"]
    assert law.values[0] == pytest.approx(-1, abs=0.5)
    assert law.kind == "proxy"
    assert {f"rival-{row.name}" for row in settings.ROWS if row.batches} <= set(seen["fig1b"].found)
    assert seen["eq8"].found["regret"].values == (1.0,)
