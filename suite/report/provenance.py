"""What stands behind a page of results: the runs, the machines they ran on, the departures our code declares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.runs.archive import Runs
from suite.runs.store import Run, UnusableRun
from suite.spec import canonical

SHORT = 12  # letters of a revision that are shown
OF_THE_RUN = ("started", "telemetry", "processor_seconds")  # in its environment, but not of where it ran


@dataclass(frozen=True)
class DepartureLedger:
    """Departures that a reference implementation declares in its docstring."""

    file: str
    title: str
    parts: tuple[tuple[str, tuple[str, ...]], ...]  # heading ("from the paper"), items


def runs_and_environments(
    source: Runs, wanted: Iterable[str]
) -> tuple[dict[str, dict[str, Any]], list[dict[str, Any]]]:
    """The environments of the wanted runs by letter, and a row for each run: its ``fault``, or what it is."""
    letters: dict[str, str] = {}
    environments: dict[str, dict[str, Any]] = {}
    described: list[dict[str, Any]] = []
    for run_id in wanted:
        try:
            run = source.read(run_id)
        except (KeyError, UnusableRun) as error:
            absent = "named by a quantity, but not stored"
            described.append({"id": run_id, "fault": absent if isinstance(error, KeyError) else str(error)})
            continue
        facts = _facts(run.environment)
        letter = letters.setdefault(repr(facts), f"E{len(letters) + 1}")
        entry = environments.setdefault(letter, {"facts": facts, "runs": 0})
        entry["runs"] += 1
        described.append(
            {
                "id": run_id,
                "fault": "",
                "experiment": run.spec.experiment,
                "seed": run.spec.seed,
                "settings": ", ".join(f"{key}={canonical(value)}" for key, value in run.spec.settings.items()),
                "status": run.status,
                "note": str(run.outcome.get("note", "")),
                "environment": letter,
                "origin": origin([run]),  # which code made it, and on which day it began
            }
        )
    return environments, described


def _facts(environment: Any) -> list[tuple[str, str]]:
    """An environment record as rows; its shape is not trusted, since it may come from elsewhere."""
    record: Mapping[str, Any] = environment if isinstance(environment, dict) else {"environment": environment}
    rows = []
    for name, value in sorted(record.items()):
        if name in OF_THE_RUN:
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{key} {_plain(key, item)}" for key, item in sorted(value.items()))
        rows.append((name, str(value)))
    return rows


def _plain(name: str, value: Any) -> str:
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{value / 2**30:.3g} GiB"
    return str(value)


def departures(folder: Path) -> list[DepartureLedger]:
    """What each module of ``folder`` says under "Differs from ..." in its docstring; read as text, not imported.

    A part begins at such a line and holds what follows the colon and the list below it; it ends at the first
    paragraph that is no list item.
    """
    found = []
    for path in sorted(folder.glob("*.py")):
        text = _ROLE.sub(r"``\1``", ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
        if parts := list(_parts(text)):
            found.append(DepartureLedger(path.name, text.splitlines()[0].rstrip("."), tuple(parts)))
    return found


_ROLE = re.compile(r":\w+:`~?([^`]+)`")  # a cross-reference of Sphinx


def _parts(docstring: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for block in re.split(r"^(?=Differs from)", docstring, flags=re.MULTILINE)[1:]:
        heading, _, rest = block.partition(":")
        items: list[str] = []
        for paragraph in re.split(r"\n\s*\n", rest.strip()):
            if items and not paragraph.startswith("- "):
                break
            items.extend(" ".join(item.split()) for item in re.split(r"^- ", paragraph, flags=re.MULTILINE))
        yield " ".join(heading.split()), tuple(filter(None, items))


def revision_of(run: Run) -> str:
    """The revision that a run names, and whether the tree was changed; empty where it names none."""
    environment = run.environment
    revision = str(environment.get("revision", ""))[:SHORT]
    return f"{revision}, changed" if revision and environment.get("dirty") else revision


def origin(runs: Sequence[Run]) -> str:
    """By which revision these runs, all of one, were made, and when they began, as far as that was recorded."""
    days = sorted({day for run in runs if (day := day_of(run))})
    began = f"begun {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else "made before starts were recorded"
    revision = revision_of(runs[0])
    return f"by revision {revision}, {began}" if revision else f"code revision not recorded: {began}"


def day_of(run: Run) -> str:
    """The day on which a run began, as YYYY-MM-DD; empty where that was not recorded."""
    return str(run.environment.get("started", ""))[:10]
