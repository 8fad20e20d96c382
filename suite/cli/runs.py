"""Commands that make runs and say what is there: list, plan, run, status."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import (
    STORE,
    Budget,
    DataOption,
    Device,
    DeviceOption,
    Format,
    Json,
    Profile,
    ProfileOption,
    Seeds,
    Selectors,
    SourceOption,
    StoreOption,
    Workers,
    a_path,
    a_share,
    complete_selector,
)
from suite.cli.output import emit

SVG = [Format.svg]


def list_(selector: Selectors = None, *, store: SourceOption = None, as_json: Json = False) -> None:
    """Artifacts and claims, whose runs there are and what is missing."""
    from suite.commands.list_ import lines, listing
    from suite.commands.terminal import show, width

    rows = listing(selector or [], store)
    if as_json:
        emit(rows)
    else:
        show(lines(rows, width()))


def plan(
    selector: Selectors = None,
    *,
    profile: ProfileOption,
    store: SourceOption = None,
    data: DataOption = None,
    seconds: Annotated[
        float | None,
        typer.Option("--calibrate", min=1, help="time pieces of the runs here for so long first", metavar="SECONDS"),
    ] = None,
    device: Annotated[Device, typer.Option(help="where gradients are to be computed")] = Device.auto,
    seeds: Seeds = None,
    budget: Annotated[
        float | None, typer.Option(min=1, help="say what so much time decides instead", metavar="SECONDS")
    ] = None,
    workers: Workers = 1,
    as_json: Json = False,
) -> None:
    """The runs a selection would make, their estimated time and memory, and the data they need.

    Times are those of one core of a reference CPU until --calibrate has measured this machine: the store keeps what
    it found, and later plans use it. With --budget: the artifacts in the order in which `run` takes them with that
    budget, and the claims they decide.
    """
    from suite.commands import plan as planning
    from suite.commands.list_ import committed_ids
    from suite.commands.terminal import show
    from suite.papers.catalogue import select
    from suite.papers.evidence import ids_of_user
    from suite.runner.calibration import known

    selection = select(selector or [])
    planned = planning.plan(selection, profile, seeds)
    kept = planning.folder_for_calibration(store or STORE) if seconds else store or STORE
    yours, shipped = ids_of_user(store, new=True), committed_ids()
    calibration = known(kept)
    if seconds:
        todo = [p for p in planned if p.spec.id not in yours]
        calibration = planning.calibrate(todo, kept, device, data, seconds)
    planned = planning.calibrated(planned, calibration)
    if budget:
        from suite.commands.priority import forecast, ranked
        from suite.training.numerics import pick_device

        lacking = planning.missing_data(planned, data)
        here = [p for p in planned if not lacking.keys() & set(p.data)]
        on = device if device != Device.auto else pick_device(device)  # a plan for a card that is not here
        show(forecast(ranked(selection, here, profile, on, {*yours, *shipped}), budget, workers))
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
    selector: Selectors = None,
    *,
    profile: ProfileOption,
    store: StoreOption = STORE,
    data: DataOption = None,
    device: DeviceOption = Device.auto,
    workers: Workers = 1,
    budget: Budget = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="leave what other processes compute to them")] = False,
    share: Annotated[str | None, typer.Option(help="only part I of N of the plan, I from 0", metavar="I/N")] = None,
    memory: Annotated[
        int | None, typer.Option(min=1, help="only runs that need at most so many bytes", metavar="BYTES")
    ] = None,
    seeds: Seeds = None,
    track: Annotated[
        str | None, typer.Option(help="tell each stored run to this tracker: tensorboard or wandb", metavar="NAME")
    ] = None,
    on: Annotated[str | None, typer.Option("--on", help="hand the runs to this engine's workers: slurm")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="with --on: how many workers")] = None,
    engine_options: Annotated[
        Path | None, typer.Option(help="with --on: the engine's own options, TOML", metavar="F", parser=a_path)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="with --on: print what would be submitted")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="with --on: end when the workers have")] = False,
) -> None:
    """Compute and store the runs of a selection, here or by an engine; what is stored is not computed again."""
    part, chosen = a_share(share), selector or []
    if on is None:
        from suite.commands.run import run_artifacts
        from suite.papers.catalogue import select

        if jobs or engine_options or dry_run or wait:
            raise typer.BadParameter("--jobs, --engine-options, --dry-run and --wait need --on")
        around = (select(chosen), chosen, profile, store, data, device, workers, budget)
        raise typer.Exit(
            run_artifacts(*around, wait=not no_wait, share=part, memory=memory, seeds=seeds, track=track)
        )
    from suite.commands.submit import Request, submit_selection

    if budget or share or memory or seeds or no_wait or track:
        raise typer.BadParameter("--budget, --share, --memory, --seeds, --track and --no-wait do not go with --on")
    to = Request(on, jobs, engine_options, dry_run, wait)
    raise typer.Exit(submit_selection(chosen, profile, store, data, device, workers, to))


def vary(
    artifact: Annotated[
        str, typer.Argument(metavar="ARTIFACT", help="paper/artifact", autocompletion=complete_selector)
    ],
    *,
    changes: Annotated[
        list[str], typer.Option("--set", help="a setting and its value, or several values", metavar="KEY=VALUE")
    ],
    name: Annotated[str | None, typer.Option(help="for the files; the first variation's by default")] = None,
    profile: ProfileOption = Profile.smoke,
    seeds: Seeds = None,
    store: StoreOption = STORE,
    data: DataOption = None,
    device: DeviceOption = Device.auto,
    workers: Workers = 1,
    out: Annotated[Path, typer.Option(help="folder for the figure", metavar="D", parser=a_path)] = Path("figures"),
    forms: Annotated[list[Format], typer.Option("--format", help="file format; give it again for more")] = SVG,
) -> None:
    """An artifact's runs with other settings, drawn beside its own; judged by nothing.

    Several values behind commas make a sweep, several --set all combinations. Exit 1 when a run failed.
    """
    from suite.commands.vary import vary_artifact
    from suite.runs.files import check_writable

    check_writable(out)
    place = (store, data, device, workers, out, forms)
    code, said = vary_artifact(artifact, changes, name, profile, seeds, *place)
    print("\n".join(said))
    raise typer.Exit(code)


def status(
    *,
    store: StoreOption = STORE,
    watch: Annotated[bool, typer.Option("--watch", help="again every ten seconds, until nothing is left")] = False,
    as_json: Json = False,
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
