"""Runs as one tidy table: a row per number, so that any tool can filter, group and draw without knowing the suite.

Columns: ``run``, ``experiment``, ``seed``, ``settings`` (canonical JSON), ``status``, ``source``, ``device``,
``table`` ("results", or the name of a curve), ``row`` (from 0), ``name``, ``value`` (float64), ``text`` (of what is
no number).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from suite.lazy import pd
from suite.runs.run import Run
from suite.spec import canonical


def tidy(runs: Iterable[Run]) -> pd.DataFrame:
    """All results and curves of the runs, long. Raises DamagedRun for a table that cannot be read."""
    parts = [part for run in runs for part in _parts(run)]
    if not parts:
        raise ValueError("no runs, no table")
    found = pd.concat(parts, ignore_index=True)
    repeated = ["run", "experiment", "settings", "status", "source", "device", "table", "name"]
    return found.astype(dict.fromkeys(repeated, "category"))


def _parts(run: Run) -> Iterator[pd.DataFrame]:
    about = {
        "run": run.id,
        "experiment": run.spec.experiment,
        "seed": run.spec.seed,
        "settings": canonical(run.spec.settings),
        "status": run.status,
        "source": str(run.environment.get("source", "")),
        "device": str(run.environment.get("device", {}).get("device", "") if "device" in run.environment else ""),
    }
    tables = {"results": pd.DataFrame({name: [_plain(value)] for name, value in run.results.items()})}
    for name, table in (tables | {name: run.curve(name) for name in run.curves}).items():
        for column in table.columns:
            values = table[column]
            number = pd.api.types.is_numeric_dtype(values)
            text = [None] * len(values) if number else values.astype(str).tolist()
            yield pd.DataFrame(
                {
                    **about,
                    "table": name,
                    "row": range(len(values)),
                    "name": str(column),
                    "value": values.astype("float64") if number else float("nan"),
                    "text": pd.Series(text, dtype="object"),
                }
            )


def _plain(value: Any) -> Any:
    """A number or a text; anything else as JSON."""
    return value if isinstance(value, bool | int | float | str) else json.dumps(value)


def by_repeat(seconds: Mapping[Any, list[float]], name: str) -> pd.DataFrame:
    """Seconds of sides that were timed in turns: a row for each repeat and side, whose column bears this name."""
    wide = pd.DataFrame(seconds).rename_axis("repeat")
    return wide.melt(var_name=name, value_name="seconds", ignore_index=False).reset_index()
