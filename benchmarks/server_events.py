"""Events per second of the simulated servers, and how the time per event grows with the learners.

    python -m benchmarks.server_events

One event is a gradient pushed and the weights pulled. Seconds are process time. The ratio compares 3,000 learners
with 30, alternating.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from itertools import islice

from paper_figures.rudra.machine import CIFAR_BYTES, INTERCONNECT, LATENCY, MEMORY
from reference_impls.rudra import Server
from suite.clock import Link
from suite.execute import spare_imports
from suite.parameter_server import Base, Messages
from suite.protocol import GammaDurations, Timed, play


def schedule(kind: str, learners: int, n: int) -> Iterator[Timed]:
    durations = GammaDurations(1.0, 0.05, 0)
    if kind == "integers":
        return play(Server(learners, n), learners, durations)
    costs = Messages(CIFAR_BYTES, Link(LATENCY, INTERCONNECT), Link(*MEMORY), 1e-5)
    return iter(Base(Server(learners, n), durations, costs))


def seconds_per_event(kind: str, learners: int, split: str, events: int = 60_000) -> float:
    """Process seconds of one event in steady state."""
    n = {"hardsync": 0, "1-softsync": 1, "lambda-softsync": learners}[split]
    each = learners // max(n, 1)
    made = schedule(kind, learners, n)
    for _ in islice(made, max(1, 2 * learners // each)):
        pass
    updates = max(1, events // each)
    began = time.process_time()
    for _ in islice(made, updates):
        pass
    return (time.process_time() - began) / (updates * each)


def main() -> None:
    spare_imports("rudra/protocol")  # as the suite does before a simulation
    for kind in ("integers", "messages"):
        for split in ("hardsync", "1-softsync", "lambda-softsync"):
            few, many = [], []
            for _ in range(5):
                few.append(seconds_per_event(kind, 30, split))
                many.append(seconds_per_event(kind, 3_000, split))
            ratio = statistics.median(b / a for a, b in zip(few, many, strict=True))
            print(
                f"{kind}, {split}: {1 / statistics.median(few):,.0f} events/s with 30 learners, "
                f"{1 / statistics.median(many):,.0f} with 3,000; time per event x {ratio:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
