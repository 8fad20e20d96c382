"""One artifact's files: its page, its figure as SVG, its numbers as CSV."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from suite.claims.judge import PROFILES, Verdict
from suite.papers.artifact import Artifact, Missing, Paper
from suite.papers.measurement import besides, measurements
from suite.report.curves import curves
from suite.report.data import encoded, values
from suite.report.drawing import DrawingError, drawing, image, naming, table_of
from suite.report.site.render import render
from suite.report.verdict_details import function_of, reasons, runs_and_environments, runs_behind
from suite.runs.archive import Runs
from suite.runs.run import UnusableRun


def files(
    paper: Paper,
    name: str,
    artifact: Artifact | None,
    found: list[Verdict],
    source: Runs,
    around: Mapping[str, Any],
) -> tuple[dict[str, bytes], str]:
    """Path in the site -> bytes, of the artifact called ``name``; ``around`` is what the page says of the others.

    The second value is the programming error that kept the artifact from being drawn, or nothing.
    """
    made: dict[str, bytes] = {}
    drawn, undrawn, fault = None, "" if artifact else "No experiment measures this artifact yet.", ""
    try:
        drawn = drawing(artifact, source) if artifact else None
        if drawn:
            made[f"{name}.svg"] = image(drawn, "svg")
        with naming(name):
            table = table_of(artifact, source, drawn, lambda: found)
    except (Missing, UnusableRun, DrawingError) as error:
        kinds = {Missing: "Not run", DrawingError: "Not drawn"}
        undrawn = f"{kinds.get(type(error), 'Not drawn, stored evidence cannot be used')}: {error}."
        fault = str(error) if isinstance(error, DrawingError) else ""
        drawn, made, table = None, {}, values(found)
    if table is not None:
        made[f"{name}.csv"] = encoded(table, "csv")
    used = {v.profile for v in found if v.profile} | ({drawn.profile} - {""} if drawn else set())
    environments, runs = runs_and_environments(source, _runs(artifact, found, used, source))
    page = render(
        "artifact.html.j2",
        depth=name.count("/"),
        paper=paper,
        artifact=artifact,
        name=name,
        claims=found,
        drawn=drawn,
        curves=curves(drawn.figure) if drawn else "",
        undrawn=undrawn,
        command=command(artifact, drawn.profile if drawn else "", used),
        besides=besides(name, measurements(artifact, source, claimed=False)) if artifact else [],
        reasons=reasons,
        runs_behind=lambda verdict: runs_behind(verdict, artifact, source) if artifact else (),
        table=f"{name}.csv" in made,
        environments=environments,
        runs=runs,
        module=module_of(artifact),
        **around,
    )
    return {f"{name}.html": page} | made, fault


def _runs(artifact: Artifact | None, found: list[Verdict], used: set[str], source: Runs) -> list[str]:
    """The runs that the page rests on: those that verdicts name, and the stored ones of the profiles in use."""
    if artifact is None:
        return []
    named = {run_id for v in found for m in (v.measured, v.proxy) if m for run_id in m.runs}
    planned = artifact.ids(*used) if used else set()
    return sorted(named | (planned & source.ids()))


def command(artifact: Artifact | None, profile: str, used: set[str]) -> str:
    """What a reader types to remake an artifact: at a profile, or without one at the largest that is in use.

    Where none is, it is the smallest at which the artifact has runs.
    """
    if artifact is None:
        return ""
    able = [name for name in PROFILES if artifact.runs(name)]
    profile = profile or next((name for name in reversed(able) if name in used), able[0] if able else "")
    last = f"sgd-suite {'figures' if artifact.draw else 'check'} {artifact.id}"
    return f"sgd-suite run {artifact.id} --profile {profile} && {last}" if profile else last


def module_of(artifact: Artifact | None) -> str:
    """The module that an artifact is written in; "" for one that nothing is written for."""
    if artifact is None:
        return ""
    measured = [each.value for each in artifact.quantities.values()]
    return next((function_of(each).__module__ for each in (artifact.draw, *measured) if each), "")
