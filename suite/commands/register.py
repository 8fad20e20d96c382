"""Record the rules and grids of today, before the runs that they judge."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from suite.clock import counted
from suite.commands import options
from suite.commands.refresh import homes_of, unexplained
from suite.papers.catalogue import committed, paper
from suite.papers.register import RegisterError, append, changes
from suite.report import data, readme
from suite.runs.archive import Layered


def command(
    papers: options.Papers = None,
    *,
    because: Annotated[str, typer.Option("--because", help="why rules or runs changed")],
) -> None:
    if not because.strip():
        raise RegisterError("--because is empty; say why rules or runs changed: no line is taken back")
    date = datetime.now(UTC).isoformat(timespec="seconds")
    for home, names in homes_of(papers or []).items():
        lines = [line for name in names for line in changes(paper(name), date, because)]
        place = append(home, lines)  # first, since the number of a rule that is not registered may be another one
        if (path := home / data.FILE).exists():
            before = data.read(path.read_text(encoding="utf-8"))
            moved = unexplained(home, before, data.rows(readme.judged_of(names, Layered(committed()))))
            explained = [{"claim": c, "date": date, "because": because, "moved": moved[c]} for c in moved]
            append(home, explained)
            lines += explained
        if lines:
            kinds = {"rule": "rule", "grid": "added", "number": "moved"}
            counts = {kind: sum(key in line for line in lines) for kind, key in kinds.items()}
            counts["sentence"] = sum(len(line.get("worded", ())) for line in lines)
            told = ", ".join(counted(count, kind) for kind, count in counts.items() if count)
            print(f"{place}: {told}")
        else:
            print(f"{home.name}: the register is up to date")
