"""What stands behind one verdict, in labelled lines: for ``explain`` and for the artifact's page alike.

Behind a page of results stand the runs, the machines they ran on, the departures our code declares.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Any

from suite.claims.board import proxy_says
from suite.claims.estimate import Estimate
from suite.claims.judge import PROFILES, Claim, Verdict
from suite.papers.artifact import Artifact
from suite.papers.register import computed_by, last_line, later_runs
from suite.report.numerals import basis, compared, departures, few, ours, tolerance
from suite.runs.archive import Runs
from suite.runs.run import Run, UnusableRun
from suite.spec import canonical

SHORT = 12  # letters of a revision that are shown
OF_THE_RUN = ("started", "telemetry", "processor_seconds")  # in its environment, but not of where it ran


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
            sizes = {key: size for key, size in value.items() if key.endswith("_bytes") and isinstance(size, int)}
            shown = value | {key: f"{size / 2**30:.3g} GiB" for key, size in sizes.items()}
            value = ", ".join(f"{key} {item}" for key, item in sorted(shown.items()))
        rows.append((name, str(value)))
    return rows


def departure_ledgers(folder: Path) -> list[dict[str, Any]]:
    """What each module of ``folder`` says under "Differs from ..." in its docstring; read as text, not imported.

    An entry has its ``file``, its ``title`` and its ``parts``: heading ("Differs from the paper") and items. A part
    begins at such a line and holds what follows the colon and the list below it; it ends at the first paragraph that
    is no list item.
    """
    found = []
    for path in sorted(folder.glob("*.py")):
        text = _ROLE.sub(r"``\1``", ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
        if parts := list(_parts(text)):
            found.append({"file": path.name, "title": text.splitlines()[0].rstrip("."), "parts": parts})
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
    """The revision that computed a run, or that its changed tree was of; empty where it names none."""
    named = str(run.environment.get("revision", ""))[:SHORT]
    return computed_by(run.environment)[:SHORT] or (f"{named} with uncommitted changes" if named else "")


def origin(runs: Sequence[Run]) -> str:
    """By which revision these runs, all of one, were made, and when they began, as far as that was recorded."""
    days = sorted({day for run in runs if (day := day_of(run))})
    began = f"begun {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else "made before starts were recorded"
    revision = revision_of(runs[0])
    return f"by revision {revision}, {began}" if revision else f"code revision not recorded: {began}"


def day_of(run: Run) -> str:
    """The day on which a run began, as YYYY-MM-DD; empty where that was not recorded."""
    return str(run.environment.get("started", ""))[:10]


CAUGHT = 0.8  # share of departures that a rule's power speaks of
FEW = 4  # names that are written out
METHODS = re.compile(r"\b(?:ea-sgd|s-sgd|isgd|sgd|agd|sma)\b")  # written in capitals where a group is named so


def shown(verdict: Verdict) -> str:
    """Our value with its interval and unit; one that decides nothing says so."""
    if verdict.measured:
        return few(ours(verdict.measured, verdict.claim))
    if not verdict.proxy:
        return ""
    speaks = proxy_says(verdict)
    label = "shown only" if speaks == "number" else f"proxy, {speaks}"
    told = ", ".join(filter(None, (label, verdict.proxy.part)))
    return f"{told}: {few(ours(verdict.proxy, verdict.claim))}"


def reasons(verdict: Verdict, artifact: Artifact) -> Iterator[tuple[str, str]]:
    """Label and text: what is compared and ours, the rule, the grade, the register, the measure, the power."""
    rule, measured = verdict.claim, verdict.measured
    yield basis(rule), ", ".join(compared(rule)) or "no number"
    yield "ours", ", ".join(ours(measured, rule)) if measured else shown(verdict) or "not measured"
    yield "why", verdict.why
    reason = "" if verdict.exploratory else f": {rule.because}"  # the reason of today's rule
    yield "rule", f"{rule.rule} {rule.side}".rstrip() + f", {tolerance(rule) or 'no tolerance'}{reason}"
    if rule.also:
        yield "also", "; ".join(rule.also)
    if rule.refuted_by:
        yield "refuted by", rule.refuted_by + (" (today's rule)" if verdict.exploratory else "")
    if rule.row_of:
        yield "row of", rule.row_of
    if verdict.rests_on:
        decides = "decides" if verdict.decides else "decides nothing"
        yield "rests on", f"{verdict.rests_on}{': ' + verdict.because if verdict.because else ''} ({decides})"
    if verdict.settings:
        count, _, lacking = verdict.settings.partition(", not ")
        yield "settings", f"{count} printed" + (f"; not printed: {lacking}" if lacking else "")
    yield from _registered(verdict)
    if rule.quantity in artifact.quantities:
        measure = function_of(artifact.quantities[rule.quantity].value)
        yield "measure", f"{measure.__module__}:{measure.__qualname__.partition('.<locals>')[0]}"
    if measured is not None and measured.spread and measured.finite and not measured.ranged:
        caught = departures(power(rule, measured), rule.displayed_unit)
        yield "power", f"catches a departure of {caught} four times in five"


def power(claim: Claim, ours: Estimate) -> tuple[float, ...]:
    """For each value, the smallest departure from the rule that it would catch four times in five.

    In the value's unit: how far beyond what the claim prints the truth must lie for the whole interval to fall
    outside the tolerance with probability ``CAUGHT``, if measurements scatter as the interval at hand says (normal,
    95%). Only an interval with finite ends tells how they scatter.
    """
    reach = NormalDist().inv_cdf(CAUGHT)
    allowed = [*(claim.tolerances(len(ours.values)) if claim.rule in ("within", "bound") else (0.0,))]
    allowed += [allowed[-1]] * (len(ours.values) - len(allowed))
    halves = [(high - low) / 2 for _, low, high in ours.spans]
    return tuple(most + half + reach * half / 1.96 for most, half in zip(allowed, halves, strict=False))


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
        which = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
        if len(named) > FEW:
            which = f"{len(named)} settings from {named[0]} to {named[-1]}"
        yield f"{count}, {which}, {seeds(run.spec.seed for run in runs)}; {origin(runs)}"


def groups_of(artifact: Artifact, profile: str) -> dict[str, str]:
    """By run id, the name of its group of the artifact as figures show it; a group at ``profile`` goes first."""
    found: dict[str, str] = {}
    for name in sorted(PROFILES, key=lambda each: each != profile):
        for group, specs in artifact.runs(name).items():
            for spec in specs:
                found.setdefault(spec.id, METHODS.sub(lambda method: method[0].upper(), group))
    return found


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
    for later in later_runs(verdict.claim, verdict.measured.runs if verdict.measured else ()):
        yield "its runs", later
    if verdict.family > 1:
        others = verdict.family - 1
        yield "family", f"corrected with {others} other claim{'s' if others > 1 else ''} on the same runs (Holm)"
    if other := verdict.exploratory:
        number = ", ".join(ours(other.measured, other.claim)) if other.measured else ""
        yield "exploratory", f"{other.verdict} {number}".rstrip() + f": {other.claim.because}"
