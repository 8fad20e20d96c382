"""The command ``refresh``: renew the files that are made from papers, their claims and their committed evidence.

In the project that holds a paper's package: the index that ``list`` reads, every claim's value with its interval and
verdict as one table (``results.csv``), hours planned and spent by runs that counted them (``hours.csv``), and what
stands between the markers of its README. In this project also the tables in ``docs``, what became of the claims of
before, and every picture of the documentation.

A text is up to date when its numbers differ by one in the last digit at most, and a picture when it shows what would
be drawn: another processor rounds otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from suite.papers import index
from suite.papers.evidence import committed
from suite.papers.registry import PAPERS, homes, papers_of
from suite.papers.selection import SelectorError
from suite.report import readme
from suite.report.data import results
from suite.report.hours import HOURS, hours
from suite.report.numerals import alike
from suite.runs.archive import Layered

RESULTS = "results.csv"


def project(home: Path) -> Path | None:
    """The folder of the project that a home belongs to; None for one that was installed without it."""
    return next(
        (folder for folder in (home.parent, home.parent.parent) if (folder / "pyproject.toml").is_file()), None
    )


def generated(home: Path) -> dict[Path, str]:
    """What the generated files of a home's project must hold. Raises ReadmeError where markers are missing."""
    root = project(home)
    made = {home / index.NAME: index.text(home)}
    if root is None:
        return made
    source = Layered(committed())
    judged = readme.judged_of(papers_of(home), source)
    made[home / RESULTS] = results(judged)
    if planned := hours(source.read(run_id) for run_id in sorted(source.ids())):
        made[home / HOURS] = planned
    for name, blocks in (
        readme.blocks(judged, source) if home.resolve() == readme.OWN else readme.blocks_elsewhere(judged)
    ).items():
        path = root / name
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        for block, wanted in blocks.items():
            text = readme.rewritten(text, block, wanted)
        made[path] = text
    return made


def pictures(home: Path, *, check: bool) -> tuple[int, list[str]]:
    """Draw the pictures of the documentation that are out of date, or only name them; how many, and what to say.

    A screenshot stays as it is where there is no browser.
    """
    from suite.report.illustrations import NoBrowser, illustrations, unmentioned

    root = project(home)
    if root is None or home.resolve() != readme.OWN:
        return 0, []
    said, stale = [], 0
    for picture in illustrations(root, Layered(committed())):
        if not (why := picture.stale):
            continue
        stale += 1
        if check:
            said.append(f"{picture.path}: out of date ({why})")
            continue
        try:
            picture.write()
            said.append(f"{picture.path}: drawn ({why})")
        except NoBrowser as error:
            said.append(f"{picture.path}: out of date and left as it is: {error}")
    for path in unmentioned(root):
        stale += 1
        said.append(f"{path}: {'no page shows it' if check else 'deleted, no page shows it'}")
        if not check:
            path.unlink()
    return stale, said


def refresh(papers: Sequence[str], *, check: bool = False) -> tuple[int, list[str]]:
    """Renew the generated files of the papers' homes, or with ``check`` compare them; exit code and what to say.

    Without ``papers``, of all homes that are projects and not installed packages. Raises SelectorError for an unknown
    paper.
    """
    if unknown := [name for name in papers if name not in PAPERS]:
        raise SelectorError(f"nothing is called {unknown[0]!r}; the papers are {', '.join(PAPERS)}")
    said, stale = [], 0
    for home in homes():
        if papers and not set(papers) & set(papers_of(home)):
            continue
        if project(home) is None:
            said.append(f"{home}: installed without its project; nothing to renew")
            continue
        for path, text in generated(home).items():
            if path.exists() and alike(path.read_text(encoding="utf-8"), text):
                continue
            stale += 1
            if not check:
                path.write_text(text, encoding="utf-8")
            said.append(f"{path}: {'out of date' if check else 'renewed'}")
        old, told = pictures(home, check=check)
        stale += old
        said += told
    return (1 if check and stale else 0), said or ["all generated files are up to date"]
