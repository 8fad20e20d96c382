"""What README and gallery say: which results, in which order, in tables that are whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_paper import claim, fill, registered, verdict

from suite.claims.measured import EXACT, REDUCED, STAND_IN, WHOLE, point
from suite.report import gallery
from suite.report.readme import few, first_told, rewritten, table, telling
from suite.report.templates import engine


@pytest.fixture
def paper(tmp_path):
    with registered(tmp_path) as made:
        yield made


def results_of(paper, *weights):
    """Verdicts of a paper: what they rest on, whether with a finding, their rule, their repetitions."""
    made = []
    for number, (rests_on, finding, rule, n) in enumerate(weights):
        printed = (1.0,) if rule == "within" else ()
        about = claim(f"{paper}/fig1/{number}", rule, printed, finding="so" if finding else "")
        said = "not reproduced" if finding else "reproduced"
        made.append(verdict(point(1.0, n=n), said, rests_on, about))
    return made


def test_the_most_telling_results_rest_on_the_best_then_teach_then_have_numbers_then_repetitions():
    found = results_of(
        "a",
        (STAND_IN, True, "within", 9),
        (WHOLE, False, "holds", 9),
        (WHOLE, False, "within", 2),
        (WHOLE, False, "within", 5),
        (WHOLE, True, "within", 1),
        (WHOLE, False, "within", 5),
        (EXACT, False, "within", 9),
    )
    assert telling(found, 9) == [found[place] for place in (4, 3, 5, 2, 1, 0)]
    assert len(telling(found)) == 3
    open_ones = [replace(found[2], verdict=said) for said in ("not run", "inconclusive")]
    assert telling(open_ones) == []


def test_of_each_paper_one_result_is_told_first_and_three_in_all():
    several = [
        results_of(name, (REDUCED, False, "within", n), (REDUCED, False, "within", 1))
        for n, name in enumerate("abcd", 2)
    ]
    found = [each for of_paper in several for each in of_paper]
    assert [each.claim.id for each in first_told(found)] == ["d/fig1/0", "c/fig1/0", "b/fig1/0"]


def test_every_row_of_a_table_has_as_many_cells_as_its_head():
    found = results_of("a", (REDUCED, True, "within", 2), (WHOLE, False, "within", 2), (EXACT, False, "holds", 1))
    for block in table(found).split("\n\n"):
        if block.startswith("|"):
            lines = block.splitlines()
            assert {line.count("|") for line in lines} == {lines[0].count("|")}
            assert lines[1] == "|---" + "|--:" * (lines[0].count("|") - 2) + "|"


def test_of_many_values_the_first_four_are_told():
    assert [few(list("abcdef")[:count]) for count in (0, 1, 4, 5, 6)] == [
        "", "a", "a, b, c, d", "a, b, c, d, and 1 more", "a, b, c, d, and 2 more"
    ]  # fmt: skip


def test_a_block_with_two_ends_is_refused():
    with pytest.raises(ValueError, match="must hold <!-- x:begin --> once"):
        rewritten("<!-- x:begin --><!-- x:end --><!-- x:end -->", "x", "new")


# --- gallery and templates


def test_thumbnails_have_eighty_dots_an_inch_in_whatever_folder(paper, tmp_path):
    from PIL import Image

    store, pictures = fill(tmp_path / "store", note=""), tmp_path / "some" / "where"
    for _ in range(2):
        text = gallery.page(["fake"], store, pictures)
    with Image.open(pictures / "fake-fig1.png") as image:
        assert image.size == (512, 320)
    assert "![Loss falls.](where/fake-fig1.png)" in text
    assert "Not drawn" not in text


@pytest.mark.parametrize("given", [True, False])
def test_the_gallery_is_written_into_the_folder_that_is_named(paper, tmp_path, monkeypatch, given):
    monkeypatch.setattr("sys.argv", ["gallery", str(tmp_path)])
    assert gallery.main([str(tmp_path)] if given else None) == 0
    text = (tmp_path / "gallery.md").read_text(encoding="utf-8")
    assert text.startswith("# All figures\n\n")
    assert "- `fake/fig1` (Fig. 1: loss over time): " in text


def test_a_template_leaves_no_trace_of_its_tags_escapes_and_refuses_unknown_names(tmp_path):
    from jinja2 import UndefinedError

    (tmp_path / "a.j2").write_text("{% if x %}\n{{ x|twice }}\n  {% endif %}\n{{ ours }}\n")
    made = engine(tmp_path, {"twice": lambda text: 2 * text}).get_template("a.j2")
    assert made.render(x="<", ours="|") == "&lt;&lt;\n|"
    with pytest.raises(UndefinedError):
        made.render(x="")
