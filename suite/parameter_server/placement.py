"""From plain settings to a server in virtual time: which machine each learner is on, and what its messages cost.

Settings::

    architecture     "base", "adv" or "adv*"
    seconds          {per_call, per_example, crowding, jitter}: one gradient's time, see :func:`learner_seconds`
    machines         machines that the learners are dealt over, one after the other
    model_bytes, network [latency, bytes per second], memory [latency, bytes per second], update_seconds
    tree             {per_leaf, fan_out, broadcast_fan_out, swap_seconds}   (adv and adv*; optional)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reference_impls.rudra_protocol import Server
from suite.clock import Link
from suite.parameter_server.flat import Base, Messages
from suite.parameter_server.protocol import GammaDurations
from suite.parameter_server.tree import ARCHITECTURES
from suite.spec import thaw


def placement(learners: int, machines: int) -> list[int]:
    """How many learners, itself included, share each learner's machine: [learners].

    Learners are dealt out in turn, so that numbers differ by at most one.
    """
    whole, rest = divmod(learners, machines)
    return [whole + (learner % machines < rest) for learner in range(learners)]


def learner_seconds(seconds: Mapping[str, float], batch: int, learners: int, machines: int) -> list[float]:
    """Mean seconds of one gradient of each learner: (per_call + per_example b) (1 + crowding (sharers - 1))."""
    alone = seconds["per_call"] + seconds["per_example"] * batch
    return [alone * (1 + seconds["crowding"] * (sharers - 1)) for sharers in placement(learners, machines)]


def simulation(settings: Mapping[str, Any], learners: int, n: int, batch: int, run_seed: int) -> Base:
    """A server with its learners, ready to be iterated over. Raises ValueError for an unknown architecture."""
    values = thaw(settings)
    name = values["architecture"]
    if name not in ARCHITECTURES:
        raise ValueError(f"architecture={name!r} must be one of {sorted(ARCHITECTURES)}")
    tree = values.get("tree", {})
    if name == "base" and tree:
        raise ValueError("architecture 'base' has one server and takes no tree; drop it or choose 'adv' or 'adv*'")
    seconds = values["seconds"]
    durations = GammaDurations(
        learner_seconds(seconds, batch, learners, values["machines"]), seconds["jitter"], run_seed
    )
    messages = Messages(
        values["model_bytes"], Link(*values["network"]), Link(*values["memory"]), values["update_seconds"]
    )
    return ARCHITECTURES[name](Server(learners, n), durations, messages, **tree)
