"""Refusals of what cannot be measured, before anything is timed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real


def check_pair(data: object) -> None:
    """Raise TypeError for anything but a pair of tensors."""
    from torch import Tensor

    parts = data if isinstance(data, tuple | list) else (data,)
    if len(parts) != 2 or not all(isinstance(part, Tensor) for part in parts):
        raise TypeError(
            f"data must be two tensors (inputs, targets), not {', '.join(type(part).__name__ for part in parts)}; "
            f"torch.as_tensor makes one of an array, and torch.cat of a loader's batches"
        )


def check_sizes(batches: Sequence[int], converge: Sequence[int] | None, examples: int, targets: int) -> None:
    """Raise ValueError for sizes that cannot be timed, or counted at."""
    for name, sizes in (("batches", batches), ("converge", converge or ())):
        if odd := [size for size in sizes if not isinstance(size, Integral) or isinstance(size, bool)]:
            raise ValueError(f"{name} has {odd[0]!r}; a batch size is a whole number of examples")
    sizes = sorted(set(batches))
    if len(sizes) < 2 or sizes[0] < 1 or sizes[-1] > examples or targets != examples:
        raise ValueError(f"batches={sizes} must be two or more sizes within the {examples} examples of the data")
    if converge is None:
        return
    if len(set(converge)) < 2:
        raise ValueError(
            f"converge={sorted(set(converge))} must name at least two batch sizes; the law has two constants"
        )
    if not 1 <= min(converge) <= max(converge) <= examples:
        raise ValueError(f"converge={sorted(set(converge))} must lie within the {examples} examples of the data")


def check_numbers(
    *,
    rate: float,
    threshold: float,
    seeds: Sequence[int],
    limit: int,
    growth: float,
    rounds: int,
    budget: float | None,
) -> None:
    """Raise ValueError for numbers with which nothing can be measured."""
    for name, value in (("rate", rate), ("threshold", threshold)):
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 < value < math.inf:
            raise ValueError(f"{name}={value!r} must be a positive, finite number")
    if len(seeds) < 1:
        raise ValueError("seeds=() must name at least one seed; updates are counted from each")
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds={tuple(seeds)} repeat; equal seeds give the same run again and no scatter")
    if limit < 1:
        raise ValueError(f"limit={limit} updates must be at least 1")
    if not growth >= 0:
        raise ValueError(f"growth={growth} of the steps between tests must be at least 0")
    if rounds < 1:
        raise ValueError(f"rounds={rounds} must be at least 1; the seconds of an update are measured in each")
    if budget is not None and not budget > 0:
        raise ValueError(f"budget={budget} must be a positive number of seconds")
