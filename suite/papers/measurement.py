"""What the stored runs of an artifact say: every quantity that they can answer for, measured once in a process.

From stored runs and published claims to verdicts: used by ``check``, pytest and the report alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from suite.claims.board import corrected_verdicts, of_a_family
from suite.claims.estimate import EXACT, GRADES, Estimate
from suite.claims.judge import PROFILES, Claim, ClaimError, Verdict, judge, not_run
from suite.papers import catalogue
from suite.papers.artifact import Artifact, Frame, Groups, Missing, Paper
from suite.papers.catalogue import entries, experiment, published
from suite.papers.grades import Grading, Rests
from suite.papers.register import DECIDING, UNREGISTERED, Standing, computed_by, read, standing, under
from suite.runs.archive import Runs, contents
from suite.runs.comparison import Survey, relation, survey
from suite.runs.run import Run, UnusableRun

STORED_WITHOUT = "; runs that were stored before they had such a result are computed anew in another --store"
_MEASURED: dict[Any, tuple[Artifact, Measurement]] = {}  # by artifact, profile and the contents of its runs


@dataclass
class Measurement:
    """What an artifact's runs at one profile say: quantities, what was missing for others, what is damaged."""

    found: dict[str, Estimate] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)  # by quantity, what stopped others
    damaged: list[str] = field(default_factory=list)
    rests: dict[str, Rests] = field(default_factory=dict)  # what each quantity was found from
    survey: Survey = field(default_factory=Survey)  # of the runs that the source holds in several versions
    few_seeds: dict[str, Estimate] = field(default_factory=dict)  # from the stored seeds where others are missing
    judged: dict[Claim, Verdict] = field(default_factory=dict)  # by the present rule, whenever it was registered


def few_seeds(groups: Groups, ids: Collection[str]) -> tuple[Groups, str] | None:
    """The groups at those seeds alone that every begun group has whole among ``ids``, and ``1 of 5 seeds`` as text.

    None where that is every seed, or none. Groups of one seed, and those without a whole one, stay as they are.
    """
    seeds = {name: dict.fromkeys(spec.seed for spec in specs) for name, specs in groups.items()}
    whole: dict[str, set[int]] = {}
    for name, specs in groups.items():
        absent = {spec.seed for spec in specs if spec.id not in ids}
        if len(seeds[name]) > 1 and (stored := set(seeds[name]) - absent):
            whole[name] = stored
    common = set.intersection(*whole.values()) if whole else set()
    planned = max((len(seeds[name]) for name in whole), default=0)
    if not common or len(common) == planned:
        return None
    part = {name: tuple(s for s in specs if name not in whole or s.seed in common) for name, specs in groups.items()}
    return part, f"{len(common)} of {planned} seeds"


def measurements(
    artifact: Artifact, source: Runs, profile: str | None = None, *, claimed: bool
) -> dict[str, Measurement]:
    """What an artifact's runs say at this profile, or at each, the largest first.

    Profiles that ask for the same runs say the same, as the largest of them does. ``claimed`` is as in ``measure``.
    """
    if profile:
        return {profile: measure(artifact, source, profile, claimed)}
    return {name: measure(artifact, source, artifact.alike(name), claimed) for name in reversed(PROFILES)}


def measure(artifact: Artifact, source: Runs, profile: str, claimed: bool) -> Measurement:
    """The quantities of an artifact that its stored runs at a profile can answer for.

    Quantities that lack seeds are measured on those that are stored too, to be shown: they decide nothing. The same
    runs are measured once in a process.

    ``claimed``: those alone that entries of its paper ask for, or those alone that none asks for.
    """
    asked = frozenset(_asked(artifact.id))
    key = None
    with suppress(UnusableRun):
        key = id(artifact), profile, claimed, asked, contents(source, artifact.reads(profile))
    if key in _MEASURED:
        return _MEASURED[key][1]
    wanted = lambda name: claimed == (name in asked)
    result = measure_frame(artifact, artifact.read(source, profile), wanted)
    if result.missing and (few := few_seeds(artifact.runs(profile), source.ids())):
        groups, seeds = few
        part = measure_frame(artifact, artifact.read(source, profile, groups), wanted)
        result.damaged += part.damaged
        for name, value in part.found.items():
            if name not in result.found and value.known:
                told = f"{seeds} at {profile}"
                note = "; ".join(filter(None, (told, value.note)))
                result.few_seeds[name] = replace(value, proxy=True, note=note, part=told)
    if key is not None and not result.damaged:  # what could not be read may be read the next time
        _MEASURED[key] = artifact, result
    return result


