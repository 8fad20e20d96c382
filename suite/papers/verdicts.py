"""From stored runs and published claims to verdicts: used by ``check``, pytest and the report alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from suite.claims.estimate import EXACT, Estimate
from suite.claims.judge import PROFILES, Claim, ClaimError, Verdict, judge, not_run
from suite.experiment import Experiment
from suite.papers import registry
from suite.papers.artifact import Artifact, Evidence, Measure, Missing, Paper, few_seeds
from suite.papers.grades import Grade, Rests, grade, read_of, rests_of
from suite.papers.panel import Panel, Quantity
from suite.papers.published import entries, published
from suite.papers.register import DECIDING, UNREGISTERED, Standing, standing, under
from suite.papers.registry import experiment
from suite.runner.cost import TRAIN
from suite.runs.archive import Runs
from suite.runs.contest import Survey, survey
from suite.runs.store import UnusableRun


@dataclass
class Measurement:
    """What an artifact's runs at one profile say: quantities, what was missing for others, what is damaged."""

    found: dict[str, Estimate] = field(default_factory=dict)
    missing: dict[Measure | Quantity, Missing] = field(default_factory=dict)  # what stopped others
    damaged: list[str] = field(default_factory=list)
    rests: dict[str, Rests] = field(default_factory=dict)  # what each quantity was found from
    survey: Survey = field(default_factory=Survey)  # of the runs that the source holds in several versions
    few_seeds: dict[str, Estimate] = field(default_factory=dict)  # from the stored seeds where others are missing


def measure(artifact: Artifact, source: Runs, profile: str) -> Measurement:
    """All quantities of an artifact that its stored runs at a profile can answer for.

    Quantities that lack seeds are measured on those that are stored too, to be shown: they decide nothing.
    """
    groups = artifact.runs(profile)
    result = measure_evidence(artifact, Evidence(source, groups, profile))
    if result.missing and (few := few_seeds(groups, source.ids())):
        part = measure_evidence(artifact, Evidence(source, few.groups, profile))
        result.damaged += part.damaged
        for name, value in part.found.items():
            if name not in result.found:
                note = "; ".join(filter(None, (f"{few} at {profile}", value.note)))
                result.few_seeds[name] = replace(value, proxy=True, note=note)
    return result


def measure_evidence(artifact: Artifact, evidence: Evidence) -> Measurement:
    """All quantities of an artifact that its evidence can answer for.

    What goes wrong in one function (a run that fails to verify, a result that is not there) is told in
    ``damaged``, and hinders neither the other functions nor the other artifacts.
    """
    result = Measurement()
    for function in artifact.measures:
        evidence.reads.taken()
        before: dict[str, set[str]] = {}
        try:
            for name, value in function(evidence):
                since = evidence.reads.taken()
                result.rests[name] = rests_of(function, evidence.reads.given, value.runs, since, before)
                result.found[name] = value
                for run_id, names in since.items():
                    before.setdefault(run_id, set()).update(names)
        except Missing as error:
            result.missing[function] = error
        except UnusableRun as error:
            result.damaged.append(str(error))
        except Exception as error:
            why = f"{artifact.id} could not be measured at {evidence.profile}: {type(error).__name__}: {error}"
            result.damaged.append(why)
    if isinstance(artifact, Panel):
        _measure_frame(artifact, evidence, result)
    result.survey = survey(evidence.versions, is_timed, is_arithmetic)
    return result


def _measure_frame(panel: Panel, evidence: Evidence, result: Measurement) -> None:
    """Add every quantity that a panel's frame can answer for. What goes wrong in one hinders no other."""
    frame = panel.read(evidence)
    for name, quantity in panel.quantities.items():
        try:
            part = quantity.needs(frame)
            value = quantity.measured(part)
        except Missing as error:
            result.missing[quantity] = Missing(str(error), {name: str(error)})
        except UnusableRun as error:
            result.damaged.append(str(error))
        except Exception as error:
            why = f"{panel.id}/{name} could not be measured at {evidence.profile}: {type(error).__name__}: {error}"
            result.damaged.append(why)
        else:
            runs = [part.stored[run] for run in dict.fromkeys(part.runs["run"]) if run]
            result.found[name] = value
            result.rests[name] = Rests(quantity.value, tuple(read_of(run, quantity.results) for run in runs))


def is_timed(name: str) -> bool:
    """Whether the results of an experiment rest on times, so that no two runs of it agree."""
    try:
        return experiment(name).timed
    except KeyError:  # of a paper that is not here
        return False


def is_arithmetic(name: str) -> bool:
    """Whether an experiment counts and calculates, so that every execution agrees to rounding."""
    try:
        return experiment(name).arithmetic
    except KeyError:  # of a paper that is not here
        return False


