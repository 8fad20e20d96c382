"""The report as a reader's browser would parse it: complete, self-contained, accessible, and nothing stored runs."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from fake_paper import HOSTILE, fig2_runs, fill, registered, specs

from suite.claims.board import NOTHING, board
from suite.claims.judge import VERDICTS
from suite.papers import verdicts
from suite.report import page as report
from suite.report.page import command, page, write_report
from suite.report.provenance import departures
from suite.report.speed_figures import Figured, Speed
from suite.runs.archive import Layered
from suite.runs.environment import ROOT
from suite.runs.store import StoreError

VOID = {"meta", "link", "br", "img", "hr", "input"}


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    """The fake paper as the only one registered, its claims published in a temporary folder; no measured speed."""
    with registered(tmp_path_factory.mktemp("home"), report) as paper:
        yield paper


class Page(HTMLParser):
    """Elements with their attributes and text, and what a browser would complain about."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def text(paper, tmp_path_factory) -> str:
    return page(fill(tmp_path_factory.mktemp("runs")))


@pytest.fixture(scope="module")
def parsed(text) -> Page:
    return Page(text)


def test_tags_balance_and_ids_are_unique(parsed):
    assert parsed.unbalanced == []
    assert parsed.open == []
    repeated = [i for i, n in Counter(a["id"] for _, a in parsed.elements if a.get("id")).items() if n > 1]
    assert repeated == []


def test_every_anchor_and_svg_reference_resolves(text, parsed):
    ids = {a["id"] for _, a in parsed.elements if a.get("id")}
    links = [a[name] for _, a in parsed.elements for name in ("href", "xlink:href") if a.get(name)]
    local = {link[1:] for link in links if link.startswith("#")}
    assert len(local) > 20
    assert local - ids == set()
    used = set(re.findall(r"url\(#([^)]+)\)", text))
    assert used
    assert used - ids == set()
    named = {i for _, a in parsed.elements for i in (a.get("aria-labelledby") or "").split()}
    assert named - ids == set()


