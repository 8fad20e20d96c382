"""The experiment ``rudra/protocol``: a protocol without gradients, counted.

Settings::

    learners, n, updates       updates made; the first ``warm_up`` of them are counted apart from the steady state
    clock   {jitter, slow?}    integer protocol, mean gradient 1 s; ``slow`` multiplies learner 0's time
    server  {...}, batch       or, instead of ``clock``, messages in virtual time (``parameter_server.placement``)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, pairwise
from typing import Any

from reference_impls.rudra_protocol import Server, average_staleness
from suite.experiment import Context
from suite.lazy import np, pd
from suite.parameter_server.placement import simulation
from suite.parameter_server.protocol import GammaDurations, Staleness, Timed, play
from suite.runs.store import Outcome
from suite.spec import RunSpec


class Checked:
    """Passes updates on and keeps count of what must hold for every one of them."""

    def __init__(self, learners: int):
        self.expected = 0  # timestamp of the next update
        self.out_of_step = 0  # updates whose timestamp did not follow the last one's
        self.clock_above = -(10**9)  # largest timestamp of a vector clock, relative to its update's number
        self.numbers = [0] * learners  # next gradient of each learner
        self.out_of_order = 0  # gradients applied twice, skipped, or before an earlier one of the same learner
        self.uneven = 0  # updates to which one learner contributed twice and another not at all
        self.learners = learners
        self.clocks: dict[tuple[int, int], set[int]] = {}  # timestamps that each gradient came with
        self.timestamps_per_gradient = 0
        self.read: dict[int, int] = {}
        self.average_gap = 0.0  # between Eq. 2 and the mean staleness of an update's gradients
        self.renewals = 0  # gradients computed on other weights than the learner's last gradient

    def watch(self, timed: Iterable[Timed]) -> Iterator[Timed]:
        for now, turn in timed:
            self.out_of_step += turn.t != self.expected
            self.expected = turn.t + 1
            self.clock_above = max(self.clock_above, turn.entries[-1].read - (turn.t + 1))
            mean = sum(turn.t - entry.read for entry in turn.entries) / len(turn.entries)
            self.average_gap = max(self.average_gap, abs(average_staleness(turn) - mean))
            seen = Counter(entry.worker for entry in turn.entries)
            self.uneven += max(seen.values()) > 1 and len(seen) < self.learners
            for worker, read, number in sorted(turn.entries, key=lambda entry: entry.number):
                self.out_of_order += number != self.numbers[worker]
                self.numbers[worker] = number + 1
                self.renewals += read != self.read.get(worker, 0)
                self.read[worker] = read
                clocks = self.clocks.setdefault((worker, number), set())
                clocks.add(read)
                self.timestamps_per_gradient = max(self.timestamps_per_gradient, len(clocks))
            yield now, turn


def run(spec: RunSpec, context: Context) -> Outcome:
    """Count the updates of a protocol."""
    s = spec.settings
    learners, n, updates, warm_up = s["learners"], s["n"], s["updates"], s["warm_up"]
    schedule, ledger = _schedule(s, spec.seed)
    checked = Checked(learners)
    watched = checked.watch(schedule)
    early = Staleness().add(islice(watched, warm_up))
    began = early.seconds
    steady = Staleness().add(islice(watched, updates - warm_up))
    counts = Counter(early.counts) + steady.counts
    total = early.total + steady.total
    results: dict[str, Any] = {
        "mean": steady.mean,
        "smallest": min(counts),
        "largest": max(counts),
        "above_2n": early.above(2 * max(n, 1)) + steady.above(2 * max(n, 1)),
        "gradients": total,
        "median": _median(steady.counts),
        "near_n": sum(c for sigma, c in steady.counts.items() if abs(sigma - n) <= max(1, n // 6)) / steady.total,
        "gradients_per_update": sorted(early.sizes + steady.sizes),
        "gradients_by_learner": [(early.gradients + steady.gradients)[w] for w in range(learners)],
        "out_of_step": checked.out_of_step,
        "clock_above": checked.clock_above,
        "out_of_order": checked.out_of_order,
        "batches_applied": sum(checked.numbers),
        "timestamps_per_gradient": checked.timestamps_per_gradient,
        "average_gap": checked.average_gap,
        "uneven_updates": checked.uneven,
        "seconds_per_gradient": (steady.seconds - began) / steady.total,
        "virtual_seconds": steady.seconds,
    }
    if ledger is not None:
        results |= ledger(checked)
    return Outcome("finished", results, _curves(early, steady, counts))


def _schedule(s: Mapping[str, Any], seed: int) -> tuple[Iterator[Timed], Any]:
    learners, n = s["learners"], s["n"]
    if "clock" in s:
        clock = s["clock"]
        means = [1.0] * learners
        means[0] *= clock.get("slow", 1.0)
        return play(Server(learners, n), learners, GammaDurations(means, clock["jitter"], seed)), None
    base = simulation(s["server"], learners, n, s["batch"], seed)
    base.port.log = []

    def ledger(checked: Checked) -> dict[str, Any]:
        book, port = base.ledger, base.port
        intervals = port.log or []
        return {
            "overlap": book.overlap,
            "pushes": book.pushes,
            "pulls": book.pulls,
            "inquiries": book.inquiries,
            "skipped": book.skipped,
            "pushed_scalars": (book.pushed_bytes / book.pushes - base.messages.model_bytes) / 4,
            "needless_pulls": book.needless,
            "renewals": checked.renewals,
            "served": port.served,
            "overlapping_messages": sum(b[0] < a[1] for a, b in pairwise(intervals)),
            "server_busy": min(1.0, port.busy / base.env.now),
            "in_flight": sum(base.server.number) - sum(checked.numbers),
        }

    return iter(base), ledger


def _median(counts: Counter[int]) -> int:
    half, seen = sum(counts.values()) / 2, 0
    for sigma in sorted(counts):
        seen += counts[sigma]
        if seen >= half:
            return sigma
    raise AssertionError("no gradients")


def _curves(early: Staleness, steady: Staleness, counts: Counter[int]) -> dict[str, Any]:
    averages = np.asarray([*early.averages, *steady.averages], dtype=np.float32)
    step = max(1, len(averages) // 2000)
    shown = pd.DataFrame({"update": np.arange(0, len(averages), step, dtype=np.int32), "average": averages[::step]})
    spread = pd.DataFrame(
        {"staleness": np.asarray(sorted(counts), dtype=np.int32), "gradients": [counts[k] for k in sorted(counts)]}
    )
    return {"averages": shown, "distribution": spread}
