"""Progress on stderr: a line per run and one every half minute; on a terminal one line that is written anew."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack

from suite.clock import duration
from suite.runs import background

EVERY, ON_A_TERMINAL = 30.0, 0.5  # seconds between two looks at what is under way
CLEAR = "\r\x1b[K"  # has a terminal begin its line anew
NAMED = 3  # runs under way whose updates a line tells
CHOOSING = "choosing an execution, at most 60 s where the machine is idle"  # what is done while no run is under way


class Progress:
    """Progress over runs weighted by their estimated seconds. Use as a context manager.

    A line every ``every`` seconds says that work goes on, so that a log tells a long run from a dead one. On a
    terminal that line is written over and over, in place of one for each run; ``updates`` are those that a run makes
    at most, by id.
    """

    def __init__(self, weights: Mapping[str, float], updates: Mapping[str, int] | None = None, every: float = EVERY):
        self.updates = updates or {}
        self.weights = {run_id: max(seconds, 1e-3) for run_id, seconds in weights.items()}
        self.total = sum(self.weights.values()) or 1.0
        self.fractions: dict[str, float] = {}
        self._gone = 0.0  # estimated seconds of what is done
        self.finished = 0
        self.started = time.monotonic()
        self.terminal = sys.stderr.isatty()
        self.every, self._telling = ON_A_TERMINAL if self.terminal else every, ExitStack()

    def __enter__(self) -> Progress:
        self._telling.enter_context(background.every(self.every, self._tell, "progress"))
        return self

    def __exit__(self, *error: object) -> None:
        self._telling.close()
        if self.terminal:
            sys.stderr.write(CLEAR)

    def _tell(self) -> None:
        going = {run_id: fraction for run_id, fraction in tuple(self.fractions.items()) if fraction < 1}
        counts = [
            (round(part * self.updates[run]), self.updates[run])
            for run, part in going.items()
            if run in self.updates and part  # how far a run is that is under way elsewhere is not known here
        ]
        told = ", ".join(f"{made:,} of {count:,}" for made, count in counts) if 0 < len(counts) <= NAMED else ""
        at = f" (update{'s' if len(counts) > 1 else ''} {told})" if told else ""
        doing = f"{len(going)} under way{at}, {self.done:.0%} done" if going else CHOOSING
        line = f"[{self.finished}/{len(self.weights)}] {doing}; {self._times()}"
        if self.terminal:
            sys.stderr.write(CLEAR + line[: shutil.get_terminal_size().columns - 1])
            sys.stderr.flush()
        else:
            print(line, file=sys.stderr)

    def _times(self) -> str:
        """The time gone and, once a part of the work is done, about the time left."""
        spent = time.monotonic() - self.started
        if not self.done:
            return f"{duration(spent)} gone"
        return f"{duration(spent)} gone, about {duration(spent * max(0.0, 1 - self.done) / self.done)} left"

    @property
    def done(self) -> float:
        """Share of the estimated cost that is done, 0..1; 1 where nothing is left."""
        return self._gone / self.total if self.total > 0 else 1.0

    def update(self, run_id: str, fraction: float) -> None:
        """A run reports how far it is, as a share from 0 to 1; its first report says that it is under way."""
        self._gone += self.weights[run_id] * (fraction - self.fractions.get(run_id, 0.0))
        self.fractions[run_id] = fraction

    def finish(self, run_id: str, line: str, *, computed: bool = True) -> None:
        """A run ended; ``line`` says how, and is empty where nobody need be told.

        One that was not computed here (stored already, or left for later) tells nothing of the pace.
        """
        self.finished += 1
        self.update(run_id, 1.0 if computed else 0.0)
        if not computed:
            del self.fractions[run_id]  # it is not under way
            self.total = max(0.0, self.total - self.weights[run_id])
        if line and not self.terminal:
            self.note(f"[{self.finished}/{len(self.weights)}] {line}; {self._times()}")

    def note(self, line: str) -> None:
        """A sentence for the user, which stays."""
        sys.stderr.write(f"{CLEAR if self.terminal else ''}{line}\n")
