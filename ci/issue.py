"""An issue on a red night, from what the night's job left, by a job on a hosted runner; the standard library alone.

    python -m ci.issue FOLDER [--dry]

FOLDER is the artifact of the finished job. Its files are data: of each, a few lines are quoted as text. One issue is
open at a time: a later red night comments on it. Calls ``gh``, which takes the repository and the right to write from
the job; ``--dry`` prints what it would say.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

TITLE = "The night's job is red"
MOST, LONGEST = 40, 200  # lines that are quoted, and characters of each


def lines(folder: Path) -> Iterator[str]:
    """A sentence for each red claim and each slowdown, at once or crept up, that the artifact names."""
    claims, gate = _read(folder, "claims.json"), _read(folder, "gate.json")
    for verdict in claims if isinstance(claims, list) else ():
        if isinstance(verdict, Mapping) and verdict.get("red"):
            yield f"{verdict.get('id')}: {verdict.get('verdict')}: {verdict.get('why')}"
    for kind in ("regressions", "creeping"):
        found = gate.get(kind) if isinstance(gate, Mapping) else None
        yield from map(str, found if isinstance(found, list) else ())


def _read(folder: Path, name: str) -> Any:
    """The first file of this name in a folder, or None where there is none that can be read."""
    for path in sorted(folder.rglob(name)):
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
    return None


def text(told: list[str], job: str) -> str:
    """The body of an issue: each line as code, so that nothing in it is a link, a mention or a picture."""
    plain = ["".join(c if c.isprintable() and c != "`" else "?" for c in line)[:LONGEST] for line in told]
    shown = [f"- `{line}`" for line in plain[:MOST]]
    rest = [f"- and {len(plain) - MOST} more"] if len(plain) > MOST else []
    why = "Its artifact names no red claim and no regression: a step failed or the machine was lost, see the log."
    none = [] if told else [why]
    return "\n".join([f"The job: {job}", "", *shown, *rest, *none]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dry", action="store_true", help="print the text and open nothing")
    chosen = parser.parse_args()
    given = os.environ.get
    job = f"{given('GITHUB_SERVER_URL')}/{given('GITHUB_REPOSITORY')}/actions/runs/{given('GITHUB_RUN_ID')}"
    body = text(list(lines(chosen.folder)), job)
    if chosen.dry:
        print(body)
        return 0
    gh = lambda *command: subprocess.run(["gh", "issue", *command], input=body, text=True, check=True)
    search = ["gh", "issue", "list", "--state", "open", "--search", f'"{TITLE}" in:title', "--json", "number,title"]
    there = json.loads(subprocess.run(search, capture_output=True, text=True, check=True).stdout)
    if open_ones := [str(issue["number"]) for issue in there if issue["title"] == TITLE]:
        gh("comment", open_ones[0], "--body-file", "-")
    else:
        gh("create", "--title", TITLE, "--body-file", "-")
    return 0


if __name__ == "__main__":
    sys.exit(main())
