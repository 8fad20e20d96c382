"""The boards: verdicts counted by what they rest on, *whole* first; what is exact apart.

One function counts for ``check``, the README, the report and pytest, so that they cannot differ.

Claims that are decided on the same runs are corrected together, by Holm's procedure.

A *family* holds the empirical claims of a paper whose rule was applied to an interval, joined wherever two of them
read a common run. The p value of a verdict is the smallest level at which its rule still gives the same verdict, the
interval being widened from 95% to that level. Holm's procedure then keeps the verdicts that stand at a probability of
``LEVEL`` that any of the family is false; the others get the verdict of the interval at ``LEVEL`` over the family's
size, which is *inconclusive* or *no visible difference*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from suite.claims.estimate import EXACT, GRADES, MODELLED, REDUCED, STAND_IN, WHOLE, Estimate
from suite.claims.intervals import LEVEL, holm, quantile, tail
from suite.claims.judge import OURS, VERDICTS, Claim, Verdict, accepted, growth, inside, judge, unseen

EMPIRICAL, PROPERTIES = GRADES[:4], GRADES[4:]
CONFIDENCE = 0.95  # of the intervals that are judged
NOTHING = "nothing measured"  # the row of claims that were not run
RELATIONS = ("order", "holds")  # rules of which a proxy speaks: a printed number belongs to the paper's own data
PROXIES: Mapping[bool | None, str] = {True: "for", False: "against", None: "open"}
DECIDED = ("reproduced", "not reproduced", "no visible difference")
WORDS: Mapping[str, str] = {  # what is said of a property or a statement
    "reproduced": "holds",
    "not reproduced": "does not hold",
    **{verdict: verdict for verdict in VERDICTS[2:]},
}
MEANINGS: Mapping[str, str] = {
    WHOLE: "Contradicts nothing that the paper prints; what it does not print is named beside it.",
    REDUCED: "Less of something printed (epochs, seeds, images, tests); decides only claims that speak of that size.",
    STAND_IN: "Another data set, network or rate, or seconds of another machine; decides nothing.",
    MODELLED: "Virtual time or a cost model; decides nothing about a machine.",
    EXACT: "A property of our code, a setting, or arithmetic on print: nothing that could come out otherwise.",
    NOTHING: "Not run, or measured at a scale that could not decide.",
}


@dataclass(frozen=True)
class Board:
    """Counts of verdicts by grade: ``empirical`` by verdict, ``properties`` by word; rows in the order of GRADES."""

    empirical: Mapping[str, Counter[str]]
    properties: Mapping[str, Counter[str]]
    decides: Counter[str]  # verdicts among ``empirical`` whose evidence decides the claim
    order: Mapping[str, Counter[str]]  # by row of ``empirical``, of what was decided: did the rule come first?
    spread: int = 0  # verdicts *reproduced* among ``empirical`` whose measurement has an interval
    follows: Counter[str] = field(default_factory=Counter)  # by row of ``properties``: numbers that are derived
    runs: Mapping[str, int] = field(default_factory=dict)  # by row of ``empirical``: runs behind it, each once
    beside: Counter[str] = field(default_factory=Counter)  # what proxies say of claims and rows that were not run
    single: int = 0  # verdicts among ``empirical`` that one run decides
    decided_once: int = 0  # of those, how many decide at the claim's own size
    rows: Mapping[str, Counter[str]] = field(default_factory=dict)  # of rows of claims, counted nowhere else
    ours: Counter[str] = field(default_factory=Counter)  # verdicts on questions of ours, counted nowhere else
    families: int = 0  # verdicts among ``empirical`` that are corrected with others on the same runs
    fallen: tuple[str, ...] = ()  # ids of those whose corrected verdict is another
    standing: int = 0  # of what is decided, how much the present rule says too, corrected with others on its runs
    excused: int = 0  # undetermined ones among ``empirical`` whose number fails their rule
    uncommitted: int = 0  # of what is decided, how much rests on a run whose tree had uncommitted changes

    @property
    def by_chance(self) -> float:
        """How many of ``spread`` chance explains at most, on average.

        A claim passes when its whole 95% interval does. One that is false by no more than its tolerance passes
        with the probability that the interval lies to one side of the truth, 2.5%; one that is further off seldomer.
        """
        return (1 - CONFIDENCE) / 2 * self.spread


def word(verdict: Verdict) -> str:
    """What is said of a claim: a property or a statement holds or does not, anything else has its verdict."""
    return WORDS[verdict.verdict] if verdict.rests_on in PROPERTIES else verdict.verdict


def said(verdict: Verdict) -> str:
    """The word for a verdict, and whether it rests on one run."""
    return word(verdict) + (", one run" if on_one_run(verdict) else "")


def in_full(verdict: Verdict) -> str:
    """That, and what a later or corrected rule says beside it, or its own interval where others correct it."""
    later = verdict.exploratory
    if verdict.alone:
        return f"{said(verdict)} (by its own interval: {verdict.alone})"
    return said(verdict) + (f" (exploratory: {word(later)})" if later else "")


def on_one_run(verdict: Verdict) -> bool:
    """Whether a training or a clock was measured once: no spread of our own stands behind the verdict."""
    once = verdict.measured is not None and verdict.measured.n == 1 and verdict.rests_on in EMPIRICAL[:3]
    return once and verdict.verdict in DECIDED


def proxy_says(verdict: Verdict) -> str:
    """What a proxy says of a claim that was not run: *for*, *against*, *open*, or *number*; "" for no proxy.

    It speaks of relations alone (``RELATIONS``), by the claim's own rule. A printed number belongs to the paper's
    data, network and machine, so the proxy's number is shown beside it without a word.
    """
    ours, claim = verdict.proxy, verdict.claim
    if ours is None or verdict.measured is not None:
        return ""
    if claim.rule not in RELATIONS or not ours.decidable or not claim.expects(len(ours.values)):
        return "number"
    return PROXIES[inside(ours, accepted(claim, len(ours.values)))]


def board(verdicts: Iterable[Verdict]) -> Board:
    """All verdicts counted, each once; rows of a claim and questions of ours apart from the claims."""
    found = list(verdicts)
    rows = [verdict for verdict in found if verdict.claim.row_of]
    leads = [verdict for verdict in found if not verdict.claim.row_of]
    questions = [verdict for verdict in leads if verdict.claim.kind == OURS]
    claims = [verdict for verdict in leads if verdict.claim.kind != OURS]
    properties = [verdict for verdict in claims if verdict.rests_on in PROPERTIES]
    empirical = [verdict for verdict in claims if verdict.rests_on not in PROPERTIES]
    measured = [(verdict, verdict.measured) for verdict in empirical if verdict.measured is not None]
    decided = [v for v in empirical if v.decides and v.verdict in DECIDED]
    return Board(
        empirical=tallies((*EMPIRICAL, NOTHING), ((v.rests_on or NOTHING, v.verdict) for v in empirical)),
        properties=tallies(PROPERTIES, ((v.rests_on, word(v)) for v in properties)),
        decides=Counter(v.verdict for v in empirical if v.decides),
        order=tallies(EMPIRICAL, ((v.rests_on, v.order) for v in empirical if v.rests_on)),
        spread=sum(v.verdict == "reproduced" and ours.spread for v, ours in measured),
        follows=Counter(v.rests_on for v in properties if v.claim.basis == "follows"),
        runs={row: len({run for v, ours in measured if v.rests_on == row for run in ours.runs}) for row in EMPIRICAL},
        beside=Counter(filter(None, map(proxy_says, (*empirical, *rows)))),
        single=sum(map(on_one_run, empirical)),
        decided_once=sum(map(on_one_run, decided)),
        rows=tallies((), ((v.rests_on or NOTHING, v.verdict) for v in rows)),
        ours=Counter(v.verdict for v in questions),
        families=sum(v.family > 1 for v in empirical),
        fallen=tuple(v.claim.id for v in empirical if v.present.alone),
        standing=sum(map(stands, decided)),
        excused=sum(v.verdict == "undetermined" and fails(v.claim, ours) for v, ours in measured),
        uncommitted=sum(v.uncommitted > 0 for v in decided),
    )


def fails(claim: Claim, ours: Estimate) -> bool:
    """Whether a number lies outside the claim's rule, whatever else the claim says."""
    return inside(ours, accepted(claim, len(ours.values))) is False


