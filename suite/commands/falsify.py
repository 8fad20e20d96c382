"""The command ``falsify``: every counted claim against evidence from worlds in which it is false."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from suite.claims.estimate import Estimate
from suite.claims.judge import Verdict
from suite.papers.catalogue import select
from suite.papers.trials import UNTRIED, Trial, counted, power, trials
from suite.papers.verdicts import verdicts
from suite.runs.archive import Runs


@dataclass(frozen=True)
class Tried:
    """A counted claim, its worlds and the power of its rule."""

    verdict: Verdict
    trials: tuple[Trial, ...]
    power: tuple[float, ...]

    @property
    def fault(self) -> str:
        """Why the claim may not count, or nothing."""
        if not self.trials:
            return UNTRIED
        failed = [f"{t.world}: {t.found}" for t in self.trials if t.ending == "fails"]
        if failed:
            return "; ".join(failed)
        return "" if any(t.ending == "flips" for t in self.trials) else "its counterfeits are all weak"


def falsified(selectors: Sequence[str], source: Runs) -> list[Tried]:
    """All counted claims of a selection in their worlds."""
    tried = []
    for paper, artifacts in select(selectors):
        by_id = {artifact.id: artifact for artifact in artifacts}
        cache: dict[Any, Any] = {}
        for verdict in verdicts(paper, source, artifacts=list(by_id)):
            if counted(verdict) and verdict.measured is not None:
                found = tuple(trials(verdict, by_id[verdict.claim.artifact], source, cache))
                tried.append(Tried(verdict, found, power(verdict.claim, verdict.measured)))
    return tried


def row(tried: Tried) -> dict[str, Any]:
    """A claim as plain values."""
    values = lambda ours: list(ours.values) if isinstance(ours, Estimate) else None
    return {
        "id": tried.verdict.claim.id,
        "verdict": tried.verdict.verdict,
        "ours": values(tried.verdict.measured),
        "power": [p if p != float("inf") else "inf" for p in tried.power],
        "fault": tried.fault,
        "worlds": [
            {"name": t.world, "wanted": t.wanted, "found": t.found, "ending": t.ending, "values": values(t.measured)}
            for t in tried.trials
        ],
    }


def lines(tried: Sequence[Tried]) -> list[str]:
    """A line per world, and a summary."""
    text = []
    for each in tried:
        claim = each.verdict.claim
        departure = ", ".join(f"{p:.3g}" for p in each.power)
        text.append(f"{claim.id}: {each.verdict.verdict}; catches a departure of {departure} {claim.unit}".rstrip())
        text += [f"    {t.ending:<6} {t.world}: {t.found}" for t in each.trials]
        if each.fault:
            text.append(f"    FAULT  {each.fault}")
    endings = Counter(t.ending for each in tried for t in each.trials)
    faults = sum(bool(each.fault) for each in tried)
    summary = ", ".join(f"{endings[name]} {what}" for name, what in MEANINGS.items())
    return [
        *text,
        f"{len(tried)} counted claims, {sum(endings.values())} worlds: {summary}; {faults} claims at fault",
    ]


MEANINGS = {"flips": "flip the verdict", "weak": "leave it open", "fails": "fail"}


def falsify_selection(selectors: Sequence[str], source: Runs, as_json: bool) -> int:
    """Print what became of each claim; 1 when one cannot be shown to be able to fail."""
    tried = falsified(selectors, source)
    print(json.dumps([row(each) for each in tried], indent=1) if as_json else "\n".join(lines(tried)))
    return 1 if any(each.fault for each in tried) else 0
