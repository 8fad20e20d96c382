"""Which artifacts a selector on the command line means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from suite.papers.registry import PAPERS, paper

if TYPE_CHECKING:
    from suite.papers.artifact import Artifact, Paper


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
            found = meant(patterns, artifact.id)
            matched.update(found)
            if found or not patterns:
                hits.append(artifact)
        if hits:
            chosen.append((these, hits))
    refuse_unknown(patterns, matched)
    return chosen


def matching(selectors: Iterable[str], ids: Sequence[str]) -> list[str]:
    """The artifact ids that the selectors mean, in the order given. Raises SelectorError as ``select`` does."""
    patterns = list(selectors)
    found = {artifact: meant(patterns, artifact) for artifact in ids}
    refuse_unknown(patterns, {pattern for hits in found.values() for pattern in hits})
    return [artifact for artifact in ids if found[artifact] or not patterns]


def meant(patterns: Sequence[str], artifact: str) -> list[str]:
    """Those of the patterns that mean an artifact: its paper's name, its id or a glob of ids."""
    return [p for p in patterns if p == artifact.partition("/")[0] or fnmatchcase(artifact, p)]


def refuse_unknown(patterns: Sequence[str], matched: set[str]) -> None:
    """Raise SelectorError naming the first pattern that matched nothing."""
    if unknown := [pattern for pattern in patterns if pattern not in matched]:
        raise SelectorError(
            f"nothing is called {unknown[0]!r}; name a paper ({', '.join(PAPERS)}), an artifact such as "
            f"isgd/fig5a, or a glob such as 'isgd/fig*'"
        )


def _may_match(pattern: str, name: str) -> bool:
    """Whether a selector can concern a paper, decided without importing it. A star also stands for a slash."""
    head = pattern.partition("/")[0]
    return "*" in head or fnmatchcase(name, head)
