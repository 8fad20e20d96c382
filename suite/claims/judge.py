"""Claims: what a paper prints, and the one judge that compares it with what we measured.

``paper_figures/published/PAPER.toml`` reads like the paper. One table per artifact holds what its claims share
(``where``, ``needs``, ``profile``, ``rule``, ``tolerance``, ``because``); each sub-table is one claim and may
override any of it::

    [fig5b]
    where = "5.2, Fig. 5(b)"
    needs = "gpu"
    profile = "paper"
    [fig5b.gain]
    says = "ISGD needs 26.79% less time than SGD to stay above 75%"
    printed = 26.79
    unit = "%"
    rule = "within"
    tolerance = 5
    because = "five percentage points: ..."

Rules, each decided on the whole interval of the measured quantity:

``within``   every value lies within ``tolerance`` (or ``relative`` x printed) of the printed one
``order``    measured values are the steps between consecutive names of ``order``; every step is above
             ``tolerance`` (default 0: strictly increasing; below 0: falling by less than that)
``bound``    every value is on the ``side`` of ``printed``: lower (>=), above (>), upper (<=), below (<), or
             range (between the two printed ends), widened by ``tolerance``, narrowed by a negative one
``holds``    every value is a share of cases in which the statement held and reaches ``printed`` (default 1)

A straddling interval is *inconclusive*, whatever else the entry says. Further keys:

``margin``            the largest difference that counts as none: failing within it is *no visible difference*
``undetermined``      the setting that the paper does not print and on which the quantity hangs
``machine``           why the quantity belongs to the paper's machine, to which it is *bound* if nothing is measured
``follows``           in place of ``printed``: a number that follows from what the paper prints
``asked``             in place of ``printed``: the bound that we ask, where the paper prints a relation in words
``unit_shown``        in place of the registered unit where numbers are shown: what each of several values is
``pairs``             of each step of an ``order`` the two that are shown, where these are no neighbours in it
``doubt``             other printed facts that exclude the printed value
``property``          why the statement cannot be false of the code at hand; such a claim is not empirical
``finding``           what a *not reproduced* teaches; it is then reported, and no longer red
``refuted_by``        the observation that would have refuted it; where one claim of a file says it, all must
``also``              other places that print the same
``row_of``            the claim of which it is a row: judged and shown by itself, and not counted apart
``kind``              *claim*, or a question of *ours*: on the board; *test*: cannot be false of our own code, reads a
                      setting back, or is arithmetic on print; *contradiction* inside the paper; *figure*: only drawn
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from suite.claims.estimate import COMPUTED, Estimate

CLAIM, OURS, TEST, CONTRADICTION, FIGURE = KINDS = ("claim", "ours", "test", "contradiction", "figure")
BASES = ("printed", "follows", "asked")  # of the number that a rule compares with
BOARD = (CLAIM, OURS)  # kinds that are judged in public
PROFILES = ("smoke", "reduced", "paper")
NEEDS: Mapping[str, str] = {  # the least that decides a claim, in order
    "nothing": "no run: a specification, or arithmetic on what is printed",
    "cpu-small": "a CPU, and trainings of hours",
    "cpu-large": "a CPU, and trainings of half a day or more, or hundreds of them; a GPU saves the time",
    "gpu": "a GPU: its seconds, or its memory, are what is claimed",
    "imagenet": "ImageNet, which nobody may pass on, and a GPU for it",
    "multi-gpu": "several GPUs in one machine",
    "cluster": "several machines",
}
ON_A_CPU = ("nothing", "cpu-small", "cpu-large")  # needs that any machine meets, however long it takes
RULES = ("within", "order", "bound", "holds")
SIDES = ("lower", "above", "upper", "below", "range")
VERDICTS = (
    "reproduced",
    "not reproduced",
    "inconclusive",
    "not run",
    "no visible difference",
    "undetermined",
    "bound to the paper's machine",
    "paper contradicts itself",
)


class ClaimError(ValueError):
    """A published file that cannot be read as claims."""


@dataclass(frozen=True)
class Claim:
    """One printed statement and the rule, fixed beforehand, that decides it."""

    id: str
    says: str
    where: str
    rule: str
    profile: str
    needs: str
    because: str
    printed: tuple[float, ...] = ()
    unit: str = ""
    tolerance: tuple[float, ...] = (0.0,)
    relative: float | None = None
    side: str = ""
    order: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()  # what the steps of ``order`` are between, where not its neighbours
    quantity: str = ""
    empirical: bool = True
    lacks: str = ""
    property: str = ""  # why the statement cannot be false of the code at hand: such a claim is not empirical
    basis: str = BASES[0]  # whether ``printed`` is printed, follows from what is, or is the bound that we ask
    timed: bool = False  # rests on wall-clock times of the machine at hand: another machine may decide otherwise
    margin: float | None = None  # the largest difference that counts as none
    undetermined: str = ""  # the unprinted setting on which the quantity hangs
    machine: str = ""  # why the quantity belongs to the paper's own machine
    doubt: str = ""
    finding: str = ""
    refuted_by: str = ""  # the observation that would have refuted it
    also: tuple[str, ...] = ()  # other places that print the same
    row_of: str = ""  # the claim of which it is a row
    unit_shown: str = ""  # what is shown in place of the registered unit
    kind: str = CLAIM

    @cached_property
    def artifact(self) -> str:
        return self.id.rpartition("/")[0]

    @cached_property
    def paper(self) -> str:
        return self.id.partition("/")[0]

    @cached_property
    def displayed_unit(self) -> str:
        """The unit that a reader sees; the rule in the register has ``unit``."""
        return self.unit_shown or self.unit

    @cached_property
    def steps(self) -> tuple[tuple[str, str], ...]:
        """What each value of an order is the difference of, the second less the first."""
        return self.pairs or tuple(pairwise(self.order))

    def __post_init__(self) -> None:
        count = len(self.printed)
        ends = self.side != "range" or (count == 2 and self.printed[0] <= self.printed[1])
        printed = ends and (count or self.rule not in ("within", "bound")) and all(map(math.isfinite, self.printed))
        each = len(self.tolerance) == 1 or (self.rule == "within" and len(self.tolerance) == count)
        checks = (  # field, whether it is as it must be, and how that is
            ("rule", self.rule in RULES, f"one of {', '.join(RULES)}"),
            ("profile", self.profile in PROFILES, f"one of {', '.join(PROFILES)}"),
            ("needs", self.needs in NEEDS, f"one of {', '.join(NEEDS)}"),
            ("says", self.says, "the statement, in a sentence"),
            ("where", self.where, "the place in the paper"),
            ("because", self.because, "the reason for the rule and its tolerance"),
            ("printed", printed,
             "numbers, two of them from low to high for side = 'range' (or give follows or asked in its place)"),
            ("side", (self.rule == "bound") == (self.side in SIDES),
             f"one of {', '.join(SIDES)} for rule = 'bound', and nothing for another"),
            ("tolerance", each and (self.rule != "within" or all(t >= 0 for t in self.tolerance)),
             "0 or more, once or for each printed number"),
            ("relative", self.relative is None or (self.rule in ("within", "bound") and self.relative >= 0),
             "0 or more, of rules within and bound alone"),
            ("order", self.rule != "order" or len(self.order) > 1, "two names or more, from least to most"),
            ("pairs", not self.pairs or [*map(len, self.pairs)] == [2] * (len(self.order) - 1),
             "two names for each step of the order"),
            ("kind", self.kind in KINDS, f"one of {', '.join(KINDS)}"),
            ("margin", self.margin is None or 0 < self.margin < math.inf, "above 0"),
        )  # fmt: skip
        for name, good, allowed in checks:
            if not good:
                raise ClaimError(f"claim {self.id}: {name} = {getattr(self, name)!r} must be {allowed}")

    def tolerances(self, count: int) -> tuple[float, ...]:
        """Absolute tolerance for each of ``count`` values."""
        each = self.tolerance
        if self.relative is not None:
            each = tuple(self.relative * abs(v) for v in self.printed)
        return each * count if len(each) == 1 else each

    def expects(self, count: int) -> bool:
        """Whether the rule can be applied to so many measured values."""
        if self.rule == "within":
            return count == len(self.printed)
        if self.rule == "order":
            return count == len(self.order) - 1
        return self.rule == "holds" or self.side == "range" or len(self.printed) in (1, count)


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one claim, and why, in one sentence."""

    claim: Claim
    verdict: str
    why: str
    measured: Estimate | None = None
    profile: str = ""
    proxy: Estimate | None = None
    red: bool = field(default=False)
    rests_on: str = ""  # the grade of what was measured, derived from its runs; empty where nothing was
    because: str = ""  # the first reason why the grade is no better
    settings: str = ""  # of a training: how many of its settings the paper prints, and which it does not
    order: str = ""  # whether its rule stood before its evidence: registered, or amended, late, undated, unregistered
    exploratory: Verdict | None = None  # what a rule says that changed after the runs began; this one stood then
    disputed: bool = False  # a run of it is held in another version, which its seeds are too few to judge
    decides: bool = False  # whether evidence of that grade decides the claim, or is shown beside it
    runs: tuple[str, ...] = ()  # ids of all runs that the number was read from
    digest: str = ""  # of the contents of these runs
    began: str = ""  # when the first of them began (UTC), "" where one does not say
    uncommitted: int = 0  # runs of it whose tree had changes that their revision does not hold
    family: int = 0  # claims on the same runs that it is corrected with, itself among them
    alone: str = ""  # the verdict by the claim's own interval, where the corrected one is another

    @property
    def present(self) -> Verdict:
        """The verdict under the present rule, which may be exploratory."""
        return self.exploratory or self


