"""The pages' templates: everything is escaped, nothing is inserted as markup."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from suite.claims.board import MEANINGS as GRADE_MEANINGS
from suite.claims.board import NOTHING, WORDS, board, word
from suite.claims.judge import NEEDS, VERDICTS
from suite.claims.measured import GRADES
from suite.report.page import MEANINGS, PROFILE_MEANINGS, SHORT, SYMBOLS
from suite.report.readme import few, headline
from suite.report.templates import engine

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
ASSETS = ("site.css", "site.js")


@cache
def _engine() -> Environment:
    made = engine(HERE, {"few": few, "link": quote})
    made.globals |= {
        "board_of": board,
        "headline": headline,
        "word_of": word,
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
