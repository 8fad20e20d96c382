"""What became of the claims that counted as empirical before grades were derived: one line each, generated.

``before_grades.json`` beside the published values holds their verdicts as they stood then; ``changes.md`` says what
each is now and why. ``python -m suite.report.changes`` exits with 1 when it is out of date; ``--write`` renews it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from suite.claims.board import NOTHING, Verdict, word
from suite.papers.evidence import committed
from suite.papers.registry import homes
from suite.report.readme import judged
from suite.runs.archive import Layered

TITLE = """# What the empirical claims rest on

Until grades were derived from the runs, a claim counted as empirical when something had to be computed for it. Every
such claim stands here with its verdict of then, its verdict now and what that rests on. Generated.
"""


def changes(before: Mapping[str, str], verdicts: Iterable[Verdict]) -> str:
    """The table as Markdown, after its totals. Raises KeyError for a claim of before that is no longer published."""
    now = {verdict.claim.id: verdict for verdict in verdicts}
    rows, totals = [], Counter[tuple[str, str]]()
    for claim_id, was in before.items():
        verdict = now[claim_id]
        grade = verdict.rests_on or NOTHING
        why = verdict.because if verdict.rests_on else verdict.why
        totals[was, grade] += 1
        rows.append(f"| `{claim_id}` | {was} | {word(verdict)} | {grade} | {why.replace('|', '/')} |")
    return "\n".join(
        [TITLE, *_totals(totals), "", "| claim | was | is | rests on | why |", "|---|---|---|---|---|", *rows, ""]
    )


def _totals(totals: Counter[tuple[str, str]]) -> list[str]:
    """How many of each verdict of before rest on what now."""
    was = list(dict.fromkeys(verdict for verdict, _ in totals))
    return [
        f"- {verdict}, {sum(n for (old, _), n in totals.items() if old == verdict)}: "
        + ", ".join(f"{n} {grade}" for (old, grade), n in sorted(totals.items()) if old == verdict)
        for verdict in was
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m suite.report.changes", description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the file instead of comparing it")
    chosen = parser.parse_args(arguments)
    published = homes()[0] / "published"
    text = changes(json.loads((published / "before_grades.json").read_text()), judged(Layered(committed())))
    path = published / "changes.md"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if chosen.write:
        path.write_text(text, encoding="utf-8")
    elif text != old:
        print(f"{path.name} is out of date: python -m suite.report.changes --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
