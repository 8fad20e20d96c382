"""Commands that make runs and say what is there: list, plan, run, status.

Commands between stores and benchmark documents: compare, export, merge, gate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli import options
from suite.cli.options import place, seconds
from suite.cli.output import emit


def list_(
    selector: options.Selectors = None, *, store: options.SourceOption = None, as_json: options.Json = False
) -> None:
    """Artifacts and claims, whose runs there are and what is missing."""
    from suite.commands.list_ import lines, listing
    from suite.commands.terminal import show, width

    rows = listing(selector or [], store)
    if as_json:
        emit(rows)
    else:
        show(lines(rows, width()))


def plan(
    selector: options.Selectors = None,
    *,
    profile: options.ProfileOption,
    store: options.SourceOption = None,
    data: options.DataOption = None,
    calibrate: options.Calibrate = None,
    device: Annotated[options.Device, typer.Option(help="where gradients are to be computed")] = options.Device.auto,
    seeds: options.Seeds = None,
    only: options.Only = None,
    budget: Annotated[float | None, seconds("say what so much time decides instead")] = None,
    workers: options.Workers = 1,
    as_json: options.Json = False,
) -> None:
    """The runs a selection would make, their estimated time and memory, and the data they need.

    Times are those of one core of a reference CPU until --calibrate has measured this machine: the store keeps what
    it found, and later plans use it. With --budget: the artifacts in the order in which `run` takes them with that
    budget, and the claims they decide.
    """
    from suite.commands import plan as planning
    from suite.commands.terminal import show
    from suite.papers.catalogue import select
    from suite.papers.evidence import committed_ids, ids_of_user
    from suite.runner.calibration import known

    selection = select(selector or [])
    planned = planning.plan(selection, profile, seeds, only)
    kept = store or options.STORE
    yours, shipped = ids_of_user(store, new=True), committed_ids()
    calibration = known(kept)
    if calibrate:
        todo = [p for p in planned if p.spec.id not in yours]
        calibration = planning.calibrate(todo, kept, device, data, calibrate)
    planned = planning.calibrated(planned, calibration)
    if budget:
        from suite.training.numerics import pick_device

        missing = planning.missing_data(planned, data)
        here = [p for p in planned if not missing.keys() & set(p.data)]
        on = device if device != options.Device.auto else pick_device(device)  # a plan for a card that is not here
        ranked = planning.ranked(selection, here, profile, on, {*yours, *shipped})
        made = planning.deciding(ranked, budget, workers)
        if as_json:
            stages = [
                {"artifact": each.artifact, "claims": each.claims, "plan": planning.rows(each.runs, yours)}
                for each in made
            ]
            emit({"profile": profile, "budget": budget, "missing_data": missing, "stages": stages})
            return
        left_out = [f"left out, {line}" for line in planning.lacking_data(missing)]
        show([*left_out, *planning.forecast(made, budget, workers)])
        if calibration is None:
            show(
                ["by seconds of one core of the reference CPU; --calibrate, on the machine itself, measures its own"]
            )
        return
    summary = planning.summary(planned, yours, shipped, profile, data, calibration)
    if as_json:
        emit({**summary, "plan": planning.rows(planned, yours)})
    else:
        show(planning.lines(planned, yours, summary))


def run(
    selector: options.Selectors = None,
    *,
    profile: options.ProfileOption,
    store: options.StoreOption = options.STORE,
    data: options.DataOption = None,
    device: options.DeviceOption = options.Device.auto,
    workers: options.Workers = 1,
    budget: options.Budget = None,
    no_wait: options.NoWait = False,
    share: Annotated[str | None, typer.Option(help="only part I of N of the plan, I from 0", metavar="I/N")] = None,
    memory: options.Memory = None,
    seeds: options.Seeds = None,
    only: options.Only = None,
    missing: Annotated[bool, typer.Option("--missing", help="only runs that the suite comes without")] = False,
    track: Annotated[
        str | None, typer.Option(help="tell each stored run to this tracker: tensorboard or wandb", metavar="NAME")
    ] = None,
    on: options.On = None,
    jobs: options.Jobs = None,
    engine_options: options.EngineOptions = None,
    dry_run: options.DryRun = False,
    wait: options.WaitForWorkers = False,
) -> None:
    """Compute and store the runs of a selection, here or by an engine; what is stored is not computed again."""
    part, chosen = options.a_share(share), selector or []
    others = {"--budget": budget, "--share": share, "--memory": memory, "--seeds": seeds, "--track": track}
    others |= {"--no-wait": no_wait, "--missing": missing, "--only": only}
    to = options.engine_request(on, jobs, engine_options, dry_run, wait, others)
    from suite.commands.run import RunOptions, run_artifacts
    from suite.papers.catalogue import select

    asked = RunOptions(
        profile, store, data, device, workers, budget, not no_wait, part, memory, seeds, track, missing, only
    )
    if to is None:
        raise typer.Exit(run_artifacts(select(chosen), chosen, asked))
    from suite.commands.submit import submit_artifacts

    raise typer.Exit(submit_artifacts(select(chosen), ["run", *chosen], chosen, asked, to))


def vary(
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
    out: Annotated[Path, place("folder for the figure")] = Path("figures"),
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
    """An artifact's runs with other settings, drawn beside its own; judged by nothing.

    Several values behind commas make a sweep, several --set all combinations. Exit 1 when a run failed. With --on
    and without --wait nothing is drawn: the same command without --on draws once the runs are stored.
    """
    from suite.commands.run import RunOptions
    from suite.commands.vary import vary_artifact
    from suite.files import check_writable

    to = options.engine_request(on, jobs, engine_options, dry_run, wait, {"--memory": memory, "--no-wait": no_wait})
    check_writable(out)
    asked = RunOptions(profile, store, data, device, workers, wait=not no_wait, memory=memory, seeds=seeds)
    code, said = vary_artifact(artifact, changes, name, asked, out, forms, to)
    for line in said:
        print(line)
    raise typer.Exit(code)


def status(
    *,
    store: options.StoreOption = options.STORE,
    watch: Annotated[bool, typer.Option("--watch", help="again every ten seconds, until nothing is left")] = False,
    as_json: options.Json = False,
) -> None:
    """What of a store's plans is stored, running (where, since when, how far), failed and queued."""
    import time

    from suite.commands import status as state

    found = state.status(store)
    while watch and not as_json and any(found["counts"][name] for name in ("queued", "running")):
        print("\n".join(state.lines(found)), flush=True)
        time.sleep(10)
        found = state.status(store)
    if as_json:
        emit(found)
    else:
        print("\n".join(state.lines(found)))


