"""The experiment ``rudra/systems``: base, adv and adv* as processes, whose learners sleep to compute (Table 1).

The root has a host of its own; the other hosts hold a leaf of the tree each, with its learners. Gradients and weights
travel over shaped links, or within a host. Bytes and seconds are scaled so that computing over the traffic of the
root's link is that of the paper's case, with fewer learners.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from suite.communication import link
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.experiment import Context, Outcome, in_lab
from suite.parameter_server.processes import Learner, TrainingJob, train
from suite.parameter_server.protocol import GammaDurations
from suite.parameter_server.servers import Layout, Served
from suite.spec import RunSpec, thaw
from suite.training.optimizers import CaffeSGD


def asleep(x: Tensor, seconds: float) -> tuple[float, Tensor]:
    time.sleep(seconds)
    return 0.0, torch.zeros_like(x)


def part(group: Group, settings: Mapping[str, Any], system: str, run_seed: int) -> dict[str, Any] | None:
    """A learner's seconds of computing and communicating, or the staleness of the gradients of updates to count."""
    drawn = GammaDurations(settings["seconds"], settings["jitter"], run_seed)
    layout = Layout(settings["learners"], system, per_leaf=settings["per_leaf"])
    job = TrainingJob(
        layout, settings["n"], torch.zeros(settings["numbers"]), lambda learner, number: drawn(learner), asleep,
        CaffeSGD(0.0), lambda t: 0.0, settings["updates"],
    )  # fmt: skip
    found = train(group, job)
    if isinstance(found, Served):
        turns = found.turns[settings["settle"] :]
        return {"staleness": [turn.t - entry.read for turn in turns for entry in turn.entries]}
    if isinstance(found, Learner):
        return {"computing": found.ledger.computing, "communicating": found.ledger.communicating}
    return None


@in_lab
def systems(spec: RunSpec, context: Context) -> Outcome:
    """Overlap in % and mean staleness of each system, and the table ``learners`` of their seconds."""
    settings = thaw(spec.settings)
    learners, per_leaf = settings["learners"], settings["per_leaf"]
    results: dict[str, float] = {}
    rows: list[dict[str, Any]] = []
    for place, system in enumerate(settings["systems"]):
        # The root has a host of its own, each leaf one with its learners.
        servers, leaves = Layout(learners, system, per_leaf=per_leaf).servers, -(-learners // per_leaf)
        hosts = [*range(len(servers)), *(1 + learner * leaves // learners for learner in range(learners))]
        with link.lab(1 + max(hosts), 8 / link.PAYLOAD * settings["bytes_per_second"]) as made:
            lab = tuple(made[host] for host in hosts)
            told = spawn(part, len(hosts), settings, system, spec.seed, timeout=settings["patience"], lab=lab)
        seconds = [each for each in told if each and "computing" in each]
        rows += [{"system": system, "learner": learner, **each} for learner, each in enumerate(seconds)]
        computing, waiting = (sum(each[name] for each in seconds) for name in ("computing", "communicating"))
        results[f"overlap {system}"] = 100 * computing / (computing + waiting)
        stale = told[0]["staleness"]
        results |= {f"staleness {system}": sum(stale) / len(stale), f"largest {system}": max(stale)}
        context.report((place + 1) / len(settings["systems"]))
    return Outcome("finished", results, {"learners": pd.DataFrame(rows)})
