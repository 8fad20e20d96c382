"""In which order to compute when time is short: the artifacts that decide most claims per second first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from suite.claims.judge import ON_A_CPU, PROFILES, Claim
from suite.commands.plan import Planned
from suite.papers.artifact import Artifact, Paper
from suite.papers.published import published

SHORTEST = 0.1  # seconds; what takes less is as good as free


def decidable(claim: Claim, artifact: Artifact, profile: str, device: str, have: Collection[str]) -> bool:
    """Whether an artifact's runs at a profile, on this device, decide a claim that ``have`` (run ids) leaves open."""
    if claim.lacks or claim.needs not in (*ON_A_CPU, *(("gpu",) if device == "cuda" else ())):
        return False
    if PROFILES.index(claim.profile) > PROFILES.index(profile):
        return False
    lowest = {spec.id for specs in artifact.runs(claim.profile).values() for spec in specs}
    return not lowest.issubset(have)


def stages(
    selection: Iterable[tuple[Paper, list[Artifact]]],
    planned: Sequence[Planned],
    profile: str,
    device: str,
    have: Collection[str] = (),
) -> list[list[Planned]]:
    """The runs of a plan in stages, the most valuable first.

    A stage is what one artifact still needs. Artifacts with claims that only a GPU decides come before all others
    (on a GPU), and among either the one comes next that decides most of its claims per estimated second of the runs
    it adds to those before it. Runs in ``have`` cost nothing; what decides no open claim comes last, and cheap
    before dear.
    """
    left = {item.spec.id: item for item in planned}
    wanting = [
        (artifact, [claim for claim in claims[artifact.id] if decidable(claim, artifact, profile, device, have)])
        for paper, artifacts in selection
        for claims in [_by_artifact(paper)]
        for artifact in artifacts
    ]
    users = {artifact.id: [p for p in planned if artifact.id in p.artifacts] for artifact, _ in wanting}
    made = []
    while wanting:

        def worth(entry: tuple[Artifact, list[Claim]]) -> tuple[bool, float, float]:
            artifact, claims = entry
            costs = [p.seconds for p in users[artifact.id] if p.spec.id in left and p.spec.id not in have]
            seconds = max(sum(costs), SHORTEST)
            only_here = sum(claim.needs == "gpu" for claim in claims)
            return only_here > 0, (only_here or len(claims)) / seconds, -seconds

        best = max(wanting, key=worth)
        wanting.remove(best)
        stage = [left.pop(p.spec.id) for p in users[best[0].id] if p.spec.id in left]
        if stage:
            made.append(sorted(stage, key=lambda p: (p.spec.id in have, p.seconds, p.spec.id)))
    known = [p for stage in made for p in stage if p.spec.id in have]
    fresh = [[p for p in stage if p.spec.id not in have] for stage in made]
    return [stage for stage in [*fresh, known] if stage]


def _by_artifact(paper: Paper) -> dict[str, list[Claim]]:
    claims: dict[str, list[Claim]] = {artifact.id: [] for artifact in paper.artifacts}
    for claim in published(paper.name):
        claims.setdefault(claim.artifact, []).append(claim)
    return claims
