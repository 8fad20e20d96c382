"""Writes the block of ``docs/your-own-training.md`` that shows what each example changes, from the files.

``python docs/make_own_training.py`` writes it; a test compares it with what this makes.
"""

from __future__ import annotations

import ast
import difflib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PLAIN = "mnist_plain.py"
PAGE = ROOT / "docs" / "your-own-training.md"
BEGINS, ENDS = "<!-- examples -->", "<!-- /examples -->"


class Change(NamedTuple):
    """An example, what it turns the plain script into, and the most lines that this may take."""

    file: str
    what: str
    most: int


CHANGES = (
    Change("mnist_sma.py", "synchronous model averaging, four learners; over two processes the same file", 3),
    Change("isgd_closure.py", "ISGD", 6),
    Change("torchrun_delayed.py", "gradients one update late over `torchrun`", 4),
    Change("softsync_cluster.py", "a parameter server and its learners", 6),
)


def code(file: str) -> list[str]:
    """The lines after the docstring without their indentation, which is not counted, and without empty ones."""
    text = (ROOT / "examples" / file).read_text()
    docstring = ast.parse(text).body[0]
    assert docstring.end_lineno is not None
    return [line.strip() for line in text.splitlines()[docstring.end_lineno :] if line.strip()]


def difference(file: str) -> tuple[int, list[str]]:
    """Lines changed (a line replaced counts once) from the plain script, and the diff's own lines."""
    plain, other = code(PLAIN), code(file)
    count, shown = 0, []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, plain, other, autojunk=False).get_opcodes():
        if tag != "equal":
            count += max(b - a, d - c)
            shown += [f"- {line}" for line in plain[a:b]] + [f"+ {line}" for line in other[c:d]]
    return count, shown


def block() -> str:
    """The table of changes and the differences themselves, in Markdown."""
    plain = (ROOT / "examples" / PLAIN).read_text().splitlines()
    text = [
        f"From `examples/{PLAIN}`, {len(plain)} lines of plain PyTorch:",
        "",
        "| example | turns it into | lines changed |",
        "|---|---|---|",
    ]
    found = {change: difference(change.file) for change in CHANGES}
    text += [f"| `{c.file}` | {c.what} | {count} |" for c, (count, _) in found.items()]
    text += ["", "Made from the files by `docs/make_own_training.py`; indentation is not counted."]
    for change, (_, lines) in found.items():
        text += ["", f"### `{change.file}`", "", "```diff", *lines, "```"]
    return "\n".join(text) + "\n"


def page() -> str:
    """The page with its block as it should be."""
    before, _, rest = PAGE.read_text().partition(BEGINS)
    _, _, after = rest.partition(ENDS)
    return f"{before}{BEGINS}\n{block()}{ENDS}{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
