"""The runs a selection would make, their estimated time and memory, and the data they need.

Times are those of one core of a reference CPU until --calibrate has measured this machine: the store keeps what
it found, and later plans use it. With --budget: the artifacts in the order in which `run` takes them with that
budget, and the claims they decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from suite.clock import counted, duration
from suite.commands import options, planning
from suite.commands.output import folded, memory, result
from suite.commands.planning import Planned
from suite.papers.catalogue import committed_ids, ids_of_user, select
from suite.runner import calibration
from suite.runner.calibration import Calibration
from suite.training.numerics import pick_device


def command(
    selector: options.Selectors = None,
    *,
    profile: options.ProfileOption,
    store: options.SourceOption = None,
    data: options.DataOption = None,
    calibrate: options.Calibrate = None,
    device: Annotated[options.Device, typer.Option(help="where gradients are to be computed")] = options.Device.auto,
    seeds: options.Seeds = None,
    only: options.Only = None,
    budget: Annotated[float | None, options.seconds("say what so much time decides instead")] = None,
    workers: options.Workers = 1,
    as_json: options.Json = False,
) -> None:
    selection = select(selector or [])
    planned = planning.plan(selection, profile, seeds, only)
    kept = store or options.STORE
    yours, shipped = ids_of_user(store, new=True), committed_ids()
    machine = calibration.known(kept)
    if calibrate:
        machine = planning.calibrate([p for p in planned if p.spec.id not in yours], kept, device, data, calibrate)
    planned = planning.calibrated(planned, machine)
    if not budget:
        total = summary(planned, yours, shipped, profile, data, machine)
        document = {**total, "plan": rows(planned, yours)}
        result(document, folded(lines(planned, yours, total)), as_json)
        return
    missing = planning.missing_data(planned, data)
    here = [p for p in planned if not missing.keys() & set(p.data)]
    on = device if device != options.Device.auto else pick_device(device)  # a plan for a card that is not here
    made = planning.deciding(planning.ranked(selection, here, profile, on, {*yours, *shipped}), budget, workers)
    stages = [{"artifact": each.artifact, "claims": each.claims, "plan": rows(each.runs, yours)} for each in made]
    text = [f"left out, {line}" for line in planning.lacking_data(missing)]
    text += planning.forecast(made, budget, workers)
    if machine is None:
        text.append(
            "by seconds of one core of the reference CPU; --calibrate, on the machine itself, measures its own"
        )
    document = {"profile": profile, "budget": budget, "missing_data": missing, "stages": stages}
    result(document, folded(text), as_json)


def summary(
    planned: Iterable[Planned],
    yours: Collection[str],
    shipped: Collection[str],
    profile: str,
    data: Path | None,
    machine: Calibration | None,
) -> dict[str, Any]:
    """How much there is to compute, and what is missing for it.

    ``yours`` are ids of runs in the store, ``shipped`` those of the committed evidence, which ``run`` computes again.
    """
    runs = list(planned)
    todo = [p for p in runs if p.spec.id not in yours]
    return {
        "profile": profile,
        "runs": len(runs),
        "yours": len(runs) - len(todo),
        "committed": sum(p.spec.id in shipped for p in todo),
        "core_seconds": round(sum(p.seconds for p in todo), 1),
        "peak_memory_bytes": max((p.memory for p in todo), default=0),
        "missing_data": planning.missing_data(todo, data),
        "calibrated": machine.device if machine else None,
    }


def rows(planned: Iterable[Planned], yours: Collection[str]) -> list[dict[str, Any]]:
    """The runs as plain values."""
    return [
        {
            "id": p.spec.id,
            "experiment": p.spec.experiment,
            "group": p.group,
            "seed": p.spec.seed,
            "seconds": round(p.seconds, 2),
            "memory_bytes": p.memory,
            "data": list(p.data),
            "yours": p.spec.id in yours,
            "artifacts": list(p.artifacts),
        }
        for p in planned
    ]


def lines(planned: Iterable[Planned], yours: Collection[str], total: Mapping[str, Any]) -> list[str]:
    """The plan as text: its summary ``total``, what is missing, then a line per run, the longest first."""
    device = total["calibrated"]
    basis = f"measured here on {device}" if device else "of one core of the reference CPU"
    cost = f"{duration(total['core_seconds'])} {basis}, at most {memory(total['peak_memory_bytes'])} each"
    held = f"{total['yours']} yours, {total['committed']} committed"
    unfinished = total["yours"] < total["runs"]
    left = f"what is not yours takes about {cost}" if unfinished else "nothing is left to compute"
    text = [f"{counted(total['runs'], 'run')} at {total['profile']}: {held}; {left}"]
    text += planning.lacking_data(total["missing_data"])
    if unfinished:
        text.append("on top: 3 s to start; to choose how a kind of training runs 10 to 60 s, or some 50 updates")
    if unfinished and not device:
        text.append("hosts have taken 0.4 to 2.4 times as long; --calibrate 60 measures this machine for a minute")
    return text + [_row(p, p.spec.id in yours) for p in sorted(planned, key=lambda p: -p.seconds)]


def _row(planned: Planned, yours: bool) -> str:
    """A run by artifact, group and seed, as figures and messages name it, with its id and who else wants it."""
    cost = "yours" if yours else f"{duration(planned.seconds)} {memory(planned.memory):>9}"
    first, *others = planned.artifacts or ("",)
    also = f"; also {', '.join(others)}" if others else ""
    return f"{cost:>22}  {first} {planned.group!r}, seed {planned.spec.seed}  {planned.spec.id}{also}"
