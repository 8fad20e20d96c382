"""Server and learners over queues in one process: what they say to each other, and when one of them breaks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
from suite.parameter_server.processes import FAIL, INQUIRE, LEAVE, PULL, PUSH, STOP, Learner, Service
from suite.training.optimizers import CaffeSGD


class End:
    """One end of a connection; what the other end puts in is a message, or an error of the connection."""

    def __init__(self, incoming: Queue[Any], outgoing: Queue[Any]):
        self.incoming, self.outgoing = incoming, outgoing

    def send(self, *header: int) -> None:
        self.outgoing.put([*header, 0, 0][:3])

    def receive(self) -> Any:
        message = self.incoming.get(timeout=60)
        if isinstance(message, Exception):
            raise message
        return message

    def send_vector(self, vector: Tensor) -> None:
        self.outgoing.put(vector.clone())

    def receive_vector(self, like: Tensor) -> Tensor:
        vector = self.receive()
        assert (vector.shape, vector.dtype) == (like.shape, like.dtype)
        return vector


def connected(learners: int) -> tuple[list[End], list[End]]:
    """Ends of the server and of the learners."""
    wires: list[tuple[Queue[Any], Queue[Any]]] = [(Queue(), Queue()) for _ in range(learners)]
    return [End(up, down) for up, down in wires], [End(down, up) for up, down in wires]


def rate(t: int) -> float:
    return bodies.RATE / (t + 1)


@pytest.mark.parametrize(("learners", "n"), [(1, 0), (1, 1), (3, 0), (3, 1), (3, 3)])
def test_a_job_has_the_values_of_its_recorded_clocks(learners: int, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    above, below = connected(learners)
    monkeypatch.setattr(processes, "connect", lambda group, facts, x0: below if group.rank else above)

    def job(rank: int) -> Any:
        group = SimpleNamespace(rank=rank, size=learners + 1)
        options = {"optimizer": CaffeSGD(bodies.MOMENTUM), "rate": rate, "updates": 12}
        return bodies.train(group, n, bodies.start(), bodies.gradient, **options)

    with ThreadPoolExecutor(learners + 1) as threads:
        served, *pushed = threads.map(job, range(learners + 1))
    versions, velocity = [bodies.start()], torch.zeros_like(bodies.start())
    for turn, told in zip(served.turns, served.losses, strict=True):
        made = [bodies.gradient(versions[entry.read], entry.worker, entry.number) for entry in turn.entries]
        assert told == pytest.approx(sum(loss for loss, _ in made) / len(made))
        mean = sum(gradient for _, gradient in made) / len(made)
        velocity = bodies.MOMENTUM * velocity + rate(turn.t) * mean
        versions.append(versions[-1] - velocity)
    assert [turn.t for turn in served.turns] == list(range(12))
    assert (served.x - versions[-1]).abs().max() < 1e-12
    assert served.unused == sum(pushed) - sum(len(turn.entries) for turn in served.turns)
    assert (served.lost, served.left) == ({}, [])


@pytest.mark.parametrize("rank", [0, 1])
def test_more_groups_than_learners_are_refused_by_every_process(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "connect", lambda group, facts, x0: [None, None])
    options = {"optimizer": CaffeSGD(), "rate": rate, "updates": 3}
    with pytest.raises(ValueError, match="n=3 with 2 learners"):
        bodies.train(SimpleNamespace(rank=rank, size=3), 3, bodies.start(), bodies.gradient, **options)


class Script(End):
    """A learner that says what is written, and then its connection breaks; keeps what it is told."""

    def __init__(self, *messages: Any):
        super().__init__(Queue(), Queue())
        for message in (*messages, RuntimeError("connection reset\nby a peer")):
            self.incoming.put(message)

    @property
    def told(self) -> list[Any]:
        return [part.tolist() if isinstance(part, Tensor) else part[0] for part in list(self.outgoing.queue)]


def vector(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


X0 = vector(8.0, 4.0)


def minus(turn: Turn, sums: Tensor, losses: list[float], notes: Tensor) -> Tensor:
    """The weights are the start less the number of updates, so that who holds what can be read off."""
    return X0 - (turn.t + 1)


def serve(connections: list[Any], n: int, updates: int, update: Callable[..., Tensor] = minus, notes: int = 0) -> Any:
    return Service(connections, n, X0, update, updates, notes).run()


def test_a_server_answers_each_message_and_keeps_what_a_learner_leaves() -> None:
    learner = Script(
        [INQUIRE, 0, 0],
        [PUSH, 0, 0],
        vector(1, 2, 0.5),
        [INQUIRE, 0, 0],
        [PULL, 0, 0],
        [PUSH, 1, 1],
        vector(3, 4, 1.5),
        [PUSH, 1, 2],
        vector(5, 6, 9.5),
        [INQUIRE, 1, 0],
        [LEAVE, 3, 0],
        vector(7, 8, 9),
    )
    served = serve([learner], 1, 2)
    assert learner.told == [0, 1, 1, [7.0, 3.0], STOP, 2, [6.0, 2.0]]
    assert (served.losses, served.unused, served.lost) == ([0.5, 1.5], 1, {})
    assert [left.tolist() for left in served.left] == [[7.0, 8.0, 9.0]]


def test_a_learner_may_leave_nothing() -> None:
    learner = Script([PUSH, 0, 0], vector(1, 2, 0.5), [INQUIRE, 0, 0], [LEAVE, 0, 0])
    assert serve([learner], 1, 1).left == []
    assert learner.told == [STOP, 1, [7.0, 3.0]]


def test_gradients_are_summed_by_their_timestamp_oldest_first_and_the_last_ones_notes_come_along() -> None:
    seen = []

    def update(turn: Turn, sums: Tensor, losses: list[float], notes: Tensor) -> Tensor:
        seen.append((sums.tolist(), list(losses), notes.tolist()))
        return X0 - (turn.t + 1)

    def push(read: int, number: int, *numbers: float) -> list[Any]:
        return [[PUSH, read, number], vector(*numbers)]

    first = [*push(0, 0, 1, 2, 0.5, 10), *push(0, 1, 3, 4, 1.5, 20)]
    second = [*push(0, 2, 5, 6, 2.5, 30), [PULL, 0, 0], *push(1, 3, 7, 8, 3.5, 40)]
    with pytest.raises(WorkerLost, match="after update 2 of 3: all 2 learners are gone"):
        serve([Script(*first, *second), Script()], 1, 3, update, notes=1)
    assert seen == [([[4.0, 6.0]], [0.5, 1.5], [20.0]), ([[5.0, 6.0], [7.0, 8.0]], [2.5, 3.5], [40.0])]


@pytest.mark.parametrize(("read", "number"), [(1, 0), (0, 1)])
def test_a_gradient_that_is_not_the_next_ends_the_job(read: int, number: int) -> None:
    with pytest.raises(ValueError, match=f"pushed gradient {number} of timestamp {read}; the server expects 0 of 0"):
        serve([Script([PUSH, read, number], vector(1, 2, 0.5))], 1, 2)


def test_a_learner_that_says_it_ends_is_lost_and_the_others_go_on() -> None:
    push = [[PUSH, 0, 0], vector(1, 2, 0.5)]
    served = serve([Script([FAIL, 0, 0]), Script(*push, [INQUIRE, 0, 0], [LEAVE, 0, 0]), Script()], 3, 1)
    assert served.lost == {0: "an error ended it", 2: "connection reset"}
    assert served.x.tolist() == [7.0, 3.0]


def test_a_learner_that_is_lost_after_the_last_update_does_not_end_hardsync() -> None:
    served = serve([Script([PUSH, 0, 0], vector(1, 2, 0.5))], 0, 1)
    assert served.lost == {0: "connection reset"}
    assert served.x.tolist() == [7.0, 3.0]


def test_under_hardsync_a_waiting_learner_is_told_that_another_is_lost() -> None:
    (above,), (below,) = connected(1)
    learner = Learner(below, 0)  # type: ignore[arg-type]
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(learner.exchange, vector(1, 2, 0.5), X0)
        with pytest.raises(WorkerLost, match=r"at update 0 of 5: learner 1 of 2 is gone and .* \(connection reset\)"):
            serve([above, Script()], 0, 5)
        with pytest.raises(WorkerLost, match="learner 0 stops: another learner is gone"):
            waiting.result()
    assert (learner.stopped, learner.number) == (False, 1)


@pytest.mark.parametrize("learners", [1, 2])  # a single one is also the one whose gradient completes the update
def test_an_error_of_an_update_ends_the_job_on_every_learner(learners: int) -> None:
    def broken(*arguments: Any) -> Tensor:
        raise ZeroDivisionError("no update today")

    above, below = connected(learners)
    with ThreadPoolExecutor(learners) as threads:
        waiting = [threads.submit(Learner(end, 0).exchange, vector(1, 2, 0.5), X0) for end in below]  # type: ignore[arg-type]
        with pytest.raises(ZeroDivisionError, match="no update today"):
            serve(above, 0, 5, broken)
        for learner in waiting:
            with pytest.raises(WorkerLost, match="or the server met an error"):
                learner.result()


def test_a_learner_pulls_only_newer_weights_and_leaves_a_vector_when_told_to_stop() -> None:
    server = Script([0, 0, 0], [4, 0, 0], [5, 0, 0], X0 - 5, [STOP, 0, 0], [6, 0, 0], X0 - 6)
    learner = Learner(server, 2, lambda: vector(1, 1, 1))  # type: ignore[arg-type]
    assert learner.exchange(vector(1), X0) is X0
    assert learner.exchange(vector(2), X0).tolist() == [3.0, -1.0]
    assert (learner.timestamp, learner.stopped) == (5, False)
    assert learner.exchange(vector(3), X0).tolist() == [2.0, -2.0]
    assert (learner.timestamp, learner.number, learner.stopped) == (6, 3, True)
    said = [part.tolist() if isinstance(part, Tensor) else part for part in list(server.outgoing.queue)]
    assert said == [
        *([PUSH, 0, 0], [1.0], [INQUIRE, 0, 0]),
        *([PUSH, 0, 1], [2.0], [INQUIRE, 0, 0], [PULL, 0, 0]),
        *([PUSH, 5, 2], [3.0], [INQUIRE, 5, 0], [LEAVE, 3, 0], [1.0, 1.0, 1.0]),
    ]


def test_a_learner_whose_server_is_gone_says_after_which_gradient() -> None:
    learner = Learner(Script([0, 0, 0]), 2)  # type: ignore[arg-type]
    learner.exchange(vector(1), X0)
    with pytest.raises(WorkerLost, match=r"learner 2 stops after gradient 2: the server, .* gone: connection reset$"):
        learner.exchange(vector(2), X0)