def verdicts(
    paper: Paper,
    source: Runs,
    *,
    profile: str | None = None,
    artifacts: Iterable[str] | None = None,
    measured: dict[tuple[str, str], Measurement] | None = None,
    claims: Iterable[Claim] | None = None,
) -> list[Verdict]:
    """A verdict for every claim of the chosen artifacts; ``claims`` are those of the board unless others are given.

    ``profile`` judges on that profile's runs; None takes, claim by claim, the largest profile with evidence.
    ``measured`` takes up what was measured, by artifact and profile, for callers that want more than verdicts.
    """
    measured = {} if measured is None else measured
    chosen = set(artifacts) if artifacts is not None else {a.id for a in paper.artifacts}
    profiles = (profile,) if profile else tuple(reversed(PROFILES))
    by_id = {artifact.id: artifact for artifact in paper.artifacts}
    experiments, stored = experiments_of(paper), source.ids()
    same: dict[tuple[str, str], Measurement] = {}
    result = []
    for claim in published(paper.name) if claims is None else claims:
        if claim.artifact not in chosen:
            continue
        artifact = by_id.get(claim.artifact)
        if artifact is None:
            result.append(not_run(claim, "no experiment measures this artifact yet"))
            continue
        for p in profiles:
            if (artifact.id, p) not in measured:
                # profiles that need the same runs say the same: measured once
                runs = repr([(name, [spec.id for spec in specs]) for name, specs in artifact.runs(p).items()])
                if (artifact.id, runs) not in same:
                    same[artifact.id, runs] = measure(artifact, source, p)
                measured[artifact.id, p] = same[artifact.id, runs]
        at = {p: measured[artifact.id, p] for p in profiles}
        result.append(_verdict(claim, artifact, at, experiments, stored))
    return result


def experiments_of(paper: Paper) -> dict[str, Experiment]:
    """The experiments that a paper's runs can name."""
    return {"train": TRAIN, **paper.experiments}


def grades(artifact: str, measurement: Measurement) -> dict[str, Grade]:
    """What each claim of an artifact rests on by one measurement, proxies included; nothing for an unknown paper."""
    paper = artifact.partition("/")[0]
    if paper not in registry.PAPERS:
        return {}
    asked = [c for c in entries(paper) if c.artifact == artifact and c.quantity in measurement.rests]
    experiments = experiments_of(registry.paper(paper))
    return {c.id: grade(c.id, measurement.rests[c.quantity], experiments) for c in asked}


def scales(panel: Panel, evidence: Evidence, measurement: Measurement) -> set[str]:
    """The scales of a panel's runs that no quantity reads, and that are drawn all the same."""
    experiments = experiments_of(registry.paper(panel.id.partition("/")[0]))
    own = {spec.id for specs in evidence.groups.values() for spec in specs}
    own -= {read.spec.id for rests in measurement.rests.values() for read in rests.runs}
    frame = panel.read(evidence)
    alone = [Rests(panel.read, (read_of(frame.stored[run]),)) for run in sorted(own & set(frame.stored))]
    return {grade(f"{panel.id}/drawing", rests, experiments).rests_on for rests in alone} - {EXACT}


def besides(artifact: str, measured: Mapping[tuple[str, str], Measurement]) -> list[tuple[str, str, Estimate]]:
    """Name, profile and value of what an artifact measures and no claim of its paper asks for.

    Of several profiles the largest counts, or the smallest of those that say the same.
    """
    claims = entries(artifact.partition("/")[0])
    asked = {c.quantity for c in claims} | {c.known_difference.shown_by for c in claims if c.known_difference}
    found: dict[str, tuple[str, str, Estimate]] = {}
    for profile in PROFILES:
        if (artifact, profile) in measured:
            for name, value in measured[artifact, profile].found.items():
                if name not in asked and (name not in found or found[name][2] != value):
                    found[name] = (name, profile, value)
    return list(found.values())


def _verdict(
    claim: Claim,
    artifact: Artifact,
    measured: Mapping[str, Measurement],
    experiments: Mapping[str, Experiment],
    stored: Collection[str],
) -> Verdict:
    """The verdict at the largest profile that measured the claim's quantity; smaller ones serve as proxy."""
    proxy = None
    for profile, measurement in measured.items():
        if measurement.damaged and claim.quantity not in measurement.found:
            return Verdict(claim, "not run", measurement.damaged[0], None, profile, red=True)
        large_enough = PROFILES.index(profile) >= PROFILES.index(claim.profile)
        ours = measurement.found.get(claim.quantity)
        if ours is not None and large_enough:
            shown = claim.known_difference and measurement.found.get(claim.known_difference.shown_by)
            rests = measurement.rests[claim.quantity]
            try:
                graded = grade(claim.id, rests, experiments)
            except Exception as error:  # hinders no other claim, as in ``measure_evidence``
                why = f"{claim.id} could not be graded: {type(error).__name__}: {error}"
                return Verdict(claim, "not run", why, ours, profile, red=True)
            try:
                verdict = judge(claim, ours, profile, shown or None, graded.rests_on)
                began = {read.spec.id: read.began for read in rests.runs}
                held = standing(claim, artifact, began, stored, rests.digest)
                if verdict.verdict != "not run":
                    verdict = _graded(verdict, graded, held, rests)
                    verdict = _as_registered(verdict, held, shown or None)
                    return _unless_contested(verdict, measurement)
            except ClaimError as error:  # what was measured does not fit the claim: nobody else's fault
                return Verdict(claim, "not run", str(error), ours, profile, red=True)
            proxy = proxy or verdict.proxy
        proxy = proxy or ours
    few = [m.few_seeds[claim.quantity] for m in measured.values() if claim.quantity in m.few_seeds]
    proxy = proxy or next(iter(few), None)
    return not_run(claim, lacking(claim, measured), proxy)


