"""What a figure shows as a table, a row per value: the artifact's own frame, or the values of its claims."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from suite.claims.board import word
from suite.claims.judge import Verdict
from suite.papers.artifact import Artifact, Evidence
from suite.runs.archive import Runs

if TYPE_CHECKING:
    import pandas as pd

FORMS = ("csv", "parquet")


def known(form: str) -> str:
    """The form itself. Raises ValueError for one that tables are not written in."""
    if form not in FORMS:
        raise ValueError(f"a table is written as one of {', '.join(FORMS)}, not {form!r}")
    return form


def encoded(table: pd.DataFrame, form: str) -> bytes:
    """The table as a file; the same table gives the same bytes. CSV has eight digits, parquet all."""
    if known(form) == "csv":
        return table.to_csv(index=False, lineterminator="\n", float_format="%.8g").encode()
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def table_of(
    artifact: Artifact | None, source: Runs, profile: str | None, judge: Callable[[], Iterable[Verdict]]
) -> pd.DataFrame | None:
    """What the artifact's figure shows, drawn at a profile ("" where no runs are needed, None where it is not drawn).

    Where that has no frame, the values of its claims, which ``judge`` gives. None without either.
    """
    if artifact is None or artifact.frame is None or profile is None:
        return values(judge())
    profile = profile or "smoke"  # any will do
    return artifact.frame(Evidence(source, artifact.runs(profile), profile))


def values(verdicts: Iterable[Verdict]) -> pd.DataFrame | None:
    """A row per printed value of each claim with ours and its interval; None without claims."""
    import pandas as pd

    rows = [row for verdict in verdicts for row in _values(verdict)]
    return pd.DataFrame(rows) if rows else None


def _values(verdict: Verdict) -> Iterator[dict[str, Any]]:
    """A row per value of a claim, one where nothing was measured."""
    claim, measured = verdict.claim, verdict.measured
    each = claim.rule == "within" or len(claim.printed) > 1
    for index, span in enumerate(measured.spans if measured else [(None, None, None)]):
        printed = claim.printed[index if each else 0] if len(claim.printed) > (index if each else 0) else None
        yield {
            "claim": claim.id,
            "says": claim.says,
            "printed": printed,
            "ours": span[0],
            "low": span[1],
            "high": span[2],
            "unit": claim.unit,
            "n": measured.n if measured else 0,
            "rests on": verdict.rests_on,
            "verdict": word(verdict),
        }
