"""The experiment ``inverse_law/networks``: sizes of the networks of Table 1 as built."""

from __future__ import annotations

from typing import Any

from torch import nn

from suite.experiment import Context
from suite.models import build
from suite.runs.store import Outcome
from suite.spec import RunSpec


def networks(spec: RunSpec, context: Context) -> Outcome:
    """Parameters and weight layers of every network named in ``networks``: [{name, classes}, ...]."""
    results: dict[str, Any] = {}
    for number, entry in enumerate(spec.settings["networks"], 1):
        module = build(entry["name"], classes=entry["classes"])
        layers = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
        results[f"parameters_{number}"] = sum(p.numel() for p in module.parameters())
        results[f"layers_{number}"] = len(layers)
        results[f"outputs_{number}"] = layers[-1].weight.shape[0]
    return Outcome("finished", results)
