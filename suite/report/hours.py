"""What runs were planned to take and took: ``sgd-suite plan`` held against the processors of those who ran.

Only runs on a CPU that counted their processor seconds have a row; evidence from before they did has none to tell,
and of runs on several processes those of the workers are not counted. A plan says nothing of a GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from suite.papers.catalogue import experiment
from suite.runs.store import Run

HOURS = "hours.csv"
BY = ["experiment", "network", "data", "width", "machine"]


def hours(runs: Iterable[Run]) -> str:
    """CSV: per experiment, network, data set, runs computed together and machine, hours planned and spent.

    ``planned_hours`` are the plan's, of one core of the reference CPU without a calibration; ``spent_hours`` those of
    a processor, all sessions of a run together; ``ratio`` is spent over planned. Empty without any such run.
    """
    import pandas as pd

    rows = []
    for run in runs:
        spent, settings = run.environment.get("processor_seconds"), run.spec.settings
        execution = run.environment["execution"]
        if not spent or "processes" in settings or execution.get("device") == "cuda":
            continue
        rows.append(
            {
                "experiment": run.spec.experiment,
                "network": _name(settings.get("model")),
                "data": _name(settings.get("data", settings.get("corpus"))),
                "width": execution.get("width", 1),
                "machine": run.environment["machine"].get("cpu", ""),
                "planned": experiment(run.spec.experiment).seconds(run.spec) / 3600,
                "spent": spent / 3600,
            }
        )
    if not rows:
        return ""
    table = pd.DataFrame(rows).groupby(BY, as_index=False)
    found = table.agg(runs=("spent", "size"), planned_hours=("planned", "sum"), spent_hours=("spent", "sum"))
    found["ratio"] = found["spent_hours"] / found["planned_hours"]
    return str(found.to_csv(index=False, lineterminator="\n", float_format="%.3g"))


def _name(setting: Any) -> str:
    """A setting's name, or its sizes where it has none."""
    if not isinstance(setting, Mapping):
        return str(setting or "")
    return str(setting["name"] if "name" in setting else " ".join(f"{key} {setting[key]}" for key in sorted(setting)))
