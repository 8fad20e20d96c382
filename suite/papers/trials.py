"""Trials of claims: the judge in the worlds of their counterfeits, and how small a departure a rule would catch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from suite.claims.estimate import Estimate
from suite.claims.judge import Claim, Verdict, judge
from suite.papers import counterfeits
from suite.papers.artifact import Artifact, Evidence
from suite.papers.catalogue import paper
from suite.papers.counterfeits import World
from suite.papers.measurement import measure_evidence
from suite.papers.panel import Panel
from suite.runs.archive import Runs

UNTRIED = "no counterfeit: nothing shows that it could fail"
CAUGHT = 0.8  # share of departures that a rule's power speaks of


@dataclass(frozen=True)
class Trial:
    """What became of one claim in one world. ``ending``: flips, weak, or fails."""

    claim: str
    world: str
    wanted: str
    found: str
    ending: str
    measured: Estimate | None = None


def counted(verdict: Verdict) -> bool:
    """Whether a claim's present rule decided it on what was measured, and so must be able to fail.

    Quantities of a panel are held to known answers by tests, so its claims have no worlds.
    """
    decided = present(verdict).verdict in ("reproduced", "not reproduced")
    return verdict.claim.empirical and decided and not _of_panel(verdict.claim)


def _of_panel(claim: Claim) -> bool:
    try:
        return isinstance(paper(claim.paper).artifact(claim.artifact), Panel)
    except KeyError:  # of a paper that is not here
        return False


def present(verdict: Verdict) -> Verdict:
    """The verdict of the present rule on the claim's own interval."""
    later = verdict.present
    return replace(later, verdict=later.alone) if later.alone else later


def trials(verdict: Verdict, artifact: Artifact, source: Runs, cache: dict[Any, Any] | None = None) -> list[Trial]:
    """The claim in each of its worlds: counterfeits where it is reproduced, genuine ones where it is not."""
    verdict, claim = present(verdict), verdict.claim
    table = {"reproduced": counterfeits.COUNTERFEITS, "not reproduced": counterfeits.GENUINE}
    worlds = table.get(verdict.verdict, {}).get(claim.id, [])
    wanted = "not reproduced" if verdict.verdict == "reproduced" else "reproduced"
    cache = {} if cache is None else cache
    return [_trial(verdict, artifact, source, world, wanted, cache) for world in worlds]


def _trial(
    verdict: Verdict, artifact: Artifact, source: Runs, world: World, wanted: str, cache: dict[Any, Any]
) -> Trial:
    claim, profile = verdict.claim, verdict.profile
    key = artifact.id, profile, world
    if key not in cache:
        cache[key] = _measured(artifact, source, profile, world)
    found, faults = cache[key]
    ours = found.get(claim.quantity)
    if ours is None:
        return Trial(claim.id, world.__name__, wanted, "; ".join(faults) or "the quantity is gone", "fails")
    if not ours.finite:
        return Trial(claim.id, world.__name__, wanted, "not finite", "fails", ours)
    shown = found.get(claim.known_difference.shown_by) if claim.known_difference else None
    got = judge(claim, ours, profile, shown, verdict.rests_on).verdict
    ending = "flips" if got == wanted else "weak" if got == "inconclusive" else "fails"
    return Trial(claim.id, world.__name__, wanted, got, ending, ours)


def _measured(
    artifact: Artifact, source: Runs, profile: str, world: World
) -> tuple[dict[str, Estimate], Sequence[str]]:
    """All quantities of an artifact in a world, and what went wrong with others."""
    try:
        evidence = world(Evidence(source, artifact.runs(profile), profile))
    except Exception as error:
        return {}, [f"{world.__name__}: {type(error).__name__}: {error}"]
    found = measure_evidence(artifact, evidence)
    return found.found, [*found.damaged, *map(str, found.missing.values())]


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
    for (_, low, high), tolerance in zip(ours.spans, given, strict=False):
        half = (high - low) / 2
        departures.append(tolerance + half + reach * half / 1.96 if math.isfinite(half) else math.inf)
    return tuple(departures)
