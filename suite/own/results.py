"""Stored runs as one tidy table, by selector: for notebooks, and for figures that nobody has drawn yet.

The table has a row per number, so that any tool can filter, group and draw without knowing the suite. Columns:
``run``, ``experiment``, ``seed``, ``settings`` (canonical JSON), ``status``, ``source``, ``device``, ``table``
("results", or the name of a curve), ``row`` (from 0), ``name``, ``value`` (float64), ``text`` (of what is no number).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from suite.claims.judge import PROFILES
from suite.lazy import pd
from suite.own.variation import written
from suite.papers.catalogue import of_user, select, with_committed
from suite.runs.run import Run, StoreError
from suite.spec import canonical

PLACE = ("artifact", "profile", "group")  # where an artifact has a run


def results(
    selector: str | Iterable[str] | None = None, *, store: str | Path | None = None, profile: str | None = None
) -> pd.DataFrame:
    """All results and curves of stored runs in one table, a row for every number.

    Args:
        selector: A paper, an artifact, a glob of artifacts, or several of them: their runs, yours and committed ones.
            None means every run of your store, those of no artifact included, as ``vary`` makes them.
        store: Folder or exported file of your runs; by default ``runs.store`` here.
        profile: Only runs of this profile; by default of all.

    Returns:
        Columns ``artifact``, ``profile``, ``group`` (of a selector), ``run``, ``experiment``, ``seed``, ``status``, a
        column for every setting in which the runs differ (``algorithm.zeta``), then ``table`` ("results" or the name
        of a curve), ``row``, ``name``, ``value`` (float64), ``text`` (of what is no number). A run that several
        artifacts show has rows for each.

    Raises:
        SelectorError: A selector that means nothing.
        StoreError: There is no such store, or it holds none of these runs.

    Example:
        One curve per method and seed::

            found = suite.results("isgd/fig5a", profile="paper")
            curves = found[found.table == "evaluations"].pivot(
                index=["group", "seed", "row"], columns="name", values="value"
            )
            seaborn.lineplot(curves, x="update", y="test_error", hue="group")
    """
    place = None if store is None else Path(store)
    if selector is None:
        source = of_user(place)
        runs = {run_id: source.read(run_id) for run_id in sorted(source.ids())}
        shown = pd.DataFrame({"run": list(runs)})
    else:
        source = with_committed(place)
        stored = source.ids()
        wanted = [
            (artifact.id, each, group, spec.id)
            for _, artifacts in select([selector] if isinstance(selector, str) else selector)
            for artifact in artifacts
            for each in ([profile] if profile else PROFILES)
            for group, specs in artifact.runs(each).items()
            for spec in specs
            if spec.id in stored
        ]
        shown = pd.DataFrame(wanted, columns=[*PLACE, "run"])
        runs = {run_id: source.read(run_id) for run_id in dict.fromkeys(shown["run"])}
    if not runs:
        raise StoreError(f"no run of {selector or 'anything'} is stored: run it first")
    numbers = tidy(runs.values()).drop(columns=["settings", "source", "device"])
    return shown.merge(settings(runs.values()), on="run").merge(numbers, on="run")


def settings(runs: Iterable[Run]) -> pd.DataFrame:
    """A row per run: its id, and every setting in which the runs differ; nothing where a run has no such setting."""
    table = pd.DataFrame([{"run": run.id, **written(run.spec)} for run in runs])
    differ = [name for name in table.columns[1:] if table[name].astype(str).nunique() > 1]
    taken = {"seed", "status", "table", "row", "name", "value", "text", "experiment", *PLACE}
    return table[["run", *differ]].rename(columns={name: f"settings.{name}" for name in differ if name in taken})


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
