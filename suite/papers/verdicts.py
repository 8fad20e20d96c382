"""From stored runs and published claims to verdicts: used by ``check``, pytest and the report alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from suite.claims.families import correctable, corrected
from suite.claims.judge import PROFILES, Claim, ClaimError, Verdict, judge, not_run
from suite.experiment import Experiment
from suite.papers import catalogue
from suite.papers.artifact import Artifact, Evidence, Paper
from suite.papers.catalogue import PAPERS, entries, published
from suite.papers.grades import Grade, Rests, grade, read_of
from suite.papers.measurement import Measurement, measurements
from suite.papers.panel import Panel
from suite.papers.register import DECIDING, UNREGISTERED, Standing, read, standing, under
from suite.runner.cost import TRAIN
from suite.runs.archive import Runs


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
    experiments, stored = experiments_of(paper), source.ids()
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
        result.append(_verdict(claim, artifact, at[artifact.id], experiments, stored))
    return result


def judge_artifacts(paper: Paper, artifacts: Iterable[str], profile: str | None, source: Runs) -> list[Verdict]:
    """Verdicts of artifacts of a paper in their published order, claims on the same runs corrected together.

    Artifacts that read a run of these are judged too: a family is the same whoever asks.
    """
    wanted = list(dict.fromkeys(artifacts))
    found = verdicts(paper, source, profile=profile, artifacts=wanted)
    around = []
    if any(map(correctable, found)):
        around = verdicts(paper, source, profile=profile, artifacts=related(paper, wanted, source.ids()))
    since = read(PAPERS[paper.name].home).families
    return corrected([*found, *around], since)[: len(found)]


def related(paper: Paper, artifacts: Iterable[str], stored: Collection[str]) -> list[str]:
    """The other artifacts of a paper that are joined to these by stored runs, directly or through others."""
    left = {each.id: each.ids().intersection(stored) for each in paper.artifacts}
    runs = set().union(*(left.pop(artifact, set()) for artifact in set(artifacts)))
    joined: list[str] = []
    while near := [artifact for artifact, ids in left.items() if ids & runs]:
        runs = runs.union(*(left.pop(artifact) for artifact in near))
        joined += near
    return joined


def experiments_of(paper: Paper) -> dict[str, Experiment]:
    """The experiments that a paper's runs can name."""
    return {"train": TRAIN, **paper.experiments}


def grades(artifact: str, measurement: Measurement) -> dict[str, Grade]:
    """What each claim of an artifact rests on by one measurement, proxies included; nothing for an unknown paper."""
    paper = artifact.partition("/")[0]
    if paper not in catalogue.PAPERS:
        return {}
    asked = [c for c in entries(paper) if c.artifact == artifact and c.quantity in measurement.rests]
    experiments = experiments_of(catalogue.paper(paper))
    return {c.id: grade(c.id, measurement.rests[c.quantity], experiments) for c in asked}


def scales(panel: Panel, evidence: Evidence, measurement: Measurement, drawn: Iterable[str]) -> set[str]:
    """The scales of the runs that a panel has ``drawn`` (of all, where it read none) and that no claim rests on."""
    paper = panel.id.partition("/")[0]
    experiments = experiments_of(catalogue.paper(paper))
    asked = {spec.id for specs in evidence.groups.values() for spec in specs}
    claimed = {c.quantity for c in entries(paper) if c.artifact == panel.id}
    judged = {read.spec.id for name in claimed & set(measurement.rests) for read in measurement.rests[name].runs}
    frame = panel.read(evidence)
    alone = sorted(((asked.intersection(drawn) or asked) - judged).intersection(frame.stored))
    return {grade(f"{panel.id}/drawing", Rests((read_of(frame.stored[run]),)), experiments).rests_on for run in alone}


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
            rests = measurement.rests[claim.quantity]
            try:
                graded = grade(claim.id, rests, experiments)
            except Exception as error:  # hinders no other claim, as in ``measure_evidence``
                why = f"{claim.id} could not be graded: {type(error).__name__}: {error}"
                return Verdict(claim, "not run", why, ours, profile, red=True)
            try:
                verdict = judge(claim, ours, profile, graded.rests_on)
                began = {read.spec.id: read.began for read in rests.runs}
                held = standing(claim, artifact, began, stored, rests.digest)
                if verdict.verdict != "not run":
                    verdict = _graded(verdict, graded, held, rests)
                    verdict = _as_registered(verdict, held)
                    return _unless_contested(verdict, measurement)
            except ClaimError as error:  # what was measured does not fit the claim: nobody else's fault
                return Verdict(claim, "not run", str(error), ours, profile, red=True)
            proxy = proxy or verdict.proxy
        proxy = proxy or ours
    few = [m.few_seeds[claim.quantity] for m in measured.values() if claim.quantity in m.few_seeds]
    proxy = proxy or next(iter(few), None)
    return not_run(claim, lacking(claim, measured), proxy)


def _as_registered(verdict: Verdict, held: Standing) -> Verdict:
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
            said = judge(registered, ours, verdict.profile, verdict.rests_on)
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
    missing = measured[claim.profile].missing if claim.profile in measured else {}
    why = str(missing.get(claim.quantity, ""))
    return f"needs profile {claim.profile}{resource}" + (f": {why}" if why else "")


def _unless_contested(verdict: Verdict, measurement: Measurement) -> Verdict:
    """The verdict, or a red *inconclusive* that names the contested runs it would have rested on.

    Of a run that is held in another version, which its seeds are too few to judge, the verdict stands and says so.
    """
    rests = measurement.rests.get(verdict.claim.quantity)
    read = {run.spec.id for run in rests.runs} if rests else set[str]()
    if not (odd := sorted(read & set(measurement.survey.contested))):
        if unjudged := sorted(read & measurement.survey.untold):
            why = f"{verdict.why}; another version of {len(unjudged)} of its runs, {unjudged[0]} first, has too few "
            return replace(verdict, why=f"{why}seeds to be judged", disputed=True)
        return verdict
    why = f"would be {verdict.verdict}, but rests on contested evidence: {measurement.survey.contested[odd[0]]}"
    more = f" (and {len(odd) - 1} more runs)" if len(odd) > 1 else ""
    return replace(verdict, verdict="inconclusive", why=why + more, red=True)
