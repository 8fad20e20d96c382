"""Every link, anchor and picture of folders of pages followed, without a network.

    python -m ci.links report
    python -m ci.links --served site report --log docs/links.md

What leads outside is listed and not followed. Exit 1 when anything leads nowhere or out of its folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class Page(HTMLParser):
    """The addresses that a page names, and the places in it that others can name."""

    def __init__(self, text: str):
        super().__init__()
        self.addresses: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.addresses += [given[name] for name in ("href", "src") if name in given]
        self.places |= {given[name] for name in ("id", *(["name"] if tag == "a" else [])) if name in given}


@cache
def _read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


@dataclass
class Followed:
    """What came of one folder."""

    folder: str
    pages: int = 0
    links: int = 0  # to files of the folder, those with an anchor among them
    anchors: int = 0
    broken: list[str] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)


def follow(folder: Path, *, served: bool = False) -> Followed:
    """Every address of every page below ``folder``, read as files.

    ``served`` is for pages that only a server shows: it answers for a folder with its index, and for an address that
    begins with a slash from the top. Raises FileNotFoundError where there is no page.
    """
    home = folder.resolve()
    found = Followed(folder.name)
    for path in sorted(home.rglob("*.html")):
        found.pages += 1
        for address in _read(path).addresses:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                found.outside.add(address)
                continue
            to, anchor = urldefrag(unquote(address))
            target = (path.parent / to).resolve() if to else path
            if served:
                start = home if to.startswith("/") else path.parent
                target = (start / to.lstrip("/")).resolve() if to else path
                target = target / "index.html" if target.is_dir() else target
            found.links += 1
            found.anchors += bool(anchor)
            if not target.is_relative_to(home) or not target.is_file():
                found.broken.append(f"{path.relative_to(home)}: {address} is not there")
            elif anchor and target.suffix == ".html" and anchor not in _read(target).places:
                found.broken.append(f"{path.relative_to(home)}: {address} names no place")
    if not found.pages:
        raise FileNotFoundError(f"{folder} holds no page")
    return found


def log(every: Sequence[Followed]) -> str:
    """What was followed, as Markdown."""
    lines = ["# Links", "", "Followed by `python -m ci.links`, without a network.", ""]
    lines += ["| folder | pages | links | with an anchor | lead nowhere |", "|---|--:|--:|--:|--:|"]
    lines += [f"| {f.folder} | {f.pages} | {f.links} | {f.anchors} | {len(f.broken)} |" for f in every]
    for title, rows in (
        ("Lead nowhere", [f"- {f.folder}: {line}" for f in every for line in f.broken]),
        ("Lead outside, not followed", sorted({f"- <{address}>" for f in every for address in f.outside})),
    ):
        lines += ["", f"{title}:", "", *rows] if rows else []
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--served", action="store_true", help="as a server shows them: index.html for a folder")
    parser.add_argument("--log", type=Path)
    chosen = parser.parse_args(arguments)
    try:
        found = [follow(folder, served=chosen.served) for folder in chosen.folders]
    except FileNotFoundError as error:
        print(f"ci.links: {error}", file=sys.stderr)
        return 2
    print(log(found), end="")
    if chosen.log:
        chosen.log.write_text(log(found), encoding="utf-8")
    return int(any(each.broken for each in found))


if __name__ == "__main__":
    sys.exit(main())
