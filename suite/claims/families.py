"""Claims that are decided on the same runs are corrected together, by Holm's procedure.

A *family* holds the empirical claims of a paper whose rule was applied to an interval, joined wherever two of them
read a common run. The p value of a verdict is the smallest level at which its rule still gives the same verdict, the
interval being widened from 95% to that level. Holm's procedure then keeps the verdicts that stand at a probability of
``LEVEL`` that any of the family is false; the others get the verdict of the interval at ``LEVEL`` over the family's
size, which is *inconclusive* or *no visible difference*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from suite.claims.estimate import EXACT, Estimate
from suite.claims.intervals import LEVEL, holm, quantile
from suite.claims.judge import Verdict, judge

APPLIED = ("reproduced", "not reproduced", "inconclusive", "no visible difference")  # verdicts of a rule
SMALLEST = 1e-12  # level below which no p value is looked for


def widened(ours: Estimate, level: float) -> Estimate:
    """The same values with intervals at confidence ``1 - level`` in place of 95%.

    Student's t with ``n - 1`` degrees of freedom; the normal distribution where one run borrows its spread.
    """
    factor = quantile(ours.n - 1, level) / quantile(ours.n - 1, LEVEL)
    low = tuple(value - factor * (value - end) for value, end in zip(ours.values, ours.low, strict=True))
    high = tuple(value + factor * (end - value) for value, end in zip(ours.values, ours.high, strict=True))
    return replace(ours, low=low, high=high)


def at_level(verdict: Verdict, level: float) -> str:
    """The word of a verdict's rule on its interval at another level."""
    assert verdict.measured is not None
    return judge(verdict.claim, widened(verdict.measured, level), verdict.profile, verdict.rests_on).verdict


def p_value(verdict: Verdict) -> float:
    """The smallest level at which a verdict stands, 1 where none was decided."""
    if verdict.verdict == "inconclusive":
        return 1.0
    low, high = math.log(SMALLEST), math.log(LEVEL)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if at_level(verdict, math.exp(middle)) == verdict.verdict else (middle, high)
    return math.exp(high)


def families(found: Sequence[Verdict]) -> list[list[Verdict]]:
    """The families of a paper's claims by their present rules, each of two or more."""
    groups: list[tuple[set[str], list[Verdict]]] = []
    for verdict in found:
        if not _member(verdict.present):
            continue
        runs, members = set(verdict.runs), [verdict]
        for group in [group for group in groups if group[0] & runs]:
            runs |= group[0]
            members = group[1] + members
            groups.remove(group)
        groups.append((runs, members))
    return [members for _, members in groups if len(members) > 1]


def correctable(verdict: Verdict) -> bool:
    """Whether a verdict of the present rule is decided, on an interval."""
    return _member(verdict.present) and verdict.present.verdict != "inconclusive"


def _member(verdict: Verdict) -> bool:
    ours = verdict.measured
    if ours is None or verdict.rests_on in ("", EXACT) or verdict.verdict not in APPLIED:
        return False
    return any(low < high for _, low, high in ours.spans)


def corrected(found: Sequence[Verdict], since: str) -> list[Verdict]:
    """All verdicts of a paper, each family corrected.

    Args:
        found: the verdicts, with the runs that each rests on.
        since: when the correction came into force (UTC, ISO 8601). It decides claims whose runs began later. For
            others the verdict by the claim's own interval stands, and the corrected one is *exploratory*.

    Returns:
        The verdicts in the same order; each member of a family says how many it has.
    """
    new: dict[str, Verdict] = {}
    for members in families(found):
        # one number held against one statement is one test, in however many places the paper prints it
        tests = {_test(verdict.present): p_value(verdict.present) for verdict in members}
        kept = dict(zip(tests, holm(list(tests.values()), LEVEL), strict=True))
        for verdict in members:
            sized = replace(verdict, family=len(tests))
            stands = kept[_test(verdict.present)] or verdict.present.verdict == "inconclusive"
            new[verdict.claim.id] = sized if stands else _fallen(sized, since)
    return [new.get(verdict.claim.id, verdict) for verdict in found]


def _test(verdict: Verdict) -> tuple[object, ...]:
    claim = verdict.claim
    return verdict.measured and verdict.measured.spans, claim.rule, claim.printed, claim.order, verdict.verdict


def _fallen(verdict: Verdict, since: str) -> Verdict:
    """A verdict that does not stand in its family, or that verdict with the corrected one beside it."""
    alone, count = verdict.present, verdict.family
    word = at_level(alone, LEVEL / count)
    why = f"{count} claims on the same runs are corrected together (Holm); by its own interval {alone.verdict}"
    later = replace(alone, verdict=word, why=why, red=False, alone=alone.verdict, family=count, exploratory=None)
    if verdict.exploratory is None and verdict.began >= since:
        return later
    if word == verdict.verdict:  # the registered rule says so too
        return replace(verdict, exploratory=None)
    if verdict.exploratory is None:
        said = f"by its own interval; corrected with the {count} claims on the same runs, exploratory: {word}"
        verdict = replace(verdict, why=said)
    return replace(verdict, exploratory=later)
