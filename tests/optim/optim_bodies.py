"""What worker processes run in the tests of the optimisers: importable by name, results as plain lists."""

from __future__ import annotations

import torch
from door import METHODS, network, train, weights

from suite.processes import Group


def equal_to_reference(group: Group, names: list[str], dtype: str) -> dict[str, list[float]]:
    """The evaluated model of each method after 50 updates, one start of the processes for all."""
    found = {}
    for name in names:
        module = network(getattr(torch, dtype), seed=group.rank)  # only process 0's weights count
        opt = METHODS[name].make(module, fused=False, group=group)
        train(opt, module)
        if METHODS[name].drains:
            opt.finish()
        found[name] = weights(opt.average()).tolist()
    return found
