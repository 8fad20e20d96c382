"""The command ``check``: verdicts as text, JSON or JUnit, and the exit code."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from paper_figures.selection import select
from paper_figures.verdicts import Measurement, verdicts
from suite.archive import Runs
from suite.claims import VERDICTS, Verdict
from suite.measured import Measured
from suite.runs.contest import Survey


def judge_selection(
    selectors: Sequence[str], profile: str | None, source: Runs, found: Survey | None = None
) -> list[Verdict]:
    """Verdicts of all claims of a selection, in the papers' order; ``found`` takes up what runs are held twice."""
    judged: list[Verdict] = []
    for paper, artifacts in select(selectors):
        measured: dict[tuple[str, str], Measurement] = {}
        chosen = [artifact.id for artifact in artifacts]
        judged += verdicts(paper, source, profile=profile, artifacts=chosen, measured=measured)
        for measurement in measured.values():
            if found is not None:
                found.add(measurement.survey)
    return judged


def _measured(measured: Measured | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    clean = lambda numbers: [n if abs(n) != float("inf") and n == n else str(n) for n in numbers]
    return {
        "values": clean(measured.values),
        "low": clean(measured.low),
        "high": clean(measured.high),
        "kind": measured.kind,
        "n": measured.n,
        "runs": list(measured.runs),
        "note": measured.note,
    }


def row(verdict: Verdict) -> dict[str, Any]:
    """A verdict as plain values."""
    claim = verdict.claim
    return {
        "id": claim.id,
        "verdict": verdict.verdict,
        "red": verdict.red,
        "why": verdict.why,
        "profile": verdict.profile,
        "decided_from": claim.profile,
        "needs": claim.needs,
        "says": claim.says,
        "where": claim.where,
        "printed": list(claim.printed),
        "unit": claim.unit,
        "rule": claim.rule,
        "because": claim.because,
        "empirical": claim.empirical,
        "ours": _measured(verdict.measured),
        "proxy": _measured(verdict.proxy),
    }


def lines(found: Sequence[Verdict]) -> list[str]:
    """One line per claim and a summary: empirical claims first, definitions and arithmetic apart."""
    text = []
    for v in found:
        ours = ", ".join(f"{x:.4g}" for x in v.measured.values) if v.measured else "-"
        mark = "RED " if v.red else "    "
        text.append(f"{mark}{v.claim.id:<52} {v.verdict:<24} ours {ours}  ({v.why})")
    for empirical, title in ((True, "empirical claims"), (False, "definitions and arithmetic")):
        counts = Counter(v.verdict for v in found if v.claim.empirical is empirical)
        if counts:
            text.append(f"{title}: " + ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name]))
    return text


def junit(found: Sequence[Verdict], path: Path) -> None:
    """JUnit XML: a failure per red claim, a skip per claim that was not run."""
    red = sum(v.red for v in found)
    skipped = sum(v.verdict == "not run" for v in found)
    suite = ElementTree.Element(
        "testsuite", name="claims", tests=str(len(found)), failures=str(red), skipped=str(skipped)
    )
    for v in found:
        case = ElementTree.SubElement(suite, "testcase", classname=v.claim.artifact, name=v.claim.id)
        if v.red:
            ElementTree.SubElement(case, "failure", message=v.verdict).text = v.why
        elif v.verdict == "not run":
            ElementTree.SubElement(case, "skipped", message=v.why)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def check_selection(
    selectors: Sequence[str], profile: str | None, source: Runs, as_json: bool, junit_path: Path | None
) -> int:
    """Print verdicts; returns 1 when one is red."""
    several = Survey()
    found = judge_selection(selectors, profile, source, several)
    if junit_path:
        junit(found, junit_path)
    if as_json:
        print(json.dumps([row(v) for v in found], indent=1, allow_nan=False))
    else:
        print("\n".join(lines(found)))
    for line in several.lines():
        print(line, file=sys.stderr)
    return 1 if any(v.red for v in found) else 0
