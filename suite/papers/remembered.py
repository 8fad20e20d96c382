"""Verdicts on committed evidence, kept between calls: judged once for each state of code, rules and evidence.

The key of what is kept is a digest of every source file and published table of the suite and of the papers, of the
exported evidence, and of the libraries that compute. So an edit of any of them judges anew, and nothing has to be
cleared by hand. What reads a run of the user's own store is never kept: its files are verified at every reading.
Where SGD_SUITE_FRESH is set, as for everything that commits or publishes verdicts, nothing comes from memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from suite.claims.estimate import Estimate
from suite.claims.families import correctable, corrected
from suite.claims.judge import PROFILES, Verdict
from suite.papers.artifact import Paper
from suite.papers.evidence import exported_files, folders, ids_of
from suite.papers.published import published
from suite.papers.register import read, rule_of, under
from suite.papers.registry import PAPERS, homes
from suite.papers.verdicts import Measurement, verdicts
from suite.runs import disk_cache
from suite.runs.archive import Archive, Layered, Runs
from suite.runs.contest import Survey

ROOT = Path(__file__).parents[2]
READ = (
    ".py",
    ".toml",
    ".json",
    ".jsonl",
    ".txt",
    ".csv",
    ".cpp",
    ".h",
)  # what can change a verdict, besides evidence
FRESH = "SGD_SUITE_FRESH"
LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow")


def judge_artifact(
    paper: Paper,
    artifact: str,
    profile: str | None,
    source: Runs,
    survey: Survey | None = None,
    measured: dict[tuple[str, str], Measurement] | None = None,
) -> list[Verdict]:
    """Verdicts of an artifact's claims, from memory where ``source`` reads committed evidence alone for them.

    ``survey`` takes up which of its runs the source holds in several versions. ``measured`` takes up what was
    measured, for callers that want more than verdicts: for them nothing comes from memory.
    """
    place = _place(paper, artifact, profile, source)
    if measured is None and place is not None and (known := _load(place, paper)) is not None:
        return known
    measured = {} if measured is None else measured
    found = verdicts(paper, source, profile=profile, artifacts=[artifact], measured=measured)
    several = [measurement.survey for measurement in measured.values()]
    for one in several:
        if survey is not None:
            survey.add(one)
    lasting = not any(one.kinds for one in several) and not any(one.damaged for one in measured.values())
    if place is not None and lasting:  # what could not be read may be read the next time
        disk_cache.keep(place, json.dumps([_plain(verdict) for verdict in found]).encode())
    return found


def judge_artifacts(
    paper: Paper,
    artifacts: Iterable[str],
    profile: str | None,
    source: Runs,
    survey: Survey | None = None,
    measured: dict[tuple[str, str], Measurement] | None = None,
) -> list[Verdict]:
    """The same of several artifacts of a paper, claims on the same runs corrected together, in their published order.

    Artifacts that read a run of these are judged too: a family is the same whoever asks.
    """
    order = {claim.id: place for place, claim in enumerate(published(paper.name))}
    wanted = list(dict.fromkeys(artifacts))
    found = [v for artifact in wanted for v in judge_artifact(paper, artifact, profile, source, survey, measured)]
    around = []
    if any(map(correctable, found)):
        others = related(paper, wanted, source.ids())
        around = [v for artifact in others for v in judge_artifact(paper, artifact, profile, source)]
    since = read(PAPERS[paper.name].home).families
    judged = corrected([*found, *around], since)[: len(found)]
    return sorted(judged, key=lambda verdict: order[verdict.claim.id])


def related(paper: Paper, artifacts: Iterable[str], stored: Collection[str]) -> list[str]:
    """The other artifacts of a paper that are joined to these by stored runs, directly or through others."""
    wanted = set(artifacts)
    left = {each.id: ids_of(each, PROFILES).intersection(stored) for each in paper.artifacts}
    runs = set().union(*(left.pop(artifact, set()) for artifact in wanted))
    joined: list[str] = []
    while near := [artifact for artifact, ids in left.items() if ids & runs]:
        runs = runs.union(*(left.pop(artifact) for artifact in near))
        joined += near
    return joined


def _place(paper: Paper, artifact: str, profile: str | None, source: Runs) -> Path | None:
    """Where the verdicts are kept, or None if they may not be."""
    if os.environ.get(FRESH):
        return None
    layers = source.sources if isinstance(source, Layered) else (source,)
    archives = [layer for layer in layers if isinstance(layer, Archive)]
    if not archives or {archive.path.resolve() for archive in archives} != exported_files():
        return None
    own = set().union(*(layer.ids() for layer in layers if not isinstance(layer, Archive)))
    if own and own & ids_of(paper.artifact(artifact), [profile] if profile else PROFILES):
        return None
    name = f"{artifact.replace('/', '-')}-{profile or 'largest'}.json"
    return disk_cache.place("verdicts", state(), name)


@cache
def state() -> str:
    """A digest of everything that verdicts on committed evidence follow from."""
    found = hashlib.sha256(repr([sys.version, *((name, metadata.version(name)) for name in LIBRARIES)]).encode())
    for path in sorted(_files([ROOT / "suite", ROOT / "reference_impls", *homes()])):
        found.update(str(path).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    for path in sorted(path for folder in folders() for path in folder.glob("*.zip")):
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:20]


def _files(roots: Iterable[Path]) -> Iterator[Path]:
    for root in roots:
        for folder, _, names in os.walk(root):
            yield from (Path(folder, name) for name in names if name.endswith(READ))


def _plain(verdict: Verdict) -> dict[str, Any]:
    values = {name: getattr(verdict, name) for name in verdict.__dataclass_fields__ if name != "claim"}
    told = {name: asdict(values[name]) if values[name] else None for name in ("measured", "proxy")}
    later = verdict.exploratory and _plain(verdict.exploratory)
    before = rule_of(verdict.claim) if later else None  # the earlier rule that it is shown under
    return {**values, **told, "exploratory": later, "claim": verdict.claim.id, "rule": before}


def _load(place: Path, paper: Paper) -> list[Verdict] | None:
    """What was kept; None where nothing was, or it cannot be read."""
    if (data := disk_cache.recall(place)) is None:
        return None
    try:
        claims = {claim.id: claim for claim in published(paper.name)}
        return [replace(_verdict(claims[row.pop("claim")], row), remembered=True) for row in json.loads(data)]
    except (ValueError, KeyError, TypeError):
        return None


def _verdict(claim: Any, row: Mapping[str, Any]) -> Verdict:
    values: dict[str, Any] = dict(row)
    values |= {name: _measured(row[name]) for name in ("measured", "proxy")} | {"runs": tuple(row["runs"])}
    if later := values["exploratory"]:
        values["exploratory"] = _verdict(claim, {name: value for name, value in later.items() if name != "claim"})
    before = values.pop("rule")
    shown = claim if before is None else under(claim, before)
    return replace(Verdict(shown, values.pop("verdict"), values.pop("why")), **values)


def _measured(row: Mapping[str, Any] | None) -> Estimate | None:
    if row is None:
        return None
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
    return Estimate(**values)
