"""The pages' templates: everything is escaped, nothing is inserted as markup, an unknown name is an error."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from suite.claims.board import MEANINGS as GRADE_MEANINGS
from suite.claims.board import NOTHING, WORDS, board, in_full
from suite.claims.estimate import GRADES
from suite.claims.judge import NEEDS, VERDICTS
from suite.report.numerals import compared, few, ours, printed, tolerance, values
from suite.report.readme import headline
from suite.report.verdict_details import shown

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
ASSETS = ("site.css", "site.js")
INDEX = "index.html"
SYMBOLS = dict(zip(VERDICTS, ("✓", "✗", "≈", "○", "=", "?", "⌂", "!"), strict=True))
MEANINGS = {
    "reproduced": "Our whole interval satisfies the claim's rule.",
    "not reproduced": "Our whole interval violates the rule. What the failure teaches stands beside it as a finding.",
    "inconclusive": "Our interval straddles the bound: neither holds nor fails at the confidence we ask for.",
    "not run": "The evidence that would decide the claim is not stored; the row says what is missing.",
    "no visible difference": "Our whole interval lies within the margin, fixed before, that counts as no difference.",
    "undetermined": "The quantity depends on a setting that the paper does not print.",
    "bound to the paper's machine": "The quantity belongs to the paper's own machine: no other can decide it.",
    "paper contradicts itself": "Exact arithmetic on other numbers printed in the same paper excludes this one.",
}
PROFILE_MEANINGS = {
    "smoke": "Embedded data, minutes on two processor cores. Decides no empirical claim.",
    "reduced": "The papers' data sets with fewer epochs and seeds. Decides claims that speak of that size.",
    "paper": "The papers' settings. Decides what the papers claim, where nothing printed is contradicted.",
}
SHORT = 8  # digits of a run id shown; the whole id is in the table of runs
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def without_controls(value: Any) -> Any:
    """A value without the characters that are obeyed rather than shown: a terminal's, and those that turn a text.

    Notes and names of machines come from files that anybody may have written.
    """
    if isinstance(value, str) and CONTROLS.search(value):
        return type(value)(CONTROLS.sub("", value))
    return value


@cache
def _engine() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"ours": ours, "printed": printed, "compared": compared, "tolerance": tolerance, "values": values}
    made.filters |= {"among": lambda found, order: sorted(set(found) & set(order), key=list(order).index)}
    made.filters |= {"sum_of": Counter.total, "few": few, "link": quote, "shown": shown}
    made.globals |= {
        "board_of": board,
        "headline": headline,
        "word_of": in_full,
        "words": list(WORDS.values()),
        "symbols": SYMBOLS,
        "verdict_names": VERDICTS,
        "grade_names": (*GRADES, NOTHING),
        "meanings": MEANINGS,
        "grades": GRADE_MEANINGS,
        "profiles": PROFILE_MEANINGS,
        "needs": NEEDS,
        "nothing": NOTHING,
        "short": SHORT,
    }
    return made


def render(template: str, **context: Any) -> bytes:
    """A page; ``depth`` is the number of folders that it lies below the index."""
    context["root"] = "../" * context.get("depth", 0)
    return _engine().get_template(template).render(**context).encode()
