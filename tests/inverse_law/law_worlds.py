"""Frames of searches whose counts follow a law that is known, and of a closed loop."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

from fabricated_frames import frame_of

from paper_figures.inverse_law.settings import law_runs
from suite.papers.artifact import Frame
from suite.spec import RunSpec

Law = Callable[[RunSpec, str], float]
"""Updates to the first threshold of a search, from its specification and its group."""


def search(spec: RunSpec, group: str, law: Law, scatter: float = 0.0) -> dict[str, Any]:
    """Each threshold takes 1.7 times the updates of the one above; a seed is late or early by a factor of its own."""
    tests = {"monitor": ["training"], "update": [1], "loss": [math.inf], "cut": [False]}
    results: dict[str, Any] = {"settings": spec.settings, "bleu_beam": 10.0 + spec.seed, "tables": {"tests": tests}}
    size = spec.settings.get("batch", spec.settings.get("words"))
    late = math.exp(random.Random(f"{spec.seed} {size}").gauss(0, scatter))
    for name, thresholds in spec.settings["monitors"].items():
        counts = [law(spec, group) * late * 1.7**place for place in range(len(thresholds))]
        falling = sorted(thresholds, reverse=True)
        crossed = [n if n <= spec.settings["limit"] else -1 for n in counts]
        results |= {f"thresholds_{name}": falling, f"crossed_{name}": crossed}
    return results


def searches(law: Law, names: Iterable[str], scatter: float = 0.0, keep: Callable[[str], int] | None = None) -> Frame:
    """The searches of these curves at reduced; ``keep`` says of a group how many of its first runs are stored."""
    chosen = {g: s for g, s in law_runs("reduced").items() if any(g.startswith(name) for name in names)}
    stored = keep or (lambda group: len(chosen[group]))
    runs = {
        group: [search(s, group, law, scatter) if at < stored(group) else None for at, s in enumerate(specs)]
        for group, specs in chosen.items()
    }
    return frame_of(runs, "reduced")


def inverse(floor: float = 90.0, sensitivity: float = 9_000.0) -> Law:
    return lambda spec, group: floor + sensitivity / spec.settings["batch"]


def power(exponent: float, floor: float = 90.0, rise: float = 9_000.0) -> Law:
    return lambda spec, group: floor + rise / spec.settings["batch"] ** exponent


BATCHES = (1, 2, 4, 8, 16, 32, 64)
KNEE = 8


def loop(seconds: Callable[[int], float] = lambda batch: 1e-3 * max(batch, KNEE), **tables: Any) -> Frame:
    """A closed loop: at 40 + 80 / M updates by 1, 1.1 and 1.3 of three seeds, three times, of which one is off."""
    trained, timed = [], []
    for batch in BATCHES:
        for seed, late in enumerate((1.0, 1.1, 1.3)):
            updates = late * 10 * (40 + 80 / batch)
            for repeat, off in enumerate((1.0, 1.0, 5.0)):
                spent = updates * seconds(batch) * off
                trained.append((batch, seed, repeat, updates, spent, 1e-3, 1e-3 * (1 + 0.1 * seed) * off))
        timed += [(batch, r, n, seconds(batch)) for r in range(3) for n in range(2)]
    frames = {
        "runs": columns(("batch", "seed", "repeat", "updates", "seconds", "early", "late"), trained),
        "timings": columns(("batch", "repeat", "round", "seconds"), timed),
        "batches": {
            "batch": BATCHES,
            "update_seconds": [seconds(b) for b in BATCHES],
            "predicted_seconds": [10 * (40 + 80 / b) * seconds(b) for b in BATCHES],
        },
    }
    return frame_of({"loop": [{"tables": frames | tables, "closed_form": 8.0, "chosen": 4}]})


def columns(names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    return dict(zip(names, zip(*rows, strict=True), strict=True))
