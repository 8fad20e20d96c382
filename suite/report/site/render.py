"""The pages' templates: everything is escaped, nothing is inserted as markup."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from suite.claims.board import GRADES, NOTHING, WORDS, board, word
from suite.claims.board import MEANINGS as GRADE_MEANINGS
from suite.claims.judge import NEEDS, VERDICTS
from suite.report.numerals import ours, printed, tolerance, values
from suite.report.page import MEANINGS, PROFILE_MEANINGS, SHORT, SYMBOLS
from suite.report.readme import few

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
ASSETS = ("site.css", "site.js")
NEED_MEANINGS = dict(
    zip(
        NEEDS,
        (
            "arithmetic or an exact check",
            "processor cores; minutes to hours",
            "a GPU, and the paper's data set",
            "a GPU, and ImageNet",
            "several GPUs in one machine",
            "several machines",
        ),
        strict=True,
    )
)


@cache
def _engine() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    engine = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.filters |= {
        "ours": ours,
        "printed": printed,
        "tolerance": tolerance,
        "values": values,
        "few": few,
        "link": quote,
        "sum_of": Counter.total,
    }
    engine.globals |= {
        "board_of": board,
        "word_of": word,
        "words": list(WORDS.values()),
        "symbols": SYMBOLS,
        "verdict_names": VERDICTS,
        "grade_names": (*GRADES, NOTHING),
        "meanings": MEANINGS,
        "grades": GRADE_MEANINGS,
        "profiles": PROFILE_MEANINGS,
        "needs": NEED_MEANINGS,
        "nothing": NOTHING,
        "short": SHORT,
    }
    return engine


def render(template: str, **context: Any) -> bytes:
    """A page; ``depth`` is the number of folders that it lies below the index."""
    context["root"] = "../" * context.get("depth", 0)
    return _engine().get_template(template).render(**context).encode()