def stands(verdict: Verdict) -> bool:
    """Whether the present rule says the same, corrected with others on the same runs."""
    return verdict.present.verdict == verdict.verdict


def tallies(rows: Iterable[str], pairs: Iterable[tuple[str, str]]) -> dict[str, Counter[str]]:
    """By row, these first, how often each verdict was given."""
    found = {row: Counter[str]() for row in rows}
    for row, verdict in pairs:
        found.setdefault(row, Counter())[verdict] += 1
    return found


def lines(counted: Board) -> list[str]:
    """Both boards as text: the empirical claims, headed by what is decided, then properties and statements.

    A grade without a claim has no line.
    """
    decided = counts(counted.decides, VERDICTS) or "none"
    text = [f"empirical claims, {sum(map(Counter.total, counted.empirical.values()))}; decided: {decided}"]
    for row, tally in counted.empirical.items():
        if not tally:
            continue
        n = counted.runs.get(row, 0)
        behind = f"; {n} run{'s' if n > 1 else ''}" if n else ""
        text.append(f"  {row + ':':<18}{counts(tally, VERDICTS)}{behind}{apart(counted, row)}")
    if counted.spread:
        text.append(
            f"  reproduced with an interval: {counted.spread}; were all of them false by their tolerance, "
            f"{counted.by_chance:.2g} would pass by chance"
        )
    if counted.single:
        text.append(f"  on one run each, without a spread of our own: {counted.single}")
    text += [f"  {line}" for line in (corrected(counted), proxies(counted)) if line]
    if counted.rows:
        text.append(rows_told(counted))
    if counted.ours:
        text.append(f"questions of ours, {counted.ours.total()}: {counts(counted.ours, VERDICTS)}")
    text.append(f"properties and statements, {sum(map(Counter.total, counted.properties.values()))}")
    for row, tally in counted.properties.items():
        derived = f"; {counted.follows[row]} by numbers that follow from print" if counted.follows[row] else ""
        text += [f"  {row + ':':<18}{counts(tally, WORDS.values())}{derived}"] if tally else []
    return text


