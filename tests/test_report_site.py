"""The report as a site: a page per artifact, no dead link, nothing fetched."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from fake_paper import HOSTILE, fill, registered, specs

from suite.papers import catalogue
from suite.papers.artifact import Artifact
from suite.report.site import build
from suite.report.site.build import Row, Section, write_site
from suite.runs.archive import Layered
from suite.runs.run import StoreError
from suite.runs.store import Store

VOID = {"meta", "link", "br", "img", "hr", "input"}
EMBEDDED = ("src", "srcset", "data", "poster", "background")  # attributes that a browser follows by itself


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
def paper(tmp_path_factory):
    with registered(tmp_path_factory.mktemp("home")) as paper:
        yield paper


@pytest.fixture(scope="module")
def store(paper, tmp_path_factory) -> Store:
    return fill(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def made(store, tmp_path_factory) -> Path:
    """A site of the fake paper."""
    index, _ = write_site(store, tmp_path_factory.mktemp("site"))
    return index.parent


@pytest.fixture(scope="module")
def pages(made) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(made.rglob("*.html"))}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_links_pictures_and_anchors_lead_somewhere(made, pages):
    places = {path: {each["id"] for _, each in page.elements if "id" in each} for path, page in pages.items()}
    followed = 0
    for path, page in pages.items():
        named = [each[name] or "" for _, each in page.elements for name in ("href", "src") if name in each]
        for address in named:
            if not address.startswith("data:"):
                to, anchor = urldefrag(unquote(address))
                target = (path.parent / to).resolve() if to else path
                assert target.is_file(), f"{path.name}: {address}"
                assert target.is_relative_to(made.resolve()), f"{path.name}: {address}"
                assert not anchor or anchor in places[target], f"{path.name}: {address}"
                followed += 1
    assert followed > 60


def test_no_page_fetches_or_runs_anything_but_its_own_files(pages):
    for path, page in pages.items():
        (policy,) = [m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        moves = path.name == "index.html" or any("data-curves" in each for _, each in page.elements)
        assert [Path(script["src"]).name for script in page.all("script")] == ["site.js"] * moves
        assert [e for e in page.elements if e[0] in ("style", "iframe", "object", "embed", "base")] == []
        assert [name for _, a in page.elements for name in a if name == "style" or name.startswith("on")] == []
        embedded = [a[name] for _, a in page.elements for name in EMBEDDED if a.get(name)]
        embedded += [str(a["href"]) for a in page.all("link")]
        assert [e for e in embedded if "//" in e] == []
    for name in ("site.css", "site.js"):
        text = (build.HERE / name).read_text()
        outward = ("http", "url(", "@import", "import ", "fetch", "eval", "innerHTML")
        assert [word for word in outward if word in text] == []


def test_pages_are_whole_and_speak_to_a_screen_reader(pages):
    for path, page in pages.items():
        assert (page.unbalanced, page.open) == ([], []), path
        repeated = [i for i, n in Counter(a["id"] for _, a in page.elements if a.get("id")).items() if n > 1]
        assert repeated == [], path
        assert page.all("html")[0]["lang"] == "en"
        assert [tag for tag, _ in page.elements].count("h1") == 1
        assert all(a.get("alt") is not None for a in page.all("img"))
        assert len(page.all("table")) == len(page.all("caption"))
        assert all(a.get("scope") in ("row", "col") for a in page.all("th"))


def test_hostile_titles_notes_and_versions_are_text(pages, made):
    for path in made.rglob("*.html"):
        assert HOSTILE not in path.read_text(), path
        assert "<script>" not in path.read_text(), path
        assert not re.search("[\x1b\x9b\u202e]", path.read_text()), path
    words = pages[made / "fake/fig1.html"].words
    assert words.count('<script>alert("x")</script>') >= 3  # run notes, versions, a quantity's note
    row = Row(Artifact("fake/x", HOSTILE))
    section = Section(catalogue.paper("fake"), [row])
    page = build._shared([section], Layered([]))
    assert all(HOSTILE.encode() not in page[name] for name in ("index.html", "fake.html"))


@pytest.mark.parametrize(("single", "name"), [(False, "index.html"), (True, "report.html")])
def test_a_page_of_somebody_else_is_not_replaced(store, tmp_path, single, name):
    page = tmp_path / name
    page.write_text("<p>mine</p>")
    with pytest.raises(StoreError, match=r"was not written by `report`; move it"):
        write_site(store, tmp_path, single=single)
    assert page.read_text() == "<p>mine</p>"
    assert [page] == list(tmp_path.iterdir())


def test_all_pages_lie_in_one_file_that_fetches_nothing(store, made, tmp_path):
    written, _ = write_site(store, tmp_path, single=True)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    text = written.read_text(encoding="utf-8")
    page = Page(text)
    assert (page.unbalanced, page.open) == ([], [])
    ids = [a["id"] for _, a in page.elements if a.get("id")]
    assert len(ids) == len(set(ids))
    addresses = [a[name] for _, a in page.elements for name in ("href", "src") if a.get(name)]
    assert [each for each in addresses if not each.startswith(("#", "data:"))] == []
    named = {each[1:] for each in addresses if each.startswith("#")}
    named |= {each for _, a in page.elements for each in (a.get("aria-labelledby") or "").split()}
    assert len(named) > 40
    assert named <= set(ids)
    assert {"fake/fig1.html:main", "fake/fig3.html:main", "about.html:glossary"} <= named
    assert HOSTILE not in text
    for name in ("index.html", "fake/fig1.html"):
        assert Page((made / name).read_text(encoding="utf-8")).words.partition("Printed and ours")[2] in page.words


def test_a_damaged_run_is_named_and_nothing_is_drawn_from_it(paper, tmp_path):
    store = fill(tmp_path / "store")
    broken = specs("smoke")[1].id
    (store.root / "runs" / broken / "outcome.json").write_text('{"status": "finished", "results": {"best": 99}}')
    write_site(store, tmp_path / "site")
    page = Page((tmp_path / "site/fake/fig1.html").read_text(encoding="utf-8"))
    assert page.all("img") == []
    assert f"run {broken}: outcome.json does not match its checksum" in page.words
    assert "Not drawn, stored evidence cannot be used" in page.words


def test_the_same_runs_give_the_same_bytes_whatever_report_stood_there(store, made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    for ending in (".html", ".svg", ".csv"):
        shutil.copy(made / f"fake/fig1{ending}", tmp_path / f"fake/gone{ending}")
    (tmp_path / "fake/mine.html").write_text("mine")
    _, site = write_site(store, tmp_path)
    assert contents(tmp_path) == contents(made) | {"fake/mine.html": b"mine"}
    assert site.artifacts == 4