def compare(
    base: Annotated[Path, typer.Argument(help="store or exported file")],
    new: Annotated[Path, typer.Argument(help="store or exported file")],
    *,
    as_json: options.Json = False,
) -> None:
    """Regressions between two stores of the same runs. Exit 1 when there is one."""
    from suite.runs.archive import open_runs
    from suite.runs.comparison import compare_runs, lines

    found = compare_runs(open_runs(base), open_runs(new))
    if as_json:
        emit(found)
    else:
        print("\n".join(lines(found)))
    raise typer.Exit(1 if found["regressions"] else 0)


def export(
    selector: options.Selectors = None,
    *,
    store: options.StoreOption = options.STORE,
    out: Annotated[Path, place("file to write", metavar="F")] = Path("runs.zip"),
    profile: Annotated[options.Profile | None, typer.Option(help="only the runs of this profile")] = None,
    ro_crate: Annotated[bool, typer.Option("--ro-crate", help="describe the file in it as an RO-Crate")] = False,
) -> None:
    """Write stored runs into one file, and all their numbers into a table beside it, F with the ending .parquet."""
    from suite.files import check_file
    from suite.papers.evidence import export_selection

    check_file(out)
    print(export_selection(selector or [], store, out, profile, ro_crate=ro_crate))


def merge(
    file: Annotated[Path, typer.Argument(help="a file that export wrote")],
    *,
    store: options.StoreOption = options.STORE,
) -> None:
    """Take an exported file into a store, whole or not at all. Exit 1 when it contests a stored run."""
    from suite.clock import counted
    from suite.papers.measurement import relate
    from suite.runs.archive import Archive
    from suite.runs.archive import merge as take
    from suite.runs.store import Store

    done = take(Archive(file), Store(store, create=True), relate)
    other = f", {len(done.others)} kept as another execution made them" if done.others else ""
    print(f"{counted(len(done.new), 'run')} added, {len(done.present)} already there{other}")
    for run_id in done.contested:
        print(f"CONTESTED {run_id}: other tables than the store's of the same execution; both are kept, see `check`")
    raise typer.Exit(1 if done.contested else 0)


def gate(
    new: Annotated[list[Path], typer.Argument(help="benchmark documents of one state of the code, one per session")],
    *,
    as_json: options.Json = False,
) -> None:
    """Slowdowns against the baseline of this machine class. Exit 1 when there is one, 3 when one could hide."""
    from suite.speed import baselines as kept
    from suite.speed import gate as regression

    measured = kept.baseline([kept.read(path) for path in new])
    known = kept.read(kept.find_baseline(kept.FOLDER, measured["machine"]["class"]))
    found = regression.judged(kept.baseline([known]), measured, kept.FOLDER)
    if as_json:
        emit(found)
    else:
        print("\n".join(regression.lines(found)))
    raise typer.Exit(regression.exit_code(found))
