"""What the papers hold, as one committed table, so that ``list`` need not import five papers.

``python -m suite.papers.index --write`` makes ``index.json`` anew; a test makes it and compares.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from suite.papers.registry import homes, papers_of

NAME = "index.json"  # in a paper's home


def build(names: Iterable[str]) -> list[dict[str, Any]]:
    """A row per artifact of these papers: id, title, whether it is drawn, ids of its runs by profile, its claims."""
    from suite.claims.judge import PROFILES
    from suite.papers.published import published
    from suite.papers.registry import paper

    rows = []
    for name in names:
        claims: dict[str, list[dict[str, str]]] = {}
        for claim in published(name):
            shown = {key: getattr(claim, key) for key in ("id", "says", "where", "profile", "needs")}
            claims.setdefault(claim.artifact, []).append(shown)
        for artifact in paper(name).artifacts:
            runs = {
                profile: sorted({spec.id for group in artifact.runs(profile).values() for spec in group})
                for profile in PROFILES
            }
            rows.append(
                {
                    "id": artifact.id,
                    "title": artifact.title,
                    "drawn": artifact.draw is not None,
                    "runs": runs,
                    "claims": claims.get(artifact.id, []),
                }
            )
    return rows


def text(home: Path) -> str:
    """The committed form of ``build`` for one home: one line per artifact."""
    names = papers_of(home)
    lines = ",\n".join(json.dumps(row) for row in build(names))
    return f'{{"papers": {json.dumps(names)}, "artifacts": [\n{lines}\n]}}\n'


def rows() -> list[dict[str, Any]]:
    """The committed rows of each home, or fresh ones where its papers are not those of the committed table."""
    found: list[dict[str, Any]] = []
    for home in homes():
        path = home / NAME
        table = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"papers": []}
        names = papers_of(home)
        found += table["artifacts"] if table["papers"] == names else build(names)
    return found


def main() -> int:
    """Write the tables, or say whether one is out of date (exit 1)."""
    paths = {home / NAME: text(home) for home in homes()}
    if "--write" in sys.argv[1:]:
        for path, written in paths.items():
            path.write_text(written, encoding="utf-8")
        return 0
    return (
        0
        if all(path.exists() and path.read_text(encoding="utf-8") == written for path, written in paths.items())
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
