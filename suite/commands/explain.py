"""One verdict: value, rule, register entry, power, runs and figure. Exit 1 when it is red."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from suite.claims.board import said
from suite.claims.judge import Verdict
from suite.clock import counted, duration
from suite.commands import options
from suite.commands.output import folded, source
from suite.papers.artifact import Artifact
from suite.papers.catalogue import PAPERS, SelectorError, experiment, moved, paper, published
from suite.papers.measurement import judge_artifacts
from suite.report.verdict_details import reasons, runs_behind
from suite.runs.archive import Runs

LABELS = 13  # columns of what stands before the text of a line


def command(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help="paper/artifact/name")],
    *,
    store: options.SourceOption = None,
    only_mine: options.OnlyMine = False,
) -> None:
    read = source(store, only_mine)
    artifact, verdict = found(claim, read)
    print("\n".join(folded(lines(artifact, verdict, read), " " * LABELS)))
    raise typer.Exit(1 if verdict.red else 0)


def found(claim: str, source: Runs) -> tuple[Artifact, Verdict]:
    """A claim's artifact and verdict. Raises SelectorError for a name that is no claim's, naming near ones."""
    name, artifact_id = claim.partition("/")[0], claim.rpartition("/")[0]
    if name not in PAPERS:
        raise SelectorError(f"no claim is called {claim!r}; a claim is paper/artifact/name, such as isgd/fig5b/gain")
    if where := moved(claim):
        raise SelectorError(where)
    which = paper(name)
    artifacts = {each.id: each for each in which.artifacts}
    if claim in artifacts:
        claims = ", ".join(each.id for each in published(name) if each.artifact == claim)
        raise SelectorError(f"{claim} is an artifact; its claims are {claims or 'none'}")
    if "/" not in artifact_id:
        raise SelectorError(f"no claim is called {claim!r}; name one of {name}'s {', '.join(artifacts)}")
    if artifact_id not in artifacts:
        raise SelectorError(f"{name} has no artifact {artifact_id!r}; it has {', '.join(artifacts)}")
    judged = {verdict.claim.id: verdict for verdict in judge_artifacts(which, [artifact_id], None, source)}
    if claim not in judged:
        raise SelectorError(f"no claim is called {claim!r}; {artifact_id} has {', '.join(judged) or 'none'}")
    return artifacts[artifact_id], judged[claim]


def lines(artifact: Artifact, verdict: Verdict, source: Runs) -> Iterator[str]:
    """The verdict with value, rule, register entry, runs and figure."""
    rule = verdict.claim
    yield f"{rule.id}: {said(verdict)}"
    yield f"  {rule.says} ({rule.where})"
    for label, text in reasons(verdict, artifact):
        yield f"  {label:<10} {text}"
    for told in runs_behind(verdict, artifact, source):
        yield f"  runs       {told}"
    if artifact.draw is not None:
        yield f"  figure     sgd-suite figures {artifact.id}"
    profile = verdict.profile or rule.profile
    specs = artifact.specs(profile).values()
    count = counted(len(specs), "run")
    cost = duration(sum(experiment(spec.experiment).seconds(spec) for spec in specs))
    yield f"  again      sgd-suite run {artifact.id} --profile {profile} ({count}, about {cost} of one core)"
