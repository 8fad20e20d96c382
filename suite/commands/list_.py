"""What there is: artifacts, their claims, and how much of each is stored. Starts fast: no numpy, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suite.papers import index
from suite.papers.evidence import with_committed
from suite.papers.selection import matching
from suite.runs.store import StoreError


def stored_ids(store: Path | None) -> set[str]:
    """Ids of all runs at hand, unverified. Raises StoreError when ``store`` was named and is none."""
    try:
        return with_committed(store).ids()
    except StoreError:
        if store is not None:
            raise
        return set()


def listing(selectors: Sequence[str], store: Path | None) -> list[dict[str, Any]]:
    """One row per artifact with its claims and, per profile, how many runs it needs and how many are stored."""
    stored = stored_ids(store)
    rows = {row["id"]: row for row in index.rows()}
    return [
        {
            **rows[artifact],
            "runs": {
                profile: {"needed": len(ids), "stored": len(stored.intersection(ids))}
                for profile, ids in rows[artifact]["runs"].items()
            },
        }
        for artifact in matching(selectors, list(rows))
    ]


def lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The listing as text, a line per artifact."""
    text = []
    for row in rows:
        runs = " ".join(
            f"{profile} {count['stored']}/{count['needed']}"
            for profile, count in row["runs"].items()
            if count["needed"]
        )
        claims = len(row["claims"])
        text.append(f"{row['id']:<28} {claims:3} claims  {row['title']}  [{runs or 'no runs needed'}]")
    total = sum(len(row["claims"]) for row in rows)
    return [*text, f"{len(rows)} artifacts, {total} claims"]
