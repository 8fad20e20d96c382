"""In which order to compute when time is short: the artifacts that decide most claims per second first."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from suite.claims.judge import ON_A_CPU, PROFILES, Claim
from suite.commands.plan import Planned
from suite.commands.terminal import duration
from suite.papers.artifact import Artifact, Paper
from suite.papers.catalogue import published

SHORTEST = 0.1  # seconds; what takes less is as good as free


def decidable(claim: Claim, artifact: Artifact, profile: str, device: str, have: Collection[str]) -> bool:
    """Whether an artifact's runs at a profile, on this device, decide a claim that ``have`` (run ids) leaves open."""
    if claim.lacks or claim.needs not in (*ON_A_CPU, *(("gpu",) if device == "cuda" else ())):
        return False
    if PROFILES.index(claim.profile) > PROFILES.index(profile):
        return False
    lowest = artifact.ids(claim.profile)
    return not lowest.issubset(have)


@dataclass(frozen=True)
class Stage:
    """What one artifact still needs when those before it are computed, and the claims that this decides."""

    artifact: str
    claims: tuple[str, ...]
    runs: tuple[Planned, ...]

    def seconds(self, workers: int) -> float:
        """With so many runs side by side, and nothing to wait for but the longest."""
        costs = [run.seconds for run in self.runs]
        return max(sum(costs) / workers, *costs)


def ranked(
    selection: Iterable[tuple[Paper, list[Artifact]]],
    planned: Sequence[Planned],
    profile: str,
    device: str,
    have: Collection[str] = (),
) -> list[Stage]:
    """The runs of a plan that are not in ``have``, in stages, the most valuable first.

    The artifact comes next that decides most of its claims per estimated second of the runs it adds to those before
    it. What decides no open claim comes last, and cheap before dear.
    """
    left = {item.spec.id: item for item in planned if item.spec.id not in have}
    wanting = [
        (artifact, [claim for claim in claims[artifact.id] if decidable(claim, artifact, profile, device, have)])
        for paper, artifacts in selection
        for claims in [_by_artifact(paper)]
        for artifact in artifacts
    ]
    users = {artifact.id: [p for p in planned if artifact.id in p.artifacts] for artifact, _ in wanting}
    made = []
    while wanting:

        def worth(entry: tuple[Artifact, list[Claim]]) -> tuple[float, float]:
            artifact, claims = entry
            seconds = max(sum(p.seconds for p in users[artifact.id] if p.spec.id in left), SHORTEST)
            return len(claims) / seconds, -seconds

        best = max(wanting, key=worth)
        wanting.remove(best)
        artifact, claims = best
        runs = [left.pop(p.spec.id) for p in users[artifact.id] if p.spec.id in left]
        if runs:
            runs.sort(key=lambda p: (p.seconds, p.spec.id))
            made.append(Stage(artifact.id, tuple(claim.id for claim in claims), tuple(runs)))
    return made


def within(made: Sequence[Stage], budget: float, workers: int) -> tuple[list[Stage], list[Stage]]:
    """Stages in their order that fit into so many seconds, one after another, and those that do not."""
    passed = 0.0
    fitting: list[Stage] = []
    rest: list[Stage] = []
    for stage in made:
        fits = passed + stage.seconds(workers) <= budget
        passed += stage.seconds(workers) if fits else 0.0
        (fitting if fits else rest).append(stage)
    return fitting, rest


def stages(
    selection: Iterable[tuple[Paper, list[Artifact]]],
    planned: Sequence[Planned],
    profile: str,
    device: str,
    have: Collection[str] = (),
    budget: float = math.inf,
    workers: int = 1,
) -> list[list[Planned]]:
    """The runs of :func:`ranked` by stage, those that fit the budget first; those in ``have`` are the last stage."""
    known = sorted((p for p in planned if p.spec.id in have), key=lambda p: p.seconds)
    fitting, rest = within(ranked(selection, planned, profile, device, have), budget, workers)
    return [stage for stage in [*(list(each.runs) for each in (*fitting, *rest)), known] if stage]


def forecast(made: Sequence[Stage], budget: float, workers: int) -> list[str]:
    """As text: what so many seconds decide, with ``workers`` runs side by side, stage by stage."""
    passed, text, decided = 0.0, [], 0
    for stage in within([each for each in made if each.claims], budget, workers)[0]:
        passed += stage.seconds(workers)
        decided += len(stage.claims)
        names = ", ".join(claim.rpartition("/")[2] for claim in stage.claims)
        text.append(f"{duration(passed):>12}  {stage.artifact}: {len(stage.runs)} runs decide {names}")
    side = f"{workers} runs side by side" if workers > 1 else "one run after another"
    return [f"in {duration(budget)} with {side}: {decided} claims by {len(text)} artifacts", *text]


def _by_artifact(paper: Paper) -> dict[str, list[Claim]]:
    claims: dict[str, list[Claim]] = {artifact.id: [] for artifact in paper.artifacts}
    for claim in published(paper.name):
        claims.setdefault(claim.artifact, []).append(claim)
    return claims
