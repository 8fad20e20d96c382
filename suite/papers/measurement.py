"""What the stored runs of an artifact say: every quantity that they can answer for, measured once in a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from suite.claims.estimate import Estimate
from suite.claims.judge import PROFILES
from suite.papers.artifact import Artifact, Evidence, Missing, few_seeds
from suite.papers.catalogue import PAPERS, entries, experiment
from suite.papers.grades import Rests, read_of
from suite.papers.panel import Panel
from suite.runs.archive import Runs, versions
from suite.runs.contest import Survey, survey
from suite.runs.store import CHECKSUMS, UnusableRun

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


def measurements(
    artifact: Artifact, source: Runs, profile: str | None = None, *, claimed: bool | None = None
) -> dict[str, Measurement]:
    """What an artifact's runs say at this profile, or at each, the largest first.

    Profiles that ask for the same runs say the same, as the largest of them does. ``claimed`` is as in ``measure``.
    """
    found: dict[str, Measurement] = {}
    for name in (profile,) if profile else reversed(PROFILES):
        same = next((other for other in found if artifact.runs(other) == artifact.runs(name)), None)
        found[name] = found[same] if same else measure(artifact, source, name, claimed)
    return found


def measure(artifact: Artifact, source: Runs, profile: str, claimed: bool | None = None) -> Measurement:
    """The quantities of an artifact that its stored runs at a profile can answer for.

    Quantities that lack seeds are measured on those that are stored too, to be shown: they decide nothing. The same
    runs are measured once in a process.

    ``claimed``: those alone that entries of its paper ask for, or those alone that none asks for; None: both.
    """
    contents = _contents(artifact, source, profile)
    key = id(artifact), profile, claimed, contents
    if key in _MEASURED:
        return _MEASURED[key][1]
    result = _measure(artifact, source, profile, claimed)
    if contents is not None and not result.damaged:  # what could not be read may be read the next time
        _MEASURED[key] = artifact, result
    return result


def _contents(artifact: Artifact, source: Runs, profile: str) -> tuple[Any, ...] | None:
    """The checksums of every version of the stored runs that are read; None where one cannot be used."""
    asked = artifact.ids(profile)
    if isinstance(artifact, Panel):
        asked |= {spec.id for specs in artifact.beside(profile).values() for spec in specs}
    try:
        runs = [versions(source, run_id) for run_id in sorted(asked & source.ids())]
    except UnusableRun:
        return None
    return tuple((each[0].id, *(run.files.get(CHECKSUMS) for run in each)) for each in runs)


def _measure(artifact: Artifact, source: Runs, profile: str, claimed: bool | None) -> Measurement:
    groups = artifact.runs(profile)
    result = measure_evidence(artifact, Evidence(source, groups, profile), claimed)
    if result.missing and (few := few_seeds(groups, source.ids())):
        part = measure_evidence(artifact, Evidence(source, few.groups, profile), claimed)
        result.damaged += part.damaged
        for name, value in part.found.items():
            if name not in result.found:
                note = "; ".join(filter(None, (f"{few} at {profile}", value.note)))
                result.few_seeds[name] = replace(value, proxy=True, note=note)
    return result


def measure_evidence(artifact: Artifact, evidence: Evidence, claimed: bool | None = None) -> Measurement:
    """The quantities of an artifact that its evidence can answer for; ``claimed`` is as in ``measure``.

    What goes wrong in one quantity (a run that fails to verify, a result that is not there) is told in ``damaged``,
    and hinders neither the other quantities nor the other artifacts.
    """
    result = Measurement()
    if isinstance(artifact, Panel):
        frame, asked = artifact.read(evidence), _asked(artifact.id)
        for name, quantity in {**artifact.quantities, **artifact.more(frame)}.items():
            if claimed is not None and claimed != (name in asked):
                continue
            try:
                part = quantity.needs(frame)
                value = quantity.measured(part)
            except Missing as error:
                result.missing[name] = error
            except UnusableRun as error:
                result.damaged.append(str(error))
            except Exception as error:
                why = f"{artifact.id}/{name} could not be measured at {evidence.profile}: {type(error).__name__}"
                result.damaged.append(f"{why}: {error}")
            else:
                runs = [part.stored[run] for run in dict.fromkeys(part.ids) if run]
                result.found[name] = value
                result.rests[name] = Rests(tuple(read_of(run, quantity.results) for run in runs))
    result.survey = survey(evidence.versions, is_timed, is_arithmetic)
    return result


def _asked(artifact: str) -> set[str]:
    """The quantities of an artifact that entries of its paper ask for; none of a paper that is not here."""
    paper = artifact.partition("/")[0]
    return {claim.quantity for claim in entries(paper) if claim.artifact == artifact} if paper in PAPERS else set()


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