Region = list[tuple[float, float]]  # for each value, the least and the largest that a rule accepts


def accepted(claim: Claim, count: int) -> Region:
    """Where ``count`` values satisfy the claim's rule."""
    above, below = (lambda end: math.nextafter(end, math.inf)), (lambda end: math.nextafter(end, -math.inf))
    if claim.rule == "order":
        return [(above(tolerance), math.inf) for tolerance in claim.tolerances(count)]
    if claim.rule == "holds":
        return [(claim.printed[0] if claim.printed else 1.0, math.inf)] * count
    if claim.side == "range":
        (floor, ceiling), widen = claim.printed, claim.tolerances(2)
        return [(floor - widen[0], ceiling + widen[1])] * count
    printed = claim.printed * count if len(claim.printed) == 1 else claim.printed
    region = [(p - tol, p + tol) for p, tol in zip(printed, claim.tolerances(count), strict=True)]
    if claim.side in ("lower", "above"):
        return [(floor if claim.side == "lower" else above(floor), math.inf) for floor, _ in region]
    if claim.side in ("upper", "below"):
        return [(-math.inf, ceiling if claim.side == "upper" else below(ceiling)) for _, ceiling in region]
    return region


def unseen(margin: float, count: int) -> Region:
    """Where each of ``count`` differences counts as none."""
    return [(-margin, margin)] * count


