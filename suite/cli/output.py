"""Where results go, and which runs they are made from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def say(text: str) -> None:
    """One line on stderr; what a terminal would obey rather than show is left out."""
    print("".join(c for c in text if c.isprintable()), file=sys.stderr)


def emit(document: Any) -> None:
    print(json.dumps(document, indent=1))


def source(store: Path | None, only_mine: bool = False) -> Any:
    """The store to judge from, with the committed evidence beneath it unless the user's own runs alone count."""
    from suite.papers.evidence import of_user, with_committed

    return of_user(store) if only_mine else with_committed(store)
