"""This machine: versions, devices, data found, which profiles can run. Exit 1 where --store cannot be shared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from suite.claims.judge import PROFILES
from suite.commands import options
from suite.commands.output import folded, result
from suite.commands.planning import missing_data, plan
from suite.communication import link
from suite.data.catalogue import DATASETS, available
from suite.files import check_writable, nearest
from suite.lazy import torch
from suite.papers.catalogue import select
from suite.runs.environment import provenance
from suite.runs.lease import PROBED, probe


def command(
    *,
    data: options.DataOption = None,
    store: Annotated[
        Path | None, options.place("test the file system of this store with two processes", "--store")
    ] = None,
    as_json: options.Json = False,
) -> None:
    facts = diagnose(data, store)
    result(facts, folded(lines(facts)), as_json)
    raise typer.Exit(0 if facts.get("store", {"ok": True})["ok"] else 1)


def diagnose(data: Path | None, store: Path | None = None) -> dict[str, Any]:
    """Facts about this machine as plain values. Imports torch to look for devices.

    Where a store is named, two processes test its file system, in the nearest folder that is there already; raises
    ValueError where nothing can be written.
    """
    if store:
        check_writable(store)
    gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    selection = select([])
    absent = {profile: missing_data(plan(selection, profile), data) for profile in PROFILES}
    facts = {
        **provenance(),
        "gpus": [{"name": g.name, "memory_bytes": g.total_memory} for g in gpus],
        "data": {name: dict(zip(("here", "where"), available(name, data), strict=True)) for name in DATASETS},
        "profiles": {profile: {"can_run": not lacks, "missing": lacks} for profile, lacks in absent.items()},
        "hosts": {"lack": link.probe()},
    }
    return facts | {"store": probe(nearest(store))} if store else facts


def lines(facts: Mapping[str, Any]) -> list[str]:
    """The diagnosis as text."""
    host = facts["machine"]
    memory = f"{host['memory_bytes'] / 2**30:.1f} GiB"
    text = [
        ", ".join([host["cpu"], f"{host['cores']} cores", memory, host["system"], f"Python {host['python']}"]),
        ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),
        "GPUs: " + (", ".join(g["name"] for g in facts["gpus"]) or "none (GPU tests and claims will say so)"),
        f"revision {facts['revision'][:12]}{' with changes' if facts['dirty'] else ''}",
    ]
    for name, state in facts["data"].items():
        text.append(f"data {name:<20} {'here' if state['here'] else 'missing':<8} {state['where']}")
    for profile, state in facts["profiles"].items():
        why = "" if state["can_run"] else f": needs {', '.join(state['missing'])}"
        text.append(f"profile {profile:<8} {'can run' if state['can_run'] else 'cannot run'}{why}")
    lack = facts["hosts"]["lack"]
    text.append(f"hosts over shaped links: {f'none, {lack}' if lack else 'can be made'}")
    if tested := facts.get("store"):
        wrong = [name.replace("_", " ") for name in PROBED if not tested[name]]
        verdict = f"CANNOT BE SHARED: it fails {', '.join(wrong)}" if wrong else "two processes see each other's work"
        text.append(f"store on {tested['file_system']}, claims by {tested['claims']}: {verdict}")
    return text
