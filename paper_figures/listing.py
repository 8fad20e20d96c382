"""What there is: artifacts, their claims, and how much of each is stored. Starts fast: no numpy, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paper_figures.evidence import with_committed
from paper_figures.selection import select
from paper_figures.verdicts import published
from suite.claims import PROFILES
from suite.store import StoreError


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
    rows = []
    for paper, artifacts in select(selectors):
        claims: dict[str, list[dict[str, Any]]] = {}
        for claim in published(paper.name):
            claims.setdefault(claim.artifact, []).append(
                {
                    "id": claim.id,
                    "says": claim.says,
                    "where": claim.where,
                    "profile": claim.profile,
                    "needs": claim.needs,
                }
            )
        for artifact in artifacts:
            runs = {}
            for profile in PROFILES:
                ids = {spec.id for group in artifact.runs(profile).values() for spec in group}
                runs[profile] = {"needed": len(ids), "stored": len(ids & stored)}
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
