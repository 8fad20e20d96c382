"""What a job found, for whoever looks at it: the step summary, and an annotation per red claim or regression.

    python -m ci.summary [--claims report/claims.json] [--gate report/guard/gate.json]

Reads what ``check --json`` and ``ci.guard`` wrote; a file that is not there is said to be missing. The text goes to
the file that ``GITHUB_STEP_SUMMARY`` names, or to standard output. Exit 1 when something is red.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from suite.claims.judge import VERDICTS
from suite.speed import gate


def of_claims(verdicts: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """How many claims have which verdict, and an annotation for each red one."""
    counts = Counter(verdict["verdict"] for verdict in verdicts)
    told = ", ".join(f"{counts[word]} {word}" for word in VERDICTS if counts[word])
    return told, [annotation(v["id"], f"{v['verdict']}: {v['why']}") for v in verdicts if v["red"]]


def of_gate(found: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What the gate says, an annotation for each slowdown; of a first session, why nothing was compared."""
    if told := found.get("first"):
        return f"**Nothing was compared.** {told}.", []
    told = "\n".join(gate.lines(found))
    return f"```\n{told}\n```", [annotation("slower", line) for line in (*found["regressions"], *found["creeping"])]


def annotation(title: str, text: str) -> str:
    """A workflow command that shows an error; escaped, so that no text ends it and begins another."""
    plain = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    name = title.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C")
    return f"::error title={name}::{plain}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=Path)
    parser.add_argument("--gate", type=Path)
    chosen = parser.parse_args(arguments)
    parts, red = [], []
    for title, path, tell in (("Claims", chosen.claims, of_claims), ("Speed", chosen.gate, of_gate)):
        if path is None:
            continue
        parts.append(f"## {title}")
        if path.exists():
            shown, annotations = tell(json.loads(path.read_text(encoding="utf-8")))
            parts.append(shown)
            red += annotations
        else:
            parts.append(f"{path} was not written: see the job's log.")
    text = "\n\n".join(parts) + "\n"
    if place := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(place, "a", encoding="utf-8") as stream:
            stream.write(text)
    else:
        print(text)
    print("\n".join(red))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