def measure_frame(artifact: Artifact, frame: Frame, wanted: Callable[[str], bool] = lambda name: True) -> Measurement:
    """The quantities of an artifact that are ``wanted``, by name, and that a frame of its runs can answer for.

    What goes wrong in one quantity (a run that fails to verify, a result that is not there) is told in ``damaged``,
    and hinders neither the other quantities nor the other artifacts.
    """
    result = Measurement()
    for name, quantity in {**artifact.quantities, **artifact.more(frame)}.items():
        if not wanted(name):
            continue
        try:
            part = quantity.needs(frame)
            value = quantity.measured(part)
        except Missing as error:
            result.missing[name] = error
        except UnusableRun as error:
            result.damaged.append(str(error))
        except Exception as error:
            why = f"{artifact.id}/{name} could not be measured at {frame.profile}: {type(error).__name__}"
            cure = STORED_WITHOUT if isinstance(error, KeyError) else ""
            if frame.rows and not quantity.groups:
                cure = "; it reads no group of runs, as quantity() names none behind its name"
            result.damaged.append(f"{why}: {error}{cure}")
        else:
            ids = dict.fromkeys(part.ids)
            result.found[name] = value
            runs = tuple(part.stored[run] for run in ids if run)
            result.rests[name] = Rests(runs, frozenset(ids) - {*value.runs})
    if frame.versions:
        result.survey = survey(frame.versions, is_timed, is_arithmetic)
    return result


def _asked(artifact: str) -> set[str]:
    """The quantities of an artifact that entries of its paper ask for, or did by a rule of before.

    None of a paper that is not here.
    """
    paper = artifact.partition("/")[0]
    if paper not in catalogue.PAPERS:
        return set()
    before = read(catalogue.PAPERS[paper].home).asked.get(artifact, set())
    return before | {claim.quantity for claim in entries(paper) if claim.artifact == artifact}


def _is(trait: str, name: str) -> bool:
    """Whether an experiment has a trait: False of a paper that is not here."""
    with suppress(KeyError):
        return bool(getattr(experiment(name), trait))
    return False


is_timed = partial(_is, "timed")  # its results rest on times, so that no two runs of it agree
is_arithmetic = partial(_is, "arithmetic")  # it counts and calculates, so that every execution agrees to rounding


def relate(held: Run, brought: Run) -> str:
    """How two versions of a run relate, in a word of :mod:`suite.runs.comparison`."""
    name = held.spec.experiment
    return relation(held, brought, timed=is_timed(name), arithmetic=is_arithmetic(name))


def besides(artifact: str, measured: Mapping[str, Measurement]) -> list[tuple[str, str, Estimate]]:
    """Name, profile and value of what an artifact measures and no claim of its paper asks for.

    Of several profiles the largest counts, or the smallest of those that say the same.
    """
    asked = {claim.quantity for claim in entries(artifact.partition("/")[0])}
    found: dict[str, tuple[str, str, Estimate]] = {}
    for profile in (name for name in PROFILES if name in measured):
        for name, value in measured[profile].found.items():
            if name not in asked and (name not in found or found[name][2] != value):
                found[name] = (name, profile, value)
    return list(found.values())


def verdicts(
    paper: Paper,
    source: Runs,
    *,
    profile: str | None = None,
    artifacts: Iterable[str] | None = None,
    claims: Iterable[Claim] | None = None,
) -> list[Verdict]:
    """A verdict for every claim of the chosen artifacts; ``claims`` are those of the board unless others are given.

    ``profile`` judges on that profile's runs; None takes, claim by claim, the largest profile with evidence.
    """
    by_id = {artifact.id: artifact for artifact in paper.artifacts}
    chosen = set(by_id if artifacts is None else artifacts)
    grading, stored = Grading(paper.name, paper.experiments), source.ids()
    at: dict[str, dict[str, Measurement]] = {}
    result = []
    for claim in published(paper.name) if claims is None else claims:
        if claim.artifact not in chosen:
            continue
        artifact = by_id.get(claim.artifact)
        if artifact is None:
            result.append(not_run(claim, "no experiment measures this artifact yet"))
            continue
        if artifact.id not in at:
            at[artifact.id] = measurements(artifact, source, profile, claimed=True)
        result.append(_verdict(claim, artifact, at[artifact.id], grading, stored))
    return result


