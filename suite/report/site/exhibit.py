"""One artifact's files: its page, its figure and the first panel of it as SVG, its numbers as CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from suite.claims.estimate import Estimate
from suite.claims.judge import PROFILES, Verdict
from suite.papers.artifact import Artifact, Missing, Paper
from suite.papers.measurement import besides, measurements
from suite.papers.panel import Panel
from suite.report.data import encoded, table_of
from suite.report.drawing import Drawing, DrawingError, drawing, whole_and_panel
from suite.report.provenance import runs_and_environments
from suite.report.site.render import render
from suite.report.verdict_details import function_of, reasons, runs_behind
from suite.runs.archive import Runs
from suite.runs.store import UnusableRun


@dataclass(frozen=True)
class Judged:
    """A claim on its artifact's page: ``facts`` are label and text, ``runs`` lines."""

    verdict: Verdict
    facts: list[tuple[str, str]]
    runs: list[str]

    @property
    def name(self) -> str:
        return self.verdict.claim.id.rpartition("/")[2]


@dataclass
class Shown:
    """One artifact on the page. ``drawn`` is its figure, ``undrawn`` says why there is none.

    ``fault`` is the programming error that kept it from being drawn, if there was one.
    """

    id: str
    title: str
    verdicts: list[Verdict]
    drawn: Drawing | None = None
    alt: str = ""
    profiled: bool = False  # whether any profile runs something for it
    undrawn: str = ""
    fault: str = ""
    command: str = ""
    runs: list[str] = field(default_factory=list)
    besides: list[tuple[str, str, Estimate]] = field(default_factory=list)  # name, profile and value of others

    def not_drawn(self, error: DrawingError) -> None:
        self.drawn, self.fault, self.undrawn = None, str(error), f"Not drawn: {error}."


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
    shown = show(name, artifact, found, source)
    made: dict[str, bytes] = {}
    if shown.drawn:
        try:
            made[f"{name}.svg"], made[f"{name}.panel.svg"] = whole_and_panel(shown.drawn)
        except DrawingError as error:
            shown.not_drawn(error)
    try:
        table = table_of(artifact, source, shown.drawn, lambda: shown.verdicts)
    except DrawingError as error:
        table = None
        shown.not_drawn(error)
    if table is not None:
        made[f"{name}.csv"] = encoded(table, "csv")
    environments, runs = runs_and_environments(source, shown.runs)
    page = render(
        "artifact.html.j2",
        depth=name.count("/"),
        paper=paper,
        artifact=artifact,
        shown=shown,
        claims=list(_judged(found, artifact, source)),
        width=round(96 * float(shown.drawn.figure.get_figwidth())) if shown.drawn else 0,
        height=round(96 * float(shown.drawn.figure.get_figheight())) if shown.drawn else 0,
        table=f"{name}.csv" in made,
        framed=artifact is not None and artifact.frame is not None and shown.drawn is not None,
        environments=environments,
        runs=runs,
        module=module_of(artifact),
        **around,
    )
    return {f"{name}.html": page} | made, shown.fault


def show(name: str, artifact: Artifact | None, found: list[Verdict], source: Runs) -> Shown:
    """An artifact with its drawing if its runs are stored, its command, and the stored runs it rests on."""
    if artifact is None:
        return Shown(name, name.partition("/")[2], found, undrawn="No experiment measures this artifact yet.")
    others = besides(name, measurements(artifact, source))
    shown = Shown(name, artifact.title, found, alt=artifact.shows, besides=others)
    shown.profiled = any(artifact.runs(p) for p in PROFILES)
    used = {v.profile for v in found if v.profile}
    drawn = None
    try:
        shown.drawn = drawn = drawing(artifact, source)
    except Missing as error:
        shown.undrawn = f"Not run: {error}."
    except DrawingError as error:
        shown.not_drawn(error)
    except UnusableRun as error:
        shown.undrawn = f"Not drawn, stored evidence cannot be used: {error}."
    if drawn:
        used |= {drawn.profile} - {""}
    named = {run_id for v in found for m in (v.measured, v.proxy) if m for run_id in m.runs}
    planned = artifact.ids(*used) if used else set()
    shown.runs = sorted(named | (planned & source.ids()))
    shown.command = command(artifact, drawn.profile if drawn and drawn.profile else _profile(artifact, used))
    return shown


def _profile(artifact: Artifact, used: Iterable[str]) -> str:
    """The largest profile in use, else the smallest at which the artifact has runs; "" when it never has any."""
    in_use = [p for p in PROFILES if p in set(used) and artifact.runs(p)]
    return in_use[-1] if in_use else next((p for p in PROFILES if artifact.runs(p)), "")


def command(artifact: Artifact, profile: str) -> str:
    """What a reader types to remake an artifact."""
    last = f"sgd-suite {'figures' if artifact.draw else 'check'} {artifact.id}"
    return f"sgd-suite run {artifact.id} --profile {profile} && {last}" if profile else last


def _judged(found: list[Verdict], artifact: Artifact | None, source: Runs) -> Iterator[Judged]:
    for verdict in found:
        behind = list(runs_behind(verdict, artifact, source)) if artifact else []
        yield Judged(verdict, list(reasons(verdict, artifact)), behind)


def module_of(artifact: Artifact | None) -> str:
    """The module that an artifact is written in; "" for one that nothing is written for."""
    measured = [each.value for each in artifact.quantities.values()] if isinstance(artifact, Panel) else []
    drawn = [artifact.draw] if artifact and artifact.draw else []
    return next((function_of(each).__module__ for each in (*drawn, *measured)), "")


def text_of(module: str) -> str:
    """The text of an imported module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).read_text(encoding="utf-8") if file else ""
