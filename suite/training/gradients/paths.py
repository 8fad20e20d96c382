"""The backends by the name that an execution gives them (its ``path``), and seeds of dropout's masks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from suite.training.gradients.backend import AutogradGradients, Backend, Vectorised
from suite.training.gradients.cuda_graph import Captured
from suite.training.gradients.native import Native

BACKENDS: dict[str, type[Backend]] = {kind.name: kind for kind in (AutogradGradients, Vectorised, Captured, Native)}


def backend(path: str, problem: Any, build: str | None = None) -> Backend:
    """The backend of a run by its name; raises ValueError where the run cannot have it. See ``Backend.of_run``."""
    return BACKENDS[path].of_run(problem, build)


def backend_of(execution: Mapping[str, Any], problem: Any) -> Backend:
    """The backend that a recorded execution names."""
    return backend(execution["path"], problem, execution.get("build"))


def refusals(problem: Any) -> dict[str, str]:
    """The backends that cannot compute a problem here, and why."""
    found = {name: kind.refusal(problem) for name, kind in BACKENDS.items()}
    return {name: why for name, why in found.items() if why}


def seed_masks(number: int, device: torch.device) -> None:
    """Have the next masks of dropout on ``device`` follow from a number.

    ``torch.manual_seed`` seeds the generators of all devices, which takes a share of a small network's update.
    """
    if device.type == "cuda":
        torch.cuda.manual_seed(number)
    else:
        torch.default_generator.manual_seed(number)