def _as_registered(verdict: Verdict, held: Standing, shown: Estimate | None) -> Verdict:
    """The verdict under the rule that stood when the runs began, the present rule's beside it as exploratory."""
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
            said = judge(registered, ours, verdict.profile, shown, verdict.rests_on)
            found = replace(verdict, claim=registered, verdict=said.verdict, red=said.red)
        except ClaimError:  # another quantity is measured today
            found = replace(verdict, verdict="inconclusive", red=False)
    if found.verdict == verdict.verdict:
        return verdict
    if held.rule is None and held.since:
        why = f"by the number of before; the one since {held.since[:10]} is exploratory: {verdict.verdict}"
    else:
        why = (
            f"the rule registered before these runs; the one since {held.date[:10]} is exploratory: {verdict.verdict}"
        )
    return replace(found, why=why, exploratory=verdict)


def _graded(verdict: Verdict, grade: Grade, held: Standing, rests: Rests) -> Verdict:
    """The verdict with what it rests on, and whether its rule stood first."""
    return replace(
        verdict,
        rests_on=grade.rests_on,
        because=grade.because,
        settings=grade.printed,
        decides=grade.decides and held.order in DECIDING,
        order=held.order,
        runs=tuple(read.spec.id for read in rests.runs),
        digest=rests.digest,
        began=min((read.began for read in rests.runs), default=""),
    )


def lacking(claim: Claim, measured: Mapping[str, Measurement]) -> str:
    """What would be needed to decide a claim, in one sentence; of runs, those that its own profile lacks."""
    if claim.lacks:
        return claim.lacks
    resource = "" if claim.needs == "nothing" else f" ({claim.needs})"
    why = _stopped(claim.quantity, measured, claim.profile)
    return f"needs profile {claim.profile}{resource}" + (f": {why}" if why else "")


def _stopped(quantity: str, measured: Mapping[str, Measurement], profile: str) -> str:
    """What stopped the function that finds a quantity; nothing where it is not known which one does."""
    missing = measured[profile].missing if profile in measured else {}
    for error in missing.values():
        if quantity in error.rows:
            return error.rows[quantity]
    finds = {found.rests[quantity].measure for found in measured.values() if quantity in found.rests}
    subject = quantity.partition("-")[2] or quantity  # of what an artifact lacks, this quantity's own part
    surely = [
        str(error)
        for function, error in missing.items()
        if not isinstance(function, Quantity) and (function in finds or names(function, quantity))
    ]
    said = list(dict.fromkeys(map(str, missing.values())))
    likely = [text for text in said if subject in text.split() or len(said) == 1]
    return "; ".join(dict.fromkeys(surely or likely))


def _unless_contested(verdict: Verdict, measurement: Measurement) -> Verdict:
    """The verdict, or a red *inconclusive* that names the contested runs it would have rested on.

    Of a run that is held in another version, which its seeds are too few to judge, the verdict stands and says so.
    """
    needed = [verdict.claim.quantity]
    if verdict.claim.known_difference:
        needed.append(verdict.claim.known_difference.shown_by)
    read = {run.spec.id for name in needed if name in measurement.rests for run in measurement.rests[name].runs}
    if not (odd := sorted(read & set(measurement.survey.contested))):
        if unjudged := sorted(read & measurement.survey.untold):
            why = f"{verdict.why}; another version of {len(unjudged)} of its runs, {unjudged[0]} first, has too few "
            return replace(verdict, why=f"{why}seeds to be judged", disputed=True)
        return verdict
    why = f"would be {verdict.verdict}, but rests on contested evidence: {measurement.survey.contested[odd[0]]}"
    more = f" (and {len(odd) - 1} more runs)" if len(odd) > 1 else ""
    return replace(verdict, verdict="inconclusive", why=why + more, red=True)


def measures_of(quantity: str, artifact: Artifact) -> list[Callable[..., Any]]:
    """The measures that name a quantity as a whole text; where none does (the name is put together), all."""
    if isinstance(artifact, Panel):
        return [artifact.quantities[quantity].value] if quantity in artifact.quantities else []
    return [function for function in artifact.measures if names(function, quantity)] or list(artifact.measures)


@cache
def names(function: Measure, quantity: str) -> bool:
    """Whether the text of a measure names a quantity."""
    try:
        return f'"{quantity}"' in inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        return False
