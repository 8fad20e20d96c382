"""The report in a real browser: axe's rules on every kind of page, at two widths, light and dark.

    python -m ci.accessibility [--site report]

The browser is the system's Chromium or Chrome. Exit 1 when a rule is broken. Faults in the console, requests that
leave the folder and content wider than the window are the business of ``tests/test_report_browser.py``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

WIDTHS = {1400: 900, 390: 844}  # of the window, with its height
SCHEMES = ("light", "dark")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser() -> str | None:
    """The system's Chromium or Chrome, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def pages(site: Path) -> list[str]:
    """The index, what is about the whole, each paper, and of each paper the artifacts at both ends of its list."""
    papers = sorted(path.stem for path in site.glob("*.html") if path.with_suffix("").is_dir())
    found = [name for name in ("index.html", "about.html") if (site / name).exists()]
    for paper in papers:
        artifacts = sorted(path.relative_to(site).as_posix() for path in (site / paper).glob("*.html"))
        found += [f"{paper}.html", *dict.fromkeys((*artifacts[:1], *artifacts[-1:]))]
    return found


def loads(site: Path, chosen: Sequence[str], executable: str) -> Iterator[tuple[str, list[str]]]:
    """Every chosen page at every width in both schemes, and the rules that it breaks with the number of elements."""
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
                page = context.new_page()
                for name in chosen:
                    page.goto((site.resolve() / name).as_uri())
                    broken = Axe().run(page).response["violations"]
                    yield f"{name}, {width} px, {scheme}", [f"{each['id']} ({len(each['nodes'])})" for each in broken]
                context.close()
        browser.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", type=Path, default=Path("report"))
    site = parser.parse_args(arguments).site
    executable = browser()
    if executable is None:
        print(f"ci.accessibility: none of {', '.join(BROWSERS)} is installed", file=sys.stderr)
        return 2
    found = dict(loads(site, pages(site), executable))
    for load, broken in found.items():
        if broken:
            print(f"{load}: {'; '.join(broken)}")
    print(f"{len(found)} loads, {sum(map(len, found.values()))} violations")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main())
