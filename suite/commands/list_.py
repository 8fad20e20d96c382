"""What there is: artifacts, their claims, and whose runs there are of each. Starts fast: no numpy, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suite.papers import index
from suite.papers.evidence import committed, ids_of_user
from suite.papers.selection import matching


def committed_ids() -> set[str]:
    """Ids of the runs that the papers come with, unverified."""
    return set().union(*(runs.ids() for runs in committed()))


def listing(selectors: Sequence[str], store: Path | None) -> list[dict[str, Any]]:
    """One row per artifact with its claims and, per profile, how many runs it needs and who has them.

    *yours* are in the store, *committed* in the papers' evidence and not in the store. Raises StoreError when
    ``store`` was named and is none.
    """
    yours = ids_of_user(store)
    others = committed_ids() - yours
    rows = {row["id"]: row for row in index.rows()}
    return [
        {
            **rows[artifact],
            "runs": {
                profile: {
                    "needed": len(ids),
                    "yours": len(yours.intersection(ids)),
                    "committed": len(others.intersection(ids)),
                }
                for profile, ids in rows[artifact]["runs"].items()
            },
        }
        for artifact in matching(selectors, list(rows))
    ]


def lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The listing as text, a line per artifact."""
    text = []
    for row in rows:
        runs = ", ".join(
            f"{profile} {count['yours']} yours {count['committed']} committed of {count['needed']}"
            for profile, count in row["runs"].items()
            if count["needed"]
        )
        claims = len(row["claims"])
        text.append(f"{row['id']:<28} {claims:3} claims  {row['title']}  [{runs or 'no runs needed'}]")
    total = sum(len(row["claims"]) for row in rows)
    return [*text, f"{len(rows)} artifacts, {total} claims"]
