"""The ways in which gradients can be computed, by name, and which of them a problem refuses here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch

from suite.training.gradients.cuda_graph import Captured, refusal
from suite.training.gradients.looped import Bound, Functional
from suite.training.gradients.native import Native
from suite.training.gradients.native import refusal as native_refusal
from suite.training.gradients.types import Gradients
from suite.training.gradients.vectorised import Vectorised

PATHS: dict[str, Callable[[Any], Gradients]] = {
    "looped": lambda problem: cast(Gradients, Bound(problem) if hasattr(problem, "flat") else Functional(problem)),
    "vectorised": Vectorised,
    "captured": Captured,
    "native": Native,
}


def draws_masks(module: torch.nn.Module) -> bool:
    """Whether a network drops out anything in training."""
    return any(isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0 for m in module.modules())


def seed_masks(number: int, device: torch.device) -> None:
    """Have the next masks of dropout on ``device`` follow from a number.

    ``torch.manual_seed`` seeds the generators of all devices, which takes a share of a small network's update.
    """
    if device.type == "cuda":
        torch.cuda.manual_seed(number)
    else:
        torch.default_generator.manual_seed(number)


def refusals(problem: Any) -> dict[str, str]:
    """The paths that a problem cannot take here, and why."""
    found = {}
    if why := refusal(problem):
        found["captured"] = why
    if hasattr(problem, "flat") and draws_masks(problem.flat.module):
        found["vectorised"] = (
            "a network with dropout cannot be packed or vectorised: its masks are drawn run by run, row by row"
        )
    if why := native_refusal(problem):
        found["native"] = why
    return found


def vectorised_of_run(problem: Any) -> Vectorised:
    """The vectorised gradients of a run. Raises ValueError with dropout, whose masks the loop draws row by row."""
    if why := refusals(problem).get("vectorised"):
        raise ValueError(f"{why}; use path looped")
    return Vectorised(problem)


def gradients_of_run(path: str, problem: Any, build: str | None = None) -> Gradients:
    """The gradients of a run executed by ``path``; ``build`` is the native one that it was begun with.

    Raises ValueError where they would not be those of the loop, or not those that the run began with.
    """
    if path == "native":
        return Native(problem, build)
    return vectorised_of_run(problem) if path == "vectorised" else PATHS[path](problem)
