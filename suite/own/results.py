"""Stored runs as one tidy table, by selector: for notebooks, and for figures that nobody has drawn yet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from suite.claims.judge import PROFILES
from suite.lazy import pd
from suite.own.variation import written
from suite.papers.catalogue import of_user, select, with_committed
from suite.runs.long_table import tidy
from suite.runs.run import Run, StoreError

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