def rows_told(counted: Board) -> str:
    """How the rows of claims were judged, which are rows of a printed table."""
    told = [f"{row} {counts(counted.rows[row], VERDICTS)}" for row in (*EMPIRICAL, NOTHING) if row in counted.rows]
    return f"rows of these claims, judged one by one: {'; '.join(told)}"


def corrected(counted: Board, *, named: bool = True) -> str:
    """How many verdicts are corrected together, and which or how many of them do not stand; "" for none."""
    if not counted.families:
        return ""
    if counted.families == 1:
        stands = "does not stand" if counted.fallen else "stands"
        return f"1 claim shares runs with others and is corrected together (Holm); it {stands} so"
    fell = "all stand so"
    if counted.fallen:
        do = "does" if len(counted.fallen) == 1 else "do"
        fell = f"{len(counted.fallen)} {do} not stand so" + (f": {', '.join(counted.fallen)}" if named else "")
    return f"{counted.families} claims share runs with others and are corrected together (Holm); {fell}"


def proxies(counted: Board) -> str:
    """What proxies say of claims and rows that were not run; "" for none."""
    if not counted.beside:
        return ""
    told, n = counts(counted.beside, PROXIES.values()) or "none", counted.beside.total()
    return f"{n} prox{'ies' if n > 1 else 'y'} for claims and rows not run; where these state a relation: {told}"