def test_nothing_is_fetched_and_nothing_runs(text, parsed):
    sources = [a[name] for _, a in parsed.elements for name in ("src", "href", "xlink:href", "data") if a.get(name)]
    assert [s for s in sources if not s.startswith(("#", "data:"))] == []
    assert [u for u in re.findall(r"url\(([^)]*)\)", text) if not u.startswith("#")] == []
    assert "@import" not in text
    assert parsed.all("script", "iframe", "object", "embed") == []
    assert [name for _, a in parsed.elements for name in a if name.startswith("on")] == []
    (policy,) = [m["content"] for m in parsed.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")


def test_figures_tables_and_page_speak_to_a_screen_reader(parsed):
    assert parsed.all("html")[0]["lang"] == "en"
    drawings = parsed.all("svg")
    assert len(drawings) == 2
    assert all(a["role"] == "img" and a["aria-labelledby"] for a in drawings)
    assert parsed.words.count("Loss falls.") == 2  # said by the drawing, and below it
    assert all(a.get("alt") is not None for a in parsed.all("img"))
    assert len(parsed.all("table")) == len(parsed.all("caption"))
    assert all(a.get("scope") in ("row", "col") for a in parsed.all("th"))
    levels = [int(tag[1]) for tag, _ in parsed.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_stored_text_is_escaped_in_tables_and_in_figures(text, parsed):
    assert HOSTILE not in text
    assert "<script" not in text
    assert not re.search("[\x1b\x9b\u202e]", text), "a terminal or a reader would obey it"
    assert "obeyed" in parsed.words
    assert parsed.words.count('<script>alert("x")</script>') >= 4  # run notes, versions, quantity, figure title


def test_the_verdicts_are_the_judge_s_and_counted_apart(paper, parsed, tmp_path):
    found = verdicts.verdicts(paper, fill(tmp_path / "again"))
    others = {"no visible difference", "undetermined", "bound to the paper's machine"}
    assert {v.verdict for v in found} == set(VERDICTS) - others
    counted = board(found)
    assert counted.properties == {"exact": {"holds": 2, "paper contradicts itself": 1}}
    assert counted.empirical["stand-in"].total() == 6
    assert counted.empirical[NOTHING] == {"not run": 1}
    assert not counted.decides
    assert "Of 8 empirical claims, 0 are decided" in parsed.words
    assert "3 properties of our code and statements of the papers" in parsed.words


def test_what_no_claim_asks_for_is_shown_apart(text, parsed):
    """A quantity beyond the claims stands with its artifact; one that a claim reads does not stand there again."""
    (besides,) = re.findall(r'<details class="besides">.*?</details>', text, re.DOTALL)
    assert re.findall("<dt>(.*?)</dt>", besides) == ["time over best"]
    assert "1.06" in besides
    assert "smoke profile, n = 3; what no claim asks for" in besides
    assert HOSTILE not in besides


@pytest.mark.parametrize(
    "expected",
    [
        "26.79%",
        "2.68 [2.37, 2.99]%",
        "75.0 [73.5, 76.2]%",
        "lambda = 30 < lambda = 4 < lambda = 1",
        "≤ 0.1",
        "± 2 points",
        "lambda = 4 minus lambda = 30: 0.50 [0.40, 0.60]; lambda = 1 minus lambda = 4: 0.25 [0.15, 0.35]",
        "10 values, from 1",
        "the gain shrinks to a tenth",
        "the rows printed above it add up to 98",
        "the printed batch size does not fit the printed rate",
        "No experiment measures this artifact yet.",
        "shown only, deciding nothing: holds two processes on one machine",
        "nobody says what fake/descent computes",
        "sgd-suite run fake/fig1 --profile smoke && sgd-suite figures fake/fig1",
        "sgd-suite check fake/table1",
        "memory_bytes 8 GiB",
        "Section 4, Fig. 1",
    ],
)
def test_a_reader_finds(parsed, expected):
    assert expected in parsed.words


def test_every_run_behind_the_page_is_listed_with_its_environment(parsed):
    rows = {a["id"] for a in parsed.all("tr") if (a.get("id") or "").startswith("run-")}
    assert rows == {f"run-{s.id}" for s in (*specs("smoke"), *fig2_runs("smoke")["cluster"])}
    assert {a.get("id") for a in parsed.all("table")} >= {"E1", "E2"}


def test_without_any_run_the_page_says_so(paper):
    words = Page(page(Layered(()))).words
    assert "No stored run stands behind this page." in words
    assert "Not run: 3 of 3 runs of 'descent' at paper are missing" in words
    assert "needs profile smoke" in words


def test_a_damaged_run_is_named_and_nothing_is_drawn_from_it(paper, tmp_path):
    store = fill(tmp_path / "store")
    broken = specs("smoke")[1].id
    (store.root / "runs" / broken / "outcome.json").write_text('{"status": "finished", "results": {"best": 99}}')
    parsed = Page(page(store))
    assert len(parsed.all("svg")) == 1
    assert f"run {broken}: outcome.json does not match its checksum" in parsed.words
    assert "Not drawn, stored evidence cannot be used" in parsed.words


def test_measured_speed_has_its_own_section(paper, monkeypatch):
    assert "How fast it is" not in Page(page(Layered(()))).words
    figure = Figured("Attained against the limit", "Marks below a line.", "<svg></svg>", 6.4)
    shown = Speed(
        "speed-here", "This <machine>", [figure], [("LeNet <b>", "2.00 x", *[""] * 6)], "4.00 times with k=4."
    )
    monkeypatch.setattr(report, "measured_speed", lambda: [shown])
    text = page(Layered(()))
    parsed = Page(text)
    assert not parsed.unbalanced
    assert {"id": "speed"} in parsed.all("h2")
    assert len(parsed.all("svg")) == 1
    assert len(parsed.all("table")) == len(parsed.all("caption"))
    for words in ("This <machine>", "LeNet <b>", "2.00 x", "4.00 times with k=4.", "Marks below a line."):
        assert words in parsed.words
    assert "LeNet <b>" not in text


def test_the_same_runs_give_the_same_single_file(paper, tmp_path):
    store = fill(tmp_path / "store")
    first = write_report(store, tmp_path / "first")
    second = write_report(store, tmp_path / "second")
    assert first == tmp_path / "first" / "report.html"
    assert [path.name for path in first.parent.iterdir()] == ["report.html"]
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) < 400_000  # a curve of 50,000 points and a cloud of 20,000 included


def test_a_folder_that_cannot_be_written_ends_in_one_sentence(paper, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="could not write"):
        write_report(Layered(()), tmp_path / "file")


def test_the_command_of_an_artifact_without_runs_runs_nothing(paper):
    assert command(paper.artifact("fake/table1"), "") == "sgd-suite check fake/table1"


def test_departures_are_read_from_docstrings(tmp_path):
    (tmp_path / "one.py").write_text(
        '"""A method.\n\nText.\n\nDiffers from the paper:\n- the first,\n  continued\n- the second\n\n'
        "Differs from the authors'\ncode: nothing :func:`known`,\n"
        'as far as one sees\n\nAfterwards:\n- not a departure\n"""\nraise SystemExit\n'
    )
    (tmp_path / "two.py").write_text("x = 1\n")
    (ledger,) = departures(tmp_path)
    assert (ledger.file, ledger.title) == ("one.py", "A method")
    assert ledger.parts == (
        ("Differs from the paper", ("the first, continued", "the second")),
        ("Differs from the authors' code", ("nothing ``known``, as far as one sees",)),
    )


def test_the_reference_implementations_declare_departures():
    declared = {ledger.file: ledger for ledger in departures(ROOT / "reference_impls")}
    assert any("queue" in item for _, items in declared["isgd.py"].parts for item in items)
    assert all(items for ledger in declared.values() for _, items in ledger.parts)


def test_the_template_is_packaged():
    assert (Path(report.__file__).parent / "page.html.j2").is_file()