def judge_artifacts(paper: Paper, artifacts: Iterable[str], profile: str | None, source: Runs) -> list[Verdict]:
    """Verdicts of artifacts of a paper in their published order, claims on the same runs corrected together.

    Artifacts that read a run of these are judged too: a family is the same whoever asks.
    """
    wanted = list(dict.fromkeys(artifacts))
    found = verdicts(paper, source, profile=profile, artifacts=wanted)
    around = []
    if any(map(of_a_family, found)):
        around = verdicts(paper, source, profile=profile, artifacts=related(paper, wanted, source.ids()))
    since = read(catalogue.PAPERS[paper.name].home).families
    return corrected_verdicts([*found, *around], since)[: len(found)]


def related(paper: Paper, artifacts: Iterable[str], stored: Collection[str]) -> list[str]:
    """The other artifacts of a paper that are joined to these by stored runs, directly or through others."""
    left = {each.id: each.ids().intersection(stored) for each in paper.artifacts}
    runs = set().union(*(left.pop(artifact, set()) for artifact in set(artifacts)))
    joined: list[str] = []
    while near := [artifact for artifact, ids in left.items() if ids & runs]:
        runs = runs.union(*(left.pop(artifact) for artifact in near))
        joined += near
    return joined


def scales(
    artifact: Artifact, groups: Groups, frame: Frame, measurement: Measurement, drawn: Collection[str]
) -> tuple[str, ...]:
    """What a drawing from the runs of these groups rests on, best first; nothing for a paper without entries.

    The scales of the artifact's measured claims, proxies included, and of the runs that were ``drawn`` (of all,
    without any) and that no claim rests on.
    """
    paper = artifact.id.partition("/")[0]
    if paper not in catalogue.PAPERS or not entries(paper):  # a question of ours has no scale
        return ()
    grading, rests = Grading(paper, catalogue.paper(paper).experiments), measurement.rests
    asked = [c for c in entries(paper) if c.artifact == artifact.id and c.quantity in rests]
    present = {grading.grade(claim.id, rests[claim.quantity]).rests_on for claim in asked}
    planned = {spec.id for specs in groups.values() for spec in specs}
    judged = {run.id for name in _asked(artifact.id) & set(rests) for run in rests[name].runs}
    alone = ((planned.intersection(drawn) or planned) - judged).intersection(frame.stored)
    for specs in groups.values():  # a group together, for the number of its seeds
        runs = tuple(frame.stored[spec.id] for spec in specs if spec.id in alone)
        if runs:
            present |= {grading.grade(f"{artifact.id}/drawing", Rests(runs)).rests_on} - {EXACT}
    present = present or ({EXACT} if drawn else set())  # exact runs beside others are not named
    return tuple(scale for scale in GRADES if scale in present)


def _verdict(
    claim: Claim,
    artifact: Artifact,
    measured: Mapping[str, Measurement],
    grading: Grading,
    stored: Collection[str],
) -> Verdict:
    """The verdict at the largest profile that measured the claim's quantity; smaller ones serve as proxy."""
    proxy, (smallest, *larger) = None, PROFILES
    for profile, measurement in measured.items():
        if measurement.damaged and claim.quantity not in measurement.found:
            return Verdict(claim, "not run", measurement.damaged[0], None, profile, red=True)
        large_enough = PROFILES.index(profile) >= PROFILES.index(claim.profile)
        ours = measurement.found.get(claim.quantity)
        if ours is not None and large_enough:
            rests = measurement.rests[claim.quantity]
            if claim not in measurement.judged:
                measurement.judged[claim] = _judged(claim, ours, rests, profile, grading)
            verdict = measurement.judged[claim]
            if verdict.verdict != "not run":
                held = standing(claim, artifact, rests.began, stored, rests.digest)
                verdict = replace(verdict, order=held.order, decides=verdict.decides and held.order in DECIDING)
                verdict = _as_registered(verdict, held, measurement.found)
                return _unless_contested(verdict, measurement)
            if verdict.red:
                return verdict
            proxy = proxy or verdict.proxy
        if profile == smallest and (artifact.ids(*larger) - artifact.ids(smallest)).intersection(stored):
            continue  # runs that only try the code stand in for nothing where there are others
        # a seed of a larger size says more than all of a smaller one
        proxy = proxy or (ours if ours is not None and ours.known else measurement.few_seeds.get(claim.quantity))
    return not_run(claim, lacking(claim, measured), proxy)


