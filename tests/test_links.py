"""What leads nowhere is found, whatever leads there."""

from __future__ import annotations

import pytest

from ci.links import follow, main

PAGE = '<h1 id="top">T</h1><a href="{}">x</a>'


@pytest.mark.parametrize("address", ["b.html", "b.html#top", "#top", "p.png", "data:,x", "https://x.org/"])
def test_what_is_there_is_followed(tmp_path, address):
    (tmp_path / "sub").mkdir()
    (tmp_path / "p.png").write_bytes(b"")
    for name in ("b.html", "sub/index.html"):
        (tmp_path / name).write_text('<p id="top">')
    (tmp_path / "a.html").write_text(PAGE.format(address))
    found = follow(tmp_path)
    assert (found.broken, found.pages) == ([], 3)
    assert found.outside == ({address} if "//" in address else set())


@pytest.mark.parametrize(("address", "broken"), [("sub/", 0), ("/sub/", 0), ("/b.html", 0), ("/c.html", 1)])
def test_a_server_answers_for_folders_and_from_the_top(tmp_path, address, broken):
    (tmp_path / "sub").mkdir()
    for name in ("b.html", "sub/index.html"):
        (tmp_path / name).write_text("<p>")
    (tmp_path / "a.html").write_text(PAGE.format(address))
    assert len(follow(tmp_path, served=True).broken) == broken


@pytest.mark.parametrize(
    "address", ["c.html", "#bottom", "b.html#bottom", "../other.html", "sub/", "/b.html", "b.html?q=1"]
)
def test_what_is_not_is_named(tmp_path, capsys, address):
    (tmp_path / "site" / "sub").mkdir(parents=True)
    (tmp_path / "other.html").write_text("")
    (tmp_path / "site" / "b.html").write_text("<p>")
    (tmp_path / "site" / "a.html").write_text(PAGE.format(address))
    assert main([str(tmp_path / "site"), "--log", str(tmp_path / "log.md")]) == 1
    assert f"site: a.html: {address} " in (tmp_path / "log.md").read_text()
    assert "| site | 2 | 1 |" in capsys.readouterr().out
