"""Which artifacts a selector on the command line means."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from paper_figures.artifact import Artifact, Paper
from paper_figures.registry import PAPERS, paper


class SelectorError(ValueError):
    """A selector that names nothing."""


def select(selectors: Iterable[str]) -> list[tuple[Paper, list[Artifact]]]:
    """Papers with their chosen artifacts, in the papers' order; no selector means everything.

    A selector is a paper (``isgd``), an artifact (``isgd/fig5a``) or a glob of artifacts (``*/fig1?``). Raises
    SelectorError for one that matches nothing, naming what there is.
    """
    patterns = list(selectors)
    matched: set[str] = set()
    chosen: list[tuple[Paper, list[Artifact]]] = []
    for name in PAPERS:
        if patterns and not any(_may_match(pattern, name) for pattern in patterns):
            continue
        these = paper(name)
        hits = []
        for artifact in these.artifacts:
            found = [p for p in patterns if p == name or fnmatchcase(artifact.id, p)]
            matched.update(found)
            if found or not patterns:
                hits.append(artifact)
        if hits:
            chosen.append((these, hits))
    if unknown := [pattern for pattern in patterns if pattern not in matched]:
        raise SelectorError(
            f"nothing is called {unknown[0]!r}; name a paper ({', '.join(PAPERS)}), an artifact such as "
            f"isgd/fig5a, or a glob such as 'isgd/fig*'"
        )
    return chosen


def _may_match(pattern: str, name: str) -> bool:
    """Whether a selector can concern a paper, decided without importing it. A star also stands for a slash."""
    head = pattern.partition("/")[0]
    return "*" in head or fnmatchcase(name, head)
