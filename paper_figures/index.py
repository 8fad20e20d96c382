"""What the papers hold, as one committed table, so that ``list`` need not import five papers.

``python -m paper_figures.index --write`` makes ``index.json`` anew; a test makes it and compares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from paper_figures.registry import PAPERS

INDEX = Path(__file__).parent / "index.json"


def build() -> list[dict[str, Any]]:
    """A row per artifact: id, title, whether it is drawn, ids of its runs by profile, its claims."""
    from paper_figures.registry import paper
    from paper_figures.verdicts import published
    from suite.claims import PROFILES

    rows = []
    for name in PAPERS:
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


def text() -> str:
    """The committed form of ``build``: one line per artifact."""
    lines = ",\n".join(json.dumps(row) for row in build())
    return f'{{"papers": {json.dumps(list(PAPERS))}, "artifacts": [\n{lines}\n]}}\n'


def rows() -> list[dict[str, Any]]:
    """The committed rows, or fresh ones when the papers are not those of the committed table."""
    table = json.loads(INDEX.read_text(encoding="utf-8")) if INDEX.exists() else {"papers": []}
    return table["artifacts"] if table["papers"] == list(PAPERS) else build()


def main() -> int:
    """Write the table, or say whether it is out of date (exit 1)."""
    if "--write" in sys.argv[1:]:
        INDEX.write_text(text(), encoding="utf-8")
        return 0
    return 0 if INDEX.exists() and INDEX.read_text(encoding="utf-8") == text() else 1


if __name__ == "__main__":
    sys.exit(main())
