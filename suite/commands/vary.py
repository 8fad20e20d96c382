"""The command ``vary``: an artifact's runs with other settings, drawn beside its own and judged by nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from suite.claims.estimate import Estimate
from suite.claims.judge import Claim
from suite.commands.check import console, sheet
from suite.commands.plan import first_seeds
from suite.commands.run import run_artifacts
from suite.commands.submit import Request, submit_artifacts
from suite.own.variation import Variation, VariationError, parse, variations
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Paper
from suite.papers.catalogue import SelectorError, published, select
from suite.papers.evidence import committed, with_committed
from suite.papers.measurement import measure_evidence
from suite.report.data import encoded
from suite.report.drawing import Drawing, file_name, filled, image, stamped, write
from suite.report.numerals import few, ours, values
from suite.report.overlay import UNCHANGED, Comparison, UndrawableError
from suite.runs.archive import Runs


def one(artifact: str) -> tuple[Paper, Artifact]:
    """The artifact of this id. Raises SelectorError for what names none, or several."""
    found = [(paper, each) for paper, artifacts in select([artifact]) for each in artifacts]
    if len(found) > 1:
        raise SelectorError(
            f"{artifact!r} means {len(found)} artifacts; vary one at a time, such as {found[0][1].id}"
        )
    return found[0]


def vary_artifact(
    artifact_id: str,
    texts: Sequence[str],
    name: str | None,
    profile: str,
    seeds: int | None,
    store: Path,
    data: Path | None,
    device: str,
    workers: int,
    out: Path,
    forms: Sequence[str],
    *,
    worker: bool = False,
    memory: int | None = None,
    to: Request | None = None,
) -> tuple[int, list[str]]:
    """Run the variations and what they are compared with, draw all; returns the exit code and what to print.

    Unchanged runs that the committed evidence has are not computed again. ``to`` asks an engine for workers instead,
    and draws where it is to wait for them. A ``worker`` leaves to others what they compute, and draws nothing;
    ``memory`` takes the runs that need no more bytes.

    Raises:
        EngineError: there is no such engine, or it refused the job.
        SelectorError: no such artifact.
        VariationError: it has no such setting, no runs at this profile, or another kind of value.
    """
    paper, artifact = one(artifact_id)
    planned = artifact.runs(profile).items()
    groups = {group: tuple(first_seeds(specs, seeds) if seeds else specs) for group, specs in planned}
    try:
        varied = variations(groups, parse(texts))
    except VariationError as error:
        raise VariationError(f"{artifact.id} at {profile}: {error}") from None
    named = name or re.sub(r"[^\w.-]+", "-", varied[0].label)
    check_name(named)
    shipped = {run_id for archive in committed() for run_id in archive.ids()}
    wanted = dict.fromkeys(
        spec for each in (groups, *(v.groups for v in varied)) for ss in each.values() for spec in ss
    )
    plan = replace(artifact, runs=lambda _: {named: tuple(spec for spec in wanted if spec.id not in shipped)})
    selection, asked = [(paper, [plan])], [artifact.id, named, *texts]
    around = (profile, store, data, device, workers)
    if to is not None:
        command = ["vary", artifact.id, *(word for text in texts for word in ("--set", text)), "--name", named]
        command += ["--seeds", str(seeds)] if seeds else []
        code = submit_artifacts(selection, command, asked, *around, to)
    else:
        code = run_artifacts(selection, asked, *around, wait=not worker, memory=memory)
    if worker or (to is not None and (to.dry_run or not to.wait)):
        return code, []
    return code, shown(artifact, groups, varied, named, profile, with_committed(store), out, forms)


def check_name(name: str) -> None:
    """Raise VariationError for a name that cannot be a part of a file's."""
    if not re.fullmatch(r"[\w.-]{1,80}", name):
        raise VariationError(f"--name {name!r} must be letters, digits, dots and hyphens: the figure's file bears it")


def shown(
    artifact: Artifact,
    groups: Groups,
    varied: Sequence[Variation],
    name: str,
    profile: str,
    source: Runs,
    out: Path,
    forms: Sequence[str],
) -> list[str]:
    """Draw and tabulate what is stored; print its quantities; returns the lines that say where the files are."""
    evidence = {UNCHANGED: Evidence(source, groups, profile)}
    evidence |= {each.label: Evidence(source, each.groups, profile) for each in varied}
    show_quantities(artifact, evidence)
    if artifact.draw is None:
        return [f"{artifact.id} has no drawing; the numbers above are all that it shows"]
    comparison = Comparison(artifact, evidence)
    path = out / file_name(f"{artifact.id}/{name}", "csv")
    try:
        table = comparison.table({each.label: each.changes for each in varied})
        wide = replace(artifact, size=comparison.size)
        stored = {spec.id for each in evidence.values() for specs in each.groups.values() for spec in specs}
        ids = tuple(sorted(stored & source.ids()))
        rests_on = ("settings changed, judged by nothing",)
        drawn = stamped(Drawing(wide, filled(wide, comparison.fill), profile, rests_on, ids))
    except (Missing, UndrawableError) as error:
        return [f"{artifact.id} is not drawn: {error}"]
    files = [write(path, encoded(table, "csv"))]
    files += [write(path.with_suffix(f".{form}"), image(drawn, form)) for form in forms]
    return [f"{', '.join(map(str, files))} ({drawn.stamp})"]


def show_quantities(artifact: Artifact, evidence: Mapping[str, Evidence]) -> None:
    """Print what the artifact measures of each set of runs, where they differ; the paper's values are left out."""
    claims = {
        each.quantity: each for each in published(artifact.id.partition("/")[0]) if each.artifact == artifact.id
    }
    found = {label: measure_evidence(artifact, each).found for label, each in evidence.items()}
    table = sheet("quantity", "settings", "ours")
    for name in dict.fromkeys(name for each in found.values() for name in each):
        told = {label: few(_said(each[name], claims.get(name))) for label, each in found.items() if name in each}
        if len(set(told.values())) > 1:
            for place, (label, text) in enumerate(told.items()):
                table.add_row("" if place else name, label, text)
    if table.rows:
        console().print(table)


def _said(value: Estimate, claim: Claim | None) -> list[str]:
    return ours(value, claim) if claim else values(value)