def _judged(claim: Claim, ours: Estimate, rests: Rests, profile: str, grading: Grading) -> Verdict:
    """The judge's word on a number and what it rests on; red *not run* where it has no grade or does not fit."""
    try:
        graded = grading.grade(claim.id, rests)
    except Exception as error:  # hinders no other claim, as in ``measure_frame``
        why = f"{claim.id} could not be graded: {type(error).__name__}: {error}"
        return Verdict(claim, "not run", why, ours, profile, red=True)
    try:
        verdict = judge(claim, ours, profile, graded.rests_on)
    except ClaimError as error:  # what was measured does not fit the claim: nobody else's fault
        return Verdict(claim, "not run", str(error), ours, profile, red=True)
    if verdict.verdict == "not run":
        return verdict
    return replace(
        verdict,
        rests_on=graded.rests_on,
        because=graded.because,
        settings=graded.printed,
        decides=graded.decides,
        runs=tuple(rests.began),
        digest=rests.digest,
        began=min(rests.began.values(), default=""),
        uncommitted=sum(not computed_by(run.environment) for run in rests.own),
    )


def _as_registered(verdict: Verdict, held: Standing, measured: Mapping[str, Estimate]) -> Verdict:
    """The verdict under the rule that stood when the runs began, the present rule's beside it as exploratory.

    ``measured`` are the artifact's numbers by quantity: the rule of then may ask for another one.
    """
    ours = verdict.measured
    if held.order == UNREGISTERED:
        return replace(verdict, red=True, why=f"{held.because}: `sgd-suite register` records it. {verdict.why}")
    if ours is None or verdict.verdict == "undetermined" or not (held.rule or held.earlier):
        return verdict
    registered = under(verdict.claim, held.rule) if held.rule else verdict.claim
    if not registered.unit and (registered.rule, registered.order) == (verdict.claim.rule, verdict.claim.order):
        registered = replace(registered, unit=verdict.claim.unit)  # the same comparison, whose unit was named later
    if held.earlier:
        known = held.earlier
        spans: dict[str, Any] = {name: tuple(map(float, known.get(name, ()))) for name in ("values", "low", "high")}
        number = replace(ours, **spans) if spans["values"] else ours
        found = replace(verdict, claim=registered, verdict=known["verdict"], measured=number, red=False)
    else:
        try:
            number = measured[registered.quantity]
            said = judge(registered, number, verdict.profile, verdict.rests_on)
            found = replace(verdict, claim=registered, verdict=said.verdict, measured=number, red=said.red)
        except (ClaimError, KeyError):  # the quantity of then is measured no more
            found = replace(verdict, verdict="inconclusive", red=False)
    if found.verdict == verdict.verdict:
        return verdict
    what, since = "the rule registered before these runs", held.date
    if held.rule is None and held.since:
        what, since = "by the number of before", held.since
    why = f"{what}; the one since {since[:10]} is exploratory: {verdict.verdict}"
    return replace(found, why=why, exploratory=verdict)


def lacking(claim: Claim, measured: Mapping[str, Measurement]) -> str:
    """What would be needed to decide a claim, in one sentence; of runs, those that its own profile lacks."""
    if claim.lacks:
        return claim.lacks
    resource = "" if claim.needs == "nothing" else f" ({claim.needs})"
    missing = measured[claim.profile].missing if claim.profile in measured else {}
    why = str(missing.get(claim.quantity, ""))
    return f"needs profile {claim.profile}{resource}" + (f": {why}" if why else "")


def _unless_contested(verdict: Verdict, measurement: Measurement) -> Verdict:
    """The verdict, or a red *inconclusive* that names the contested runs it would have rested on.

    Of a run that is held in another version, which its seeds are too few to judge, the verdict stands and says so.
    """
    rests = measurement.rests.get(verdict.claim.quantity)  # of the registered rule, which may ask for another
    read = {run.id for run in rests.runs} if rests else set[str]()
    if not (odd := sorted(read & measurement.survey.contested.keys())):
        if unjudged := sorted(read & measurement.survey.untold):
            why = f"{verdict.why}; another version of {len(unjudged)} of its runs, {unjudged[0]} first, has too few "
            return replace(verdict, why=f"{why}seeds to be judged", disputed=True)
        return verdict
    why = f"would be {verdict.verdict}, but rests on contested evidence: {measurement.survey.contested[odd[0]]}"
    more = f" (and {len(odd) - 1} more runs)" if len(odd) > 1 else ""
    return replace(verdict, verdict="inconclusive", why=why + more, red=True)
