"""Server and learners over queues in one process: what they say to each other, and when one of them breaks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import Queue
from types import SimpleNamespace
from typing import Any

import pytest
import server_bodies as bodies
import torch
from torch import Tensor

from reference_impls.contract import Turn
from suite.communication.group import WorkerLost
from suite.parameter_server import processes
from suite.parameter_server.processes import Learner
from suite.parameter_server.servers import FAIL, GO, PUSH, Connection, Layout, Root


class End(Connection):
    """One end of a connection; what the other end puts in is a message, or an error of the connection."""

    def __init__(self, incoming: Queue[Any], outgoing: Queue[Any], upper: int = 0, lower: int = 1):
        self.incoming, self.outgoing, self.upper, self.lower, self.other = incoming, outgoing, upper, lower, lower

    def send_vector(self, vector: Tensor) -> None:
        self.outgoing.put(vector.clone())

    def receive_vector(self, like: Tensor) -> Tensor:
        vector = self.incoming.get(timeout=60)
        if isinstance(vector, Exception):
            raise vector
        assert (vector.shape, vector.dtype) == (like.shape, like.dtype)
        return vector


def connected(learners: int) -> tuple[list[End], list[End]]:
    """Ends of the server and of the learners."""
    wires: list[tuple[Queue[Any], Queue[Any]]] = [(Queue(), Queue()) for _ in range(learners)]
    return (
        [End(up, down, 0, rank) for rank, (up, down) in enumerate(wires, 1)],
        [End(down, up, 0, rank) for rank, (up, down) in enumerate(wires, 1)],
    )


def rate(t: int) -> float:
    return bodies.RATE / (t + 1)


@pytest.mark.parametrize(("learners", "n"), [(1, 0), (1, 1), (3, 0), (3, 1), (3, 3)])
def test_a_job_has_the_values_of_its_recorded_clocks(learners: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    above, below = connected(learners)
    ends = lambda group, *others: [[below[group.rank - 1]] if group.rank else above, [], []]
    monkeypatch.setattr(processes, "connect", ends)
    job = replace(bodies.base_job(n, 12, bodies.gradient, learners), rate=rate)
    groups: list[Any] = [SimpleNamespace(rank=rank, size=learners + 1, timeout=60) for rank in range(learners + 1)]
    with ThreadPoolExecutor(learners + 1) as threads:
        served, *others = threads.map(lambda group: processes.train(group, job), groups)
    versions, velocity = [bodies.start()], torch.zeros_like(bodies.start())
    for turn, told in zip(served.turns, served.losses, strict=True):
        made = [bodies.gradient(versions[entry.read], entry.worker, entry.number) for entry in turn.entries]
        assert told == pytest.approx(sum(loss for loss, _ in made) / len(made))
        mean = sum(gradient for _, gradient in made) / len(made)
        velocity = bodies.MOMENTUM * velocity + rate(turn.t) * mean
        versions.append(versions[-1] - velocity)
    assert [turn.t for turn in served.turns] == list(range(12))
    assert (served.x - versions[-1]).abs().max() < 1e-12
    assert sum(other.number for other in others) >= sum(len(turn.entries) for turn in served.turns)
    assert {other.timestamp for other in others} == {12}
    assert (served.lost, served.left) == ({}, [])


def test_more_groups_than_learners_are_refused_by_the_server() -> None:
    with pytest.raises(ValueError, match="n=3 with 2 learners"):
        serve([Script(), Script()], 3, 1)


class Script(End):
    """A learner that says what is written, and then its connection breaks; keeps what it is told."""

    def __init__(self, *messages: Any):
        super().__init__(Queue(), Queue())
        for message in (*messages, RuntimeError("connection reset\nby a peer")):
            self.incoming.put(torch.tensor(message) if isinstance(message, list) else message)

    @property
    def told(self) -> list[Any]:
        return [part.tolist() for part in list(self.outgoing.queue)]


def vector(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def push(read: int, number: int, *row: float, learner: int = 0) -> list[Any]:
    """A gradient [2] with its loss and notes."""
    return [[PUSH, 1, 1], [read, learner, read, number, read], vector(*row)[None]]


X0 = vector(8.0, 4.0)


def minus(turn: Turn, sums: Tensor, losses: list[float], notes: Tensor) -> Tensor:
    """The weights are the start less the number of updates, so that who holds what can be read off."""
    return X0 - (turn.t + 1)


def serve(
    connections: list[Any], n: int, updates: int, update: Callable[..., Tensor] = minus, **sizes: int
) -> processes.Served:
    for rank, connection in enumerate(connections, 1):
        connection.lower = connection.other = rank
    root = Root(connections, Layout(len(connections)), n, X0, update, updates, **sizes)
    root.run()
    return root.served


def test_a_learner_is_sent_no_weights_that_it_has() -> None:
    learner = Script(*push(0, 0, 1, 2, 0.5), *push(0, 1, 3, 4, 1.5))
    with pytest.raises(WorkerLost, match="after update 1 of 2: all 2 learners are gone"):
        serve([learner, Script()], 1, 2)
    assert learner.told == [[GO, 0, 0], [GO, 1, 1], [7.0, 3.0]]


def test_gradients_are_summed_by_their_timestamp_oldest_first_and_the_last_ones_notes_come_along() -> None:
    seen = []

    def update(turn: Turn, sums: Tensor, losses: list[float], notes: Tensor) -> Tensor:
        seen.append((sums.tolist(), list(losses), notes.tolist()))
        return X0 - (turn.t + 1)

    first = [*push(0, 0, 1, 2, 0.5, 10), *push(0, 1, 3, 4, 1.5, 20)]
    second = [*push(1, 2, 5, 6, 2.5, 30), *push(0, 3, 7, 8, 3.5, 40)]
    with pytest.raises(WorkerLost, match="after update 2 of 3: all 2 learners are gone"):
        serve([Script(*first, *second), Script()], 1, 3, update, notes=1)
    assert seen == [([[4.0, 6.0]], [0.5, 1.5], [20.0]), ([[7.0, 8.0], [5.0, 6.0]], [2.5, 3.5], [40.0])]


def test_a_learner_that_says_it_ends_is_lost_and_the_others_go_on() -> None:
    served = serve([Script([FAIL, 1, 0]), Script(*push(0, 0, 1, 2, 0.5)), Script()], 3, 1)
    assert served.lost.pop(0) == "an error ended it"
    assert set(served.lost.values()) == {"connection reset"}
    assert served.x.tolist() == [7.0, 3.0]


def test_a_learner_that_is_lost_after_the_last_update_does_not_end_hardsync() -> None:
    served = serve([Script(*push(0, 0, 1, 2, 0.5))], 0, 1, leaves=1)
    assert served.lost == {0: "connection reset"}
    assert served.x.tolist() == [7.0, 3.0]


@pytest.mark.parametrize("learners", [1, 2])  # a single one is also the one whose gradient completes the update
def test_an_error_of_an_update_ends_the_job_on_every_learner(learners: int) -> None:
    def broken(*arguments: Any) -> Tensor:
        raise RuntimeError("no update today")

    above, below = connected(learners)
    made = [Learner(end, rank, Layout(learners)) for rank, end in enumerate(below)]
    with ThreadPoolExecutor(learners) as threads:
        waiting = [threads.submit(each.exchange, each.push(vector(1, 2, 0.5)), X0) for each in made]
        with pytest.raises(RuntimeError, match="no update today"):
            serve(above, 0, 5, broken)
        for learner in waiting:
            with pytest.raises(WorkerLost, match="the server, process 0, is gone"):
                learner.result()