def apart(counted: Board, row: str) -> str:
    """Of a row of the board, what was not registered before its evidence."""
    later = {order: n for order, n in counted.order.get(row, Counter()).items() if order not in ("registered", "")}
    return " (" + ", ".join(f"{n} {order}" for order, n in sorted(later.items())) + ")" if later else ""


def counts(tally: Counter[str], order: Iterable[str]) -> str:
    """How often each name was counted, in this order, those that never were left out."""
    return ", ".join(f"{tally[name]} {name}" for name in order if tally[name])


APPLIED = (*DECIDED, "inconclusive")  # verdicts of a rule


def widened(ours: Estimate, level: float) -> Estimate:
    """The same values with intervals at confidence ``1 - level`` in place of 95%.

    Student's t with the degrees of freedom that made them; the normal distribution where it did not.
    """
    factor = quantile(ours.freedom, level) / quantile(ours.freedom, LEVEL)
    low = tuple(value - factor * (value - end) for value, end in zip(ours.values, ours.low, strict=True))
    high = tuple(value + factor * (end - value) for value, end in zip(ours.values, ours.high, strict=True))
    return replace(ours, low=low, high=high)


def at_level(verdict: Verdict, level: float) -> str:
    """The word of a verdict's rule on its interval at another level."""
    assert verdict.measured is not None
    return judge(verdict.claim, widened(verdict.measured, level), verdict.profile, verdict.rests_on).verdict


def p_value(verdict: Verdict) -> float:
    """The smallest level at which a verdict stands, 1 where none was decided."""
    claim, ours = verdict.claim, verdict.measured
    assert ours is not None
    if verdict.verdict == "inconclusive":
        return 1.0
    margin, count = claim.margin if verdict.verdict == "no visible difference" else None, len(ours.values)
    region = unseen(margin, count) if margin else accepted(claim, count)
    return min(tail(ours.freedom, growth(ours, region) * quantile(ours.freedom, LEVEL)), LEVEL)


def families(found: Sequence[Verdict]) -> list[list[Verdict]]:
    """The families of a paper's claims by their present rules, each of two or more."""
    groups: list[tuple[set[str], list[Verdict]]] = []
    for verdict in found:
        if not of_a_family(verdict):
            continue
        runs, members = set(verdict.runs), [verdict]
        for group in [group for group in groups if group[0] & runs]:
            runs |= group[0]
            members = group[1] + members
            groups.remove(group)
        groups.append((runs, members))
    return [members for _, members in groups if len(members) > 1]


def of_a_family(verdict: Verdict) -> bool:
    """Whether the present rule was applied to an interval, so that the verdict counts in a family."""
    present = verdict.present
    ours = present.measured
    return bool(ours and ours.spread and present.rests_on not in ("", EXACT) and present.verdict in APPLIED)


def corrected_verdicts(found: Sequence[Verdict], since: str) -> list[Verdict]:
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
        presents = [verdict.present for verdict in members]
        tests = {_test(present): p_value(present) for present in presents}
        kept = dict(zip(tests, holm(list(tests.values()), LEVEL), strict=True))
        for verdict, present in zip(members, presents, strict=True):
            sized = replace(verdict, family=len(tests))
            stands = kept[_test(present)] or present.verdict == "inconclusive"
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
    if word == verdict.verdict or (verdict.exploratory is None and verdict.began >= since):
        return later  # the registered rule says so too, or there is none but the present one
    said = f"corrected as one of {count} claims on the same runs, exploratory: {word}"
    before = "by its own interval" if verdict.exploratory is None else verdict.why
    return replace(verdict, why=f"{before}; {said}", exploratory=later)
