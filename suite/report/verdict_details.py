"""What stands behind one verdict, in labelled lines: for ``explain`` and for the artifact's page alike."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from statistics import NormalDist
from typing import Any

from suite.claims.estimate import Estimate
from suite.claims.judge import PROFILES, Claim, Verdict
from suite.papers.artifact import Artifact
from suite.papers.panel import Panel
from suite.papers.register import last_line
from suite.report.numerals import departures, ours, printed, tolerance
from suite.report.provenance import day_of, origin, revision_of
from suite.runs.archive import Runs
from suite.runs.store import Run

CAUGHT = 0.8  # share of departures that a rule's power speaks of
FEW = 4  # names that are written out
METHODS = re.compile(r"\b(?:ea-sgd|s-sgd|isgd|sgd|agd|sma)\b")  # written in capitals where a group is named so


def reasons(verdict: Verdict, artifact: Artifact | None) -> Iterator[tuple[str, str]]:
    """Label and text: printed and ours, the rule, the grade, the register, the measure, the power."""
    rule, measured = verdict.claim, verdict.measured
    yield "printed", ", ".join(printed(rule)) or "no number"
    yield "ours", ", ".join(ours(measured, rule)) if measured else "not measured"
    yield "why", verdict.why
    yield "rule", f"{rule.rule} {rule.side}".rstrip() + f", {tolerance(rule) or 'no tolerance'}: {rule.because}"
    if rule.also:
        yield "also", "; ".join(rule.also)
    if rule.refuted_by:
        yield "refuted by", rule.refuted_by
    if rule.row_of:
        yield "row of", rule.row_of
    if verdict.rests_on:
        decides = "decides" if verdict.decides else "decides nothing"
        yield "rests on", f"{verdict.rests_on}{': ' + verdict.because if verdict.because else ''} ({decides})"
    if verdict.settings:
        count, _, lacking = verdict.settings.partition(", not ")
        yield "settings", f"{count} printed" + (f"; not printed: {lacking}" if lacking else "")
    yield from _registered(verdict)
    if isinstance(artifact, Panel) and rule.quantity in artifact.quantities:
        measure = function_of(artifact.quantities[rule.quantity].value)
        yield "measure", f"{measure.__module__}:{measure.__qualname__.partition('.<locals>')[0]}"
    if measured is not None:
        yield "power", f"catches a departure of {departures(power(rule, measured), rule.unit)} four times in five"


def power(claim: Claim, ours: Estimate) -> tuple[float, ...]:
    """For each value, the smallest departure from the rule that it would catch four times in five.

    In the value's unit: how far beyond what the claim prints the truth must lie for the whole interval to fall
    outside the tolerance with probability ``CAUGHT``, if measurements scatter as the interval at hand says (normal,
    95%). Infinite where the interval is; the tolerance itself where it has no width.
    """
    reach = NormalDist().inv_cdf(CAUGHT)
    tolerances: Iterable[float] = claim.tolerances(len(ours.values)) if claim.rule in ("within", "bound") else (0.0,)
    given = list(tolerances)
    given += [given[-1]] * (len(ours.values) - len(given))
    departures = []
    for (_, low, high), allowed in zip(ours.spans, given, strict=False):
        half = (high - low) / 2
        departures.append(allowed + half + reach * half / 1.96 if math.isfinite(half) else math.inf)
    return tuple(departures)


def function_of(function: Any) -> Any:
    """The function that a partial is made of."""
    return function_of(function.func) if isinstance(function, partial) else function


def runs_behind(verdict: Verdict, artifact: Artifact, source: Runs) -> Iterator[str]:
    """A line for all runs of one kind: how many, of which groups of the artifact and seeds, made by which code."""
    groups = groups_of(artifact, verdict.profile)
    kinds: dict[tuple[str, str, bool], list[Run]] = {}
    for run_id in verdict.measured.runs if verdict.measured else ():
        run = source.read(run_id)
        kinds.setdefault((run.spec.experiment, revision_of(run), bool(day_of(run))), []).append(run)
    for (experiment, _, _), runs in kinds.items():
        named = list(dict.fromkeys(groups.get(run.id, experiment) for run in runs))
        count = f"run {runs[0].id}" if len(runs) == 1 else f"{len(runs)} runs"
        yield f"{count}, {few_names(named)}, {seeds(run.spec.seed for run in runs)}; {origin(runs)}"


def groups_of(artifact: Artifact, profile: str = "") -> dict[str, str]:
    """By run id, the name of its group of the artifact as figures show it; a group at ``profile`` goes first."""
    found: dict[str, str] = {}
    for name in sorted(PROFILES, key=lambda each: each != profile):
        for group, specs in artifact.runs(name).items():
            for spec in specs:
                found.setdefault(spec.id, METHODS.sub(lambda method: method[0].upper(), group))
    return found


def few_names(names: Sequence[str]) -> str:
    """Names in a line: all of four, of more the first and the last."""
    if len(names) > FEW:
        return f"{len(names)} settings from {names[0]} to {names[-1]}"
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def seeds(used: Iterable[int]) -> str:
    """Seeds in a line, neighbours as a range: ``seeds 0-3, 7``."""
    ordered = sorted(set(used))
    starts = [seed for seed in ordered if seed - 1 not in ordered]
    ends = [seed for seed in ordered if seed + 1 not in ordered]
    ranges = [str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True)]
    return f"seed{'s' if len(ordered) > 1 else ''} {', '.join(ranges)}"


def _registered(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """When the present rule was registered, and what it says where another one decides."""
    line = last_line(verdict.claim)
    yield "register", f"{verdict.order or 'registered'}; {line}" if line else "no line"
    if verdict.family:
        yield "family", f"corrected with {verdict.family - 1} other claims on the same runs (Holm)"
    if later := verdict.exploratory:
        shown = ", ".join(ours(later.measured, later.claim)) if later.measured else ""
        yield "exploratory", f"{later.verdict} {shown}".rstrip()
