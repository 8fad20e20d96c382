"""The command ``explain``: all that stands behind one verdict."""

from __future__ import annotations

from collections.abc import Iterator

from suite.claims.board import word
from suite.claims.judge import Verdict
from suite.commands.falsify import counted
from suite.papers.artifact import Artifact, Paper
from suite.papers.code import code_of, made_by
from suite.papers.counterfeits import power, trials
from suite.papers.register import place_of, standing
from suite.papers.registry import PAPERS, paper
from suite.papers.remembered import judge_artifact
from suite.papers.selection import SelectorError
from suite.report.numerals import ours, printed, tolerance
from suite.runs.archive import Runs


def found(claim: str, source: Runs) -> tuple[Paper, Artifact, Verdict]:
    """A claim's paper, artifact and verdict. Raises SelectorError for a name that is no claim's, naming near ones."""
    name, artifact_id = claim.partition("/")[0], claim.rpartition("/")[0]
    if name not in PAPERS:
        raise SelectorError(f"no claim is called {claim!r}; a claim is paper/artifact/name, such as isgd/fig5b/gain")
    which = paper(name)
    try:
        artifact = which.artifact(artifact_id)
    except KeyError:
        known = ", ".join(each.id for each in which.artifacts)
        raise SelectorError(f"{name} has no artifact {artifact_id!r}; it has {known}") from None
    judged = judge_artifact(which, artifact_id, None, source)
    for verdict in judged:
        if verdict.claim.id == claim:
            return which, artifact, verdict
    raise SelectorError(f"no claim is called {claim!r}; {artifact_id} has {', '.join(v.claim.id for v in judged)}")


def lines(claim: str, source: Runs) -> Iterator[str]:
    """The verdict with value, rule, register entry, counterfeits, runs and figure."""
    _, artifact, verdict = found(claim, source)
    rule, measured = verdict.claim, verdict.measured
    yield f"{rule.id}: {word(verdict)}"
    yield f"  {rule.says} ({rule.where})"
    yield f"  printed    {', '.join(printed(rule)) or 'no number'}"
    yield f"  ours       {', '.join(ours(measured, rule)) if measured else 'not measured'}"
    yield f"  why        {verdict.why}"
    yield f"  rule       {rule.rule} {rule.side}".rstrip() + f", {tolerance(rule) or 'no tolerance'}: {rule.because}"
    if verdict.rests_on:
        decides = "decides" if verdict.decides else "decides nothing"
        yield f"  rests on   {verdict.rests_on}{': ' + verdict.because if verdict.because else ''} ({decides})"
    yield from _registered(verdict)
    for place in dict.fromkeys(map(place_of, artifact.measures)):
        yield f"  measure    {place}"
    if measured is not None:
        departures = ", ".join(f"{p:.3g}" for p in power(rule, measured))
        yield f"  power      catches a departure of {departures} {rule.unit} four times in five"
    if counted(verdict):
        tried = trials(verdict, artifact, source)
        for trial in tried:
            yield f"  {trial.ending:<10} {trial.world}: {trial.found}"
        if not tried:
            yield "  FAULT      no counterfeit: nothing shows that it could fail"
    for run_id in measured.runs if measured else ():
        run = source.read(run_id)
        began = run.environment.get("started", "before starts were recorded")
        by = f"{made_by(run)} {code_of(run)}"
        yield f"  run        {run_id} {run.spec.experiment} seed {run.spec.seed}, by {by}, begun {began}"
    if artifact.draw is not None:
        yield f"  figure     sgd-suite figures {artifact.id}"
    yield f"  again      sgd-suite run {artifact.id} --profile {verdict.profile or rule.profile}"


def _registered(verdict: Verdict) -> Iterator[str]:
    held = standing(verdict.claim.id)
    if held is None:
        yield "  register   no entry"
        return
    yield f"  register   {held.change} {held.date}: {held.because}"
    if held.earlier:
        spans = zip(*(held.earlier.get(name, ()) for name in ("values", "low", "high")), strict=True)
        values = ", ".join(f"{value} [{low}, {high}]" for value, low, high in spans)
        yield f"  earlier    {held.earlier['verdict']} {values}".rstrip()
