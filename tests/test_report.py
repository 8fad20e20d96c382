"""The report as a reader's browser would parse it: complete, self-contained, accessible, and nothing stored runs."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from fake_paper import HOSTILE, fill, registered, specs

from suite.report import page as report
from suite.report.page import page, write_report
from suite.report.provenance import departures
from suite.runs.environment import ROOT

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


def test_a_damaged_run_is_named_and_nothing_is_drawn_from_it(paper, tmp_path):
    store = fill(tmp_path / "store")
    broken = specs("smoke")[1].id
    (store.root / "runs" / broken / "outcome.json").write_text('{"status": "finished", "results": {"best": 99}}')
    parsed = Page(page(store))
    assert len(parsed.all("svg")) == 1
    assert f"run {broken}: outcome.json does not match its checksum" in parsed.words
    assert "Not drawn, stored evidence cannot be used" in parsed.words


def test_the_same_runs_give_the_same_single_file(paper, tmp_path):
    store = fill(tmp_path / "store")
    first = write_report(store, tmp_path / "first")
    second = write_report(store, tmp_path / "second")
    assert first == tmp_path / "first" / "report.html"
    assert [path.name for path in first.parent.iterdir()] == ["report.html"]
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) < 400_000  # a curve of 50,000 points and a cloud of 20,000 included


def test_the_reference_implementations_declare_departures():
    declared = {ledger.file: ledger for ledger in departures(ROOT / "reference_impls")}
    assert any("queue" in item for _, items in declared["isgd.py"].parts for item in items)
    assert all(items for ledger in declared.values() for _, items in ledger.parts)
