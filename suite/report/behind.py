"""What stands behind one verdict, in labelled lines: for ``explain`` and for the artifact's page alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from suite.claims.judge import Verdict
from suite.papers.artifact import Artifact
from suite.papers.register import last_line
from suite.papers.trials import Trial, counted, power, trials
from suite.papers.verdicts import measures_of
from suite.report.numerals import ours, printed, tolerance
from suite.runs.archive import Runs


def reasons(verdict: Verdict, artifact: Artifact | None) -> Iterator[tuple[str, str]]:
    """Label and text: printed and ours, the rule, the grade, the register, the measure, the power."""
    rule, measured = verdict.claim, verdict.measured
    yield "printed", ", ".join(printed(rule)) or "no number"
    yield "ours", ", ".join(ours(measured, rule)) if measured else "not measured"
    yield "why", verdict.why
    yield "rule", f"{rule.rule} {rule.side}".rstrip() + f", {tolerance(rule) or 'no tolerance'}: {rule.because}"
    if verdict.rests_on:
        decides = "decides" if verdict.decides else "decides nothing"
        yield "rests on", f"{verdict.rests_on}{': ' + verdict.because if verdict.because else ''} ({decides})"
    yield from _registered(verdict)
    for function in measures_of(rule.quantity, artifact) if artifact else ():
        yield "measure", f"{function.__module__}:{function.__qualname__.partition('.<locals>')[0]}"
    if measured is not None:
        departures = ", ".join(f"{p:.3g}" for p in power(rule, measured))
        yield "power", f"catches a departure of {departures} {rule.unit}".rstrip() + " four times in five"


def tried(verdict: Verdict, artifact: Artifact, source: Runs, cache: dict[Any, Any] | None = None) -> list[Trial]:
    """The claim in its worlds; nothing for one that is not counted. ``cache`` as in ``counterfeits.trials``."""
    return trials(verdict, artifact, source, cache) if counted(verdict) else []


def _registered(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """When the present rule was registered, and what it says where another one decides."""
    line = last_line(verdict.claim)
    yield "register", f"{verdict.order or 'registered'}; {line}" if line else "no line"
    if later := verdict.exploratory:
        shown = ", ".join(ours(later.measured, later.claim)) if later.measured else ""
        yield "exploratory", f"{later.verdict} {shown}".rstrip()