def inside(ours: Estimate, region: Region) -> bool | None:
    """Whether all intervals lie in the region; False as soon as one lies outside, None where one straddles an end."""
    whole = True
    for low, high, (floor, ceiling) in zip(ours.low, ours.high, region, strict=True):
        if high < floor or low > ceiling:
            return False
        whole = whole and floor <= low and high <= ceiling
    return whole or None


def growth(ours: Estimate, region: Region) -> float:
    """The factor by which intervals grow until they straddle an end of the region in or outside which they lie."""
    spans = [(*span, *ends) for span, ends in zip(ours.spans, region, strict=True)]
    if inside(ours, region):
        rooms = [(_fits(v - low, v - floor), _fits(high - v, ceiling - v)) for v, low, high, floor, ceiling in spans]
        return min(map(min, rooms))
    # one that lies outside decides
    gaps = [(-_fits(high - v, v - floor), -_fits(v - low, ceiling - v)) for v, low, high, floor, ceiling in spans]
    return max(map(max, gaps))


def _fits(length: float, room: float) -> float:
    """How many times a length fits into a room."""
    return math.copysign(math.inf, room) if math.isinf(room) or not length else room / length


def judge(claim: Claim, ours: Estimate, profile: str, rests_on: str = "") -> Verdict:
    """Decide a claim on a quantity measured at ``profile``, which must be the claim's own or a larger one.

    A *proxy* never decides. That a paper contradicts itself can be shown only where no training and no clock had a
    say: by the grade ``rests_on``.
    Raises ClaimError when the profile is too small or the number of values does not fit the claim.
    """
    if PROFILES.index(profile) < PROFILES.index(claim.profile):
        raise ClaimError(f"claim {claim.id} is decided from {claim.profile}, not from {profile}")
    if not claim.expects(len(ours.values)):
        printed, steps = len(claim.printed), max(len(claim.order) - 1, 0)
        raise ClaimError(f"claim {claim.id}: {len(ours.values)} values for {steps or printed} of the paper's")
    if ours.proxy:
        return Verdict(claim, "not run", f"only a proxy was measured; needs {claim.needs}", None, profile, ours)
    if not ours.decidable:
        why = ": ".join(filter(None, ("what was measured is no number", ours.note)))
        return Verdict(claim, "inconclusive", why, ours, profile)
    if claim.undetermined:
        return Verdict(claim, "undetermined", claim.undetermined, ours, profile)
    count = len(ours.values)
    holds = inside(ours, accepted(claim, count))
    what = "the whole interval" if ours.spread else "the number, which has no interval,"
    if not holds and claim.margin and inside(ours, unseen(claim.margin, count)):
        why = f"the whole interval lies within {claim.margin:g} of no difference"
        return Verdict(claim, "no visible difference", why, ours, profile)
    if holds:
        return Verdict(claim, "reproduced", f"{what} satisfies the rule", ours, profile)
    if holds is None:
        return Verdict(claim, "inconclusive", "the interval straddles the bound", ours, profile)
    if claim.doubt and rests_on in COMPUTED:
        return Verdict(claim, "paper contradicts itself", claim.doubt, ours, profile)
    if claim.finding:
        return Verdict(claim, "not reproduced", claim.finding, ours, profile)
    return Verdict(claim, "not reproduced", f"{what} lies outside the tolerance", ours, profile, red=True)


