"""The report in a real browser: axe's rules on every kind of page, at two widths, light and dark.

    python -m ci.accessibility [--site report] [--log docs/accessibility.md]

The browser is the system's Chromium or Chrome. Every page is also looked at for faults in its console, for requests
that leave its folder, and for content wider than the window. Exit 1 when anything is found.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WIDTHS = {1400: 900, 390: 844}  # of the window, with its height
SCHEMES = ("light", "dark")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Load:
    """One page in one window."""

    page: str
    width: int
    scheme: str
    violations: tuple[str, ...]  # rules of axe, with the number of elements
    passes: int  # rules of axe that the page obeys
    faults: tuple[str, ...]  # in the console, of the network or of the layout


def browser() -> str | None:
    """The system's Chromium or Chrome, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def pages(site: Path) -> list[str]:
    """The index, what is about the whole, each paper, and of each paper the artifacts at both ends of its list."""
    papers = sorted(path.stem for path in site.glob("*.html") if path.with_suffix("").is_dir())
    found = [name for name in ("index.html", "about.html", "speed.html") if (site / name).exists()]
    for paper in papers:
        artifacts = sorted(path.relative_to(site).as_posix() for path in (site / paper).glob("*.html"))
        found += [f"{paper}.html", *dict.fromkeys((*artifacts[:1], *artifacts[-1:]))]
    return found + [path.relative_to(site).as_posix() for path in sorted((site / "source").glob("*.html"))[:1]]


def loads(site: Path, chosen: Sequence[str], executable: str) -> Iterator[Load]:
    """Every chosen page at every width in both schemes."""
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        for width, height in WIDTHS.items():
            for scheme in SCHEMES:
                # the pages forbid every script but their own: axe is let past that, nothing else is changed
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True
                )
                for name in chosen:
                    yield _load(context.new_page(), Axe(), site, name, width, scheme)
                context.close()
        browser.close()


def _load(page: Any, axe: Any, site: Path, name: str, width: int, scheme: str) -> Load:
    faults: list[str] = []
    home = site.resolve().as_uri()
    page.on("console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith((home, "data:")) else faults.append(f"asks for {asked.url}"),
    )
    page.goto((site.resolve() / name).as_uri())
    reach = page.evaluate("document.documentElement.scrollWidth")
    if reach > width:
        faults.append(f"{reach} pixels wide")
    own = tuple(faults)  # axe fetches style sheets itself, which pages from files must not
    found = axe.run(page).response
    page.close()
    violations = tuple(f"{each['id']} ({len(each['nodes'])})" for each in found["violations"])
    return Load(name, width, scheme, violations, len(found["passes"]), own)


def log(found: Sequence[Load], version: str) -> str:
    """The loads as Markdown: a line per page, a column per window."""
    windows = [(width, scheme) for width in WIDTHS for scheme in SCHEMES]
    told = {(load.page, load.width, load.scheme): load for load in found}
    lines = [
        "# Accessibility of the report",
        "",
        f"axe {version} on pages of the report, by `nox -s pages`: rules violated / rules obeyed.",
        "",
        "| page | " + " | ".join(f"{width} px, {scheme}" for width, scheme in windows) + " |",
        "|---|" + "--:|" * len(windows),
    ]
    for page in dict.fromkeys(load.page for load in found):
        cells = [told[page, *window] for window in windows]
        lines.append(f"| {page} | " + " | ".join(f"{len(c.violations)} / {c.passes}" for c in cells) + " |")
    bad = [f"- {c.page}, {c.width} px, {c.scheme}: {'; '.join(c.violations + c.faults)}" for c in found if red(c)]
    total = sum(len(load.violations) for load in found)
    lines += ["", f"{len(found)} loads, {total} violations, {sum(len(c.faults) for c in found)} other faults."]
    return "\n".join([*lines, *([""] if bad else []), *bad]) + "\n"


def red(load: Load) -> bool:
    return bool(load.violations or load.faults)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=Path("report"))
    parser.add_argument("--log", type=Path)
    chosen = parser.parse_args(arguments)
    executable = browser()
    if executable is None:
        print(f"ci.accessibility: none of {', '.join(BROWSERS)} is installed", file=sys.stderr)
        return 2
    import axe_playwright_python

    head = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")[:40]
    found = list(loads(chosen.site, pages(chosen.site), executable))
    told = log(found, head.split("axe v")[1].split()[0])
    print(told, end="")
    if chosen.log:
        chosen.log.write_text(told, encoding="utf-8")
    return int(any(map(red, found)))


if __name__ == "__main__":
    sys.exit(main())
