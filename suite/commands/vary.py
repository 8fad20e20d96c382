"""An artifact's runs with other settings, drawn beside its own; judged by nothing.

Several values behind commas make a sweep, several --set all combinations. Exit 1 when a run failed. With --on
and without --wait nothing is drawn: the same command without --on draws once the runs are stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from suite.claims.estimate import Estimate
from suite.claims.judge import PROFILES
from suite.commands import options
from suite.commands.check import console, sheet
from suite.commands.options import RunOptions
from suite.commands.planning import first_seeds
from suite.commands.run import run_artifacts, submit_artifacts
from suite.data.catalogue import DataError, available
from suite.experiment import Context
from suite.files import check_writable
from suite.lazy import Axes, Figure, np, pd
from suite.own.variation import Variation, VariationError, parse, variations
from suite.papers.artifact import Artifact, Frame, Groups, Missing, Paper
from suite.papers.catalogue import SelectorError, committed_ids, experiment, published, select, with_committed
from suite.papers.measurement import measure_frame
from suite.report.data import encoded, plotted
from suite.report.drawing import Drawing, file_name, filled, image, stamped
from suite.report.numerals import few, ours, values
from suite.runs.archive import Runs
from suite.runs.run import write
from suite.spec import canonical
from suite.training.numerics import choose, pick_device
from suite.training.settings import check_run

UNCHANGED = "unchanged"
ABREAST = 2  # drawings in a row
HEADING = 0.3  # inches above each of them


class UndrawableError(ValueError):
    """A drawing that does not take the varied runs."""


def command(
    artifact: Annotated[
        str, typer.Argument(metavar="ARTIFACT", help="paper/artifact", autocompletion=options.complete_selector)
    ],
    *,
    changes: Annotated[
        list[str], typer.Option("--set", help="a setting and its value, or several values", metavar="KEY=VALUE")
    ],
    name: Annotated[str | None, typer.Option(help="for the files; the first variation's by default")] = None,
    profile: options.ProfileOption = options.Profile.smoke,
    seeds: options.Seeds = None,
    store: options.StoreOption = options.STORE,
    data: options.DataOption = None,
    device: options.DeviceOption = options.Device.auto,
    workers: options.Workers = 1,
    out: Annotated[Path, options.place("folder for the figure")] = Path("figures"),
    forms: options.Formats = options.SVG,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="leave what other processes compute to them, and draw nothing")
    ] = False,
    memory: options.Memory = None,
    on: options.On = None,
    jobs: options.Jobs = None,
    engine_options: options.EngineOptions = None,
    dry_run: options.DryRun = False,
    wait: options.WaitForWorkers = False,
) -> None:
    to = options.Request(on, jobs, engine_options, dry_run, wait)
    to.check({"--memory": memory, "--no-wait": no_wait})
    check_writable(out)
    asked = RunOptions(profile, store, data, device, workers, wait=not no_wait, memory=memory)
    which, own = one_artifact(artifact)
    unchanged, *varied = varied_runs(own, changes, profile, seeds)
    named = name or re.sub(r"[^\w.-]+", "-", varied[0].label)
    if not re.fullmatch(r"[\w.-]{1,80}", named):
        raise VariationError(
            f"--name {named!r} must be letters, digits, dots and hyphens: the figure's file bears it"
        )
    check_settings(unchanged, varied, data, device)

    # Unchanged runs that the committed evidence has are not computed again.
    shipped = committed_ids()
    wanted = {spec.id: spec for each in (unchanged, *varied) for specs in each.groups.values() for spec in specs}
    plan = replace(own, runs=lambda _: {named: tuple(s for s in wanted.values() if s.id not in shipped)})
    selection, words = [(which, [plan])], [own.id, named, *changes]
    if to.on is None:
        code = run_artifacts(selection, words, asked)
    else:
        sets = [word for change in changes for word in ("--set", change)]
        first = ["--seeds", str(seeds)] if seeds else []
        code = submit_artifacts(selection, ["vary", own.id, *sets, "--name", named, *first], words, asked, to)
    if not no_wait and (on is None or (wait and not dry_run)):
        path = out / file_name(f"{own.id}/{named}", "csv")
        for line in shown(own, [unchanged, *varied], profile, with_committed(store), path, forms):
            print(line)
    raise typer.Exit(code)


def one_artifact(selector: str) -> tuple[Paper, Artifact]:
    """The artifact that is named, with its paper. Raises SelectorError where several are."""
    (found, *others) = [(paper, each) for paper, chosen in select([selector]) for each in chosen]
    if others:
        count = 1 + len(others)
        raise SelectorError(f"{selector!r} means {count} artifacts; vary one at a time, such as {found[1].id}")
    return found


def varied_runs(artifact: Artifact, texts: Sequence[str], profile: str, seeds: int | None) -> list[Variation]:
    """An artifact's own runs, of their first seeds, with no change, and those of each variation.

    Raises VariationError, which names the profiles at which the artifact's runs can be varied so.
    """
    planned = artifact.runs(profile).items()
    groups = {group: tuple(first_seeds(specs, seeds)) for group, specs in planned}
    asked = parse(texts)
    try:
        return [Variation({}, groups), *variations(groups, asked)]
    except VariationError as error:
        others = [name for name in PROFILES if _has(artifact.runs(name), asked)]
        cure = f"; it can be asked of its runs at {' and '.join(others)} (--profile {others[0]})" if others else ""
        raise VariationError(f"{artifact.id} at {profile}: {error}{cure}") from None


def _has(groups: Groups, asked: Mapping[str, Sequence[Any]]) -> bool:
    """Whether runs can be varied so."""
    try:
        return bool(variations(groups, asked))
    except VariationError:
        return False


def check_settings(unchanged: Variation, varied: Sequence[Variation], data: Path | None, device: str) -> None:
    """Set up one changed run of each kind. Raises VariationError for settings that no run could have.

    Of a run whose data set is not here the numbers alone are looked at. Raises DataError for data that no set has.
    """
    known = {spec.id for specs in unchanged.groups.values() for spec in specs}
    on = pick_device(device)
    for each in varied:
        changed = {
            canonical([s.experiment, s.settings]): s
            for specs in each.groups.values()
            for s in specs
            if s.id not in known
        }
        for spec in changed.values():
            made = experiment(spec.experiment)
            here = all(available(name, data)[0] for name in made.data(spec))
            with TemporaryDirectory() as folder:
                try:
                    check_run(spec, made.settings)
                    if made.check is not None and here:
                        made.check()(spec, Context(Path(folder), choose(spec, on, 1), data))
                except DataError:
                    raise
                except ValueError as error:
                    raise VariationError(f"no run can have {each.label}: {error}") from None


def shown(
    artifact: Artifact, varied: Sequence[Variation], profile: str, source: Runs, path: Path, forms: Sequence[str]
) -> list[str]:
    """Draw what is stored, and its table into ``path``; print its quantities; returns lines that name the files."""
    frames = {each.label or UNCHANGED: artifact.read(source, profile, each.groups) for each in varied}
    show_quantities(artifact, frames)
    if artifact.draw is None:
        return [f"{artifact.id} has no drawing; the numbers above are all that it shows"]
    width, height = artifact.size
    wide = replace(artifact, size=(ABREAST * width, -(-len(frames) // ABREAST) * (height + HEADING)))
    try:
        figure = filled(wide, partial(draw_side_by_side, artifact, frames))
        table = drawn_table(artifact, frames, figure, {each.label: each.changes for each in varied})
    except (Missing, UndrawableError) as error:
        return [f"{artifact.id} is not drawn: {error}"]
    stored = {spec.id for each in varied for specs in each.groups.values() for spec in specs}
    rests_on = ("settings changed, judged by nothing",)
    drawn = stamped(Drawing(wide, figure, profile, rests_on, tuple(sorted(stored & source.ids()))))
    files = [write(path, encoded(table, "csv"))]
    files += [write(path.with_suffix(f".{form}"), image(drawn, form)) for form in forms]
    return [f"{', '.join(map(str, files))} ({drawn.stamp})"]


def draw_side_by_side(artifact: Artifact, frames: Mapping[str, Frame], figure: Figure) -> None:
    """The artifact's drawing from the frame of each label, with the label above, on common axes."""
    parts = figure.subfigures(-(-len(frames) // ABREAST), ABREAST, squeeze=False).ravel()[: len(frames)]
    for (label, each), part in zip(frames.items(), parts, strict=True):
        part.suptitle(label, x=0.02, ha="left")
        try:
            artifact.draw(each, part)  # type: ignore[misc]
        except Missing:
            raise
        except Exception as error:  # a drawing may take for granted what another setting breaks
            why = f"{type(error).__name__}: {error}"
            raise UndrawableError(f"the drawing of {artifact.id} does not take runs with {label} ({why})") from error
    for panels in zip(*(part.axes for part in parts), strict=False):
        for axis in ("x", "y"):
            share_limits(panels, axis)


def share_limits(panels: Sequence[Axes], axis: str) -> None:
    """Let each panel reach as far as all of these do, where they have one scale."""
    if len({getattr(each, f"get_{axis}scale")() for each in panels}) > 1:
        return
    ends = [end for each in panels for end in getattr(each, f"get_{axis}lim")()]
    for each in panels:
        low, high = getattr(each, f"get_{axis}lim")()
        widest = (min(ends), max(ends))
        getattr(each, f"set_{axis}lim")(*(widest if low <= high else reversed(widest)))


def drawn_table(
    artifact: Artifact, frames: Mapping[str, Frame], figure: Figure, changes: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """What is drawn of each label, long, with a column for every changed setting; its value, or nothing."""
    parts, drawings = [], list[Any](figure.subfigs)
    for (label, each), part in zip(frames.items(), drawings, strict=False):
        shown = artifact.frame(each) if artifact.frame else plotted(part)
        values = {path: str(v) if isinstance(v, list) else v for path, v in changes.get(label, {}).items()}
        parts.append(shown.assign(setting=label, **values))
    return pd.concat(parts, ignore_index=True)


def show_quantities(artifact: Artifact, frames: Mapping[str, Frame]) -> None:
    """Print what the artifact measures of each set of runs, where they differ; the paper's values are left out."""
    claims = {
        each.quantity: each for each in published(artifact.id.partition("/")[0]) if each.artifact == artifact.id
    }
    found = {label: measure_frame(artifact, each).found for label, each in frames.items()}
    table = sheet("quantity", "settings", "ours")
    for name in dict.fromkeys(name for each in found.values() for name in each):
        said = partial(ours, claim=claims[name]) if name in claims else values
        told = {label: few(said(each[name])) for label, each in found.items() if name in each}
        if len(set(told.values())) > 1 and differ([each[name] for each in found.values() if name in each]):
            for place, (label, text) in enumerate(told.items()):
                table.add_row("" if place else name, label, text)
    console().print(table if table.rows else f"{artifact.id} measures nothing that differs between these settings")


def differ(found: Sequence[Estimate]) -> bool:
    """Whether a quantity is another in some of these, by more than rounding."""
    first, *others = ([*each.values, *each.low, *each.high] for each in found)
    close = partial(np.allclose, first, rtol=1e-9, atol=1e-12, equal_nan=True)
    return not all(len(first) == len(each) and close(each) for each in others)