def not_run(claim: Claim, why: str, proxy: Estimate | None = None) -> Verdict:
    """No evidence: say what is missing, or that only the paper's machine could give it."""
    if claim.machine:
        return Verdict(claim, "bound to the paper's machine", claim.machine, None, "", proxy)
    return Verdict(claim, "not run", why, None, "", proxy)


SHARED = ("where", "rule", "profile", "needs", "because", "tolerance", "relative", "side", "unit", "empirical",
          "lacks", "timed", "margin", "machine", "refuted_by", "kind")  # fmt: skip
OWN = ("says", *BASES, "order", "pairs", "quantity", "property", "doubt", "finding",
       "undetermined", "also", "row_of", "unit_shown")  # fmt: skip

DEFAULTS = {"rule": "within", "profile": "smoke", "needs": "nothing", "says": "", "where": "", "because": ""}


def _claim(claim_id: str, raw: dict[str, Any]) -> Claim:
    """A claim from the keys of its table and its artifact's."""
    given = [key for key in BASES if key in raw]
    if len(given) > 1:
        raise ClaimError(f"claim {claim_id}: a number is printed, follows or is asked; give one of the three")
    for basis in given:
        raw |= {"basis": basis, "printed": raw.pop(basis)}
    for key in ("printed", "tolerance"):
        if key in raw:
            raw[key] = tuple(map(float, raw[key] if isinstance(raw[key], list) else [raw[key]]))
    for key in ("order", "also"):
        if key in raw:
            raw[key] = tuple(raw[key])
    raw["pairs"] = tuple(map(tuple, raw.get("pairs", ())))
    # An artifact's defaults serve those of its claims that can use them.
    if raw["rule"] != "bound":
        raw.pop("side", None)
    if raw["rule"] not in ("within", "bound"):
        raw.pop("relative", None)
    raw.setdefault("quantity", claim_id.rpartition("/")[2])
    raw.setdefault("empirical", raw["needs"] != "nothing" and not raw.get("property"))
    return Claim(id=claim_id, **raw)


def _unknown(given: Iterable[str], known: Iterable[str]) -> str:
    return f"there is no key {', '.join(sorted(given))}; the keys are {', '.join(known)}"


def load(path: Path) -> list[Claim]:
    """The claims of one published file, in the order of the paper. Raises ClaimError naming the bad entry."""
    try:
        document: Mapping[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ClaimError(f"{path.name}: {error}") from error
    claims = []
    for artifact, table in document.items():
        if not isinstance(table, dict):
            raise ClaimError(f"{path.name}: {artifact!r} must be an artifact's table")
        defaults = {key: value for key, value in table.items() if not isinstance(value, dict)}
        if unknown := set(defaults) - set(SHARED):
            raise ClaimError(f"{path.name} [{artifact}]: {_unknown(unknown, SHARED)}")
        for name, entry in table.items():
            if not isinstance(entry, dict):
                continue
            claim_id = f"{path.stem}/{artifact}/{name}"
            if unknown := set(entry) - set(SHARED) - set(OWN):
                raise ClaimError(f"claim {claim_id}: {_unknown(unknown, (*SHARED, *OWN))}")
            try:
                raw = {**DEFAULTS, **defaults, **entry}
                if "lacks" in entry and "machine" not in entry:  # a claim's own reason stands over its artifact's
                    raw.pop("machine", None)
                claims.append(_claim(claim_id, raw))
            except (TypeError, ValueError) as error:
                raise error if isinstance(error, ClaimError) else ClaimError(f"claim {claim_id}: {error}") from error
    leads = {claim.id for claim in claims if not claim.row_of}
    for claim in claims:
        if claim.row_of and claim.row_of not in leads:
            raise ClaimError(f"claim {claim.id}: row_of = {claim.row_of!r} is no claim, or itself a row")
        if claim.kind in BOARD and not claim.refuted_by and any(other.refuted_by for other in claims):
            raise ClaimError(f"claim {claim.id}: refuted_by must say which observation would have refuted it")
    return claims
