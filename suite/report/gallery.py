"""A page with every figure, for the documentation: ``python -m suite.report.gallery docs``.

Writes ``gallery.md`` and its pictures below the folder. Both are made from the committed evidence and not committed.
Exit 1 when the code that draws an artifact fails, after all others are drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from suite.papers.artifact import Artifact, Missing
from suite.papers.catalogue import PAPERS, paper
from suite.papers.evidence import committed
from suite.report.drawing import DrawingError, drawing, file_name, image
from suite.runs.archive import Layered, Runs

DPI = 80  # thumbnails that can be read


def page(names: Sequence[str], source: Runs, pictures: Path, tell: Callable[[str], None] = lambda fault: None) -> str:
    """The gallery of these papers as Markdown, beside whose file ``pictures`` lies; draws what can be drawn.

    ``tell`` is told of each artifact that a programming error kept from being drawn.
    """
    pictures.mkdir(parents=True, exist_ok=True)
    parts = ["# All figures", "Drawn from the committed evidence; the line at a figure's foot says what it rests on."]
    for name in names:
        parts.append(f"## {paper(name).title}")
        lacking = []
        for artifact in paper(name).artifacts:
            try:
                parts += list(_entry(artifact, source, pictures))
            except Missing as error:
                lacking.append(f"`{artifact.id}` ({artifact.title}): {error}")
            except DrawingError as error:
                tell(str(error))
        if lacking:
            parts += ["Not drawn, for want of runs:", "\n".join(f"- {line}" for line in lacking)]
    return "\n\n".join(parts) + "\n"


def _entry(artifact: Artifact, source: Runs, pictures: Path) -> Iterator[str]:
    if (drawn := drawing(artifact, source)) is None:
        return
    file = pictures / file_name(artifact.id, "png")
    file.write_bytes(image(drawn, "png", DPI))
    yield f"### {artifact.id}"
    yield f"{artifact.title}. `sgd-suite figures {artifact.id}`"
    yield f"![{artifact.shows}]({pictures.name}/{file.name})"


def main(arguments: Sequence[str] | None = None) -> int:
    folder = Path((arguments or sys.argv[1:])[0])
    faults: list[str] = []
    text = page(list(PAPERS), Layered(committed()), folder / "gallery", faults.append)
    (folder / "gallery.md").write_text(text, encoding="utf-8")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
