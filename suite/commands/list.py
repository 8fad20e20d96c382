"""Artifacts and claims, whose runs there are and what is missing."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suite.claims.judge import PROFILES
from suite.clock import counted
from suite.commands import options
from suite.commands.output import folded, result, width
from suite.papers import catalogue
from suite.papers.catalogue import committed_ids, ids_of_user, matching

LEAST = 24  # columns of a title beside its counts


def command(
    selector: options.Selectors = None, *, store: options.SourceOption = None, as_json: options.Json = False
) -> None:
    rows = listing(selector or [], store)
    result(rows, folded(lines(rows, width())), as_json)


def listing(selectors: Sequence[str], store: Path | None) -> list[dict[str, Any]]:
    """One row per artifact with its claims and, per profile, how many runs it needs and who has them.

    *yours* are in the store, *committed* in the papers' evidence and not in the store. Raises StoreError when
    ``store`` was named and is none.
    """
    yours = ids_of_user(store)
    others = committed_ids() - yours
    rows = {row["id"]: row for row in catalogue.index()}

    def counts(ids: Sequence[str]) -> dict[str, int]:
        held = {"yours": len(yours.intersection(ids)), "committed": len(others.intersection(ids))}
        return {"needed": len(ids), **held}

    found = [rows[artifact] for artifact in matching(selectors, list(rows))]
    return [{**row, "runs": {profile: counts(ids) for profile, ids in row["runs"].items()}} for row in found]


def _held(count: dict[str, int]) -> str:
    """Runs at a profile: those in the store, those that come with the suite, and how many there are in all."""
    if not count["needed"]:
        return "-"
    yours = f"{count['yours']} + " if count["yours"] else ""
    return f"{yours}{count['committed']} of {count['needed']}"


def lines(rows: Sequence[dict[str, Any]], columns: int) -> list[str]:
    """The listing as text of so many columns, an artifact a line; titles stand below where it is narrow."""
    head = ("artifact", "claims", *PROFILES, "title")
    cells = [
        (row["id"], str(len(row["claims"])), *(_held(row["runs"][name]) for name in PROFILES), row["title"])
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)][:-1]
    text = []
    beside = columns - sum(widths) - 2 * len(widths) >= LEAST
    for *fixed, title in (head, *cells):
        start = "".join(f"{cell:<{width}}  " for cell, width in zip(fixed, widths, strict=True))
        if beside:
            text += textwrap.wrap(title, columns, initial_indent=start, subsequent_indent=" " * len(start))
        else:
            text += [start.rstrip(), *textwrap.wrap(title, columns, initial_indent="  ", subsequent_indent="  ")]
    total = sum(len(row["claims"]) for row in rows)
    counts = f"{counted(len(rows), 'artifact')}, {counted(total, 'claim')}"
    return [*text, f"{counts}; runs: yours + those that come with the suite, of all"]
