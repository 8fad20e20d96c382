"""Servers in virtual time by hand: when each update happens, what the ledger says, and where weights are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest
import simpy
from simulated_systems import messages_at

from reference_impls.contract import GradientRef, Turn
from reference_impls.rudra_protocol import Server
from suite.clock import Link
from suite.parameter_server.protocol import GammaDurations, Staleness, TimeLedger
from suite.parameter_server.simulation import Adv, AdvStar, Base, Messages, Port, learner_seconds, placement

PUSH, ASK, COPY = 4.0, 1.004, 0.25  # seconds of a push or a pull, of an inquiry, and between two processes


def messages(**changes: float) -> Messages:
    """A model of 2,996 bytes: 3,000 with the timestamp, at 1,000 bytes per second after a latency of one second."""
    return Messages(2_996, Link(1.0, 1_000.0), Link(COPY, 1e30), **changes)


def made(kind: type[Base], server: Server, seconds: Sequence[float], tree: Any = (), **changes: float) -> Any:
    return kind(server, lambda worker: seconds[worker], messages(**changes), **dict(tree))


def ends(system: Base, updates: int) -> list[float]:
    return [now for now, _ in islice(system, updates)]


def test_a_port_works_through_messages_one_by_one() -> None:
    env = simpy.Environment()
    port = Port(env)
    assert [port.serve(seconds)._delay for seconds in (2.0, 1.0)] == [2.0, 3.0]
    port.occupy(0.5)
    assert port.free == 3.5
    env.run(until=10.0)
    port.occupy(0.5)
    assert port.free == 10.5, "an idle port begins when the work comes"


def test_overlap_is_the_share_of_computation() -> None:
    assert TimeLedger(computing=3.0, communicating=1.0).overlap == 0.75


def test_a_server_spends_no_time_on_an_update_unless_told() -> None:
    assert ends(made(Base, Server(1, 1), [1.0]), 2) == pytest.approx([1 + PUSH, 1 + PUSH + ASK + PUSH + 1 + PUSH])


def test_the_ledger_of_a_learner_whose_first_gradient_makes_no_update() -> None:
    """Two make one; the other learner is still computing when the second comes."""
    system = made(Base, Server(2, 1), [1.0, 1_000.0])
    first = 1 + PUSH + ASK
    system.env.run(until=first + 0.01)
    book = TimeLedger(computing=1.0, communicating=PUSH + ASK)
    assert vars(system.ledger) == pytest.approx(vars(book))
    assert ends(system, 1) == pytest.approx([first + 1 + PUSH])
    system.env.run(until=first + first + PUSH + 0.01)
    book = TimeLedger(2.0, 3 * PUSH + 2 * ASK)
    assert vars(system.ledger) == pytest.approx(vars(book))


def test_learners_of_a_leaf_wait_for_the_slower_and_share_the_way_to_the_root() -> None:
    """Both gradients are at the leaf at 2.25 and at the root 4 s later; one question and one pull serve both."""
    system = made(Adv, Server(2, 1), [1.0, 2.0], update_seconds=0.5)
    served = messages_at(system)
    update = 2 + COPY + PUSH
    fetched = update + 0.5 + ASK + PUSH
    assert ends(system, 2) == pytest.approx([update, fetched + 2 * COPY + update])
    waited = (fetched + COPY - 1) + (fetched + 2 * COPY - 2)
    book = TimeLedger(3.0, waited)
    assert vars(system.ledger) == pytest.approx(vars(book))
    assert len(served) == 4, "the second relay, and three messages before it"


@pytest.mark.parametrize("n", [0, 1])
def test_a_leaf_asks_and_pulls_only_what_is_newer(n: int) -> None:
    """Of three learners, each on its leaf, one is quick: its gradients make no update, and hardsync holds it."""
    system = made(Adv, Server(3, n), [1.0, 1_000.0, 1_000.0], {"per_leaf": 1})
    system.env.run(until=13.0)
    book = TimeLedger(2.0, 2 * (COPY + PUSH + ASK)) if n else TimeLedger()
    assert vars(system.ledger) == pytest.approx(vars(book))


def test_a_question_for_newer_weights_goes_up_every_level_and_they_come_down_every_level() -> None:
    """Two gradients are what the server between waits for; the second's question finds the update it made."""
    system = made(Adv, Server(3, 3), [1.0, 1_000.0, 1_000.0], {"per_leaf": 1, "fan_out": 2})
    assert [child.name for child in system.root.children] == ["server 1.0", "server 1.1"]
    first = (1 + COPY + PUSH) + 2 * ASK + (1 + COPY + PUSH) + PUSH
    turns = list(islice(system, 2))
    assert [now for now, _ in turns] == pytest.approx([first, first + 2 * (ASK + PUSH) + COPY + first])
    assert [[entry.read for entry in turn.entries] for _, turn in turns] == [[0, 0], [1, 1]]


def test_a_leaf_has_eight_learners_and_a_server_eight_children_unless_told() -> None:
    root = made(Adv, Server(72, 1), [1.0] * 72).root
    assert [child.name for child in root.children] == ["server 1.0", "server 1.1"]
    assert {len(node.learners) for node in root.below() if not node.children} == {8}


def test_weights_go_from_the_root_to_learner_0_and_on_over_its_own_link_to_one_child_after_the_other() -> None:
    """Learner 1 alone is quick. The broadcasts do not delay its gradients, of which one arrives every ten seconds."""
    system = made(AdvStar, Server(3, 3), [1_000.0, 10.0, 1_000.0], {"per_leaf": 1})
    served, held = messages_at(system), []
    for now in (18.0, 18.5, 22.5, 26.5, 28.5, 30.5, 32.5, 36.5, 38.5):
        system.env.run(until=now)
        held.append(list(system.newest_at))
    assert held == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1], [2, 1, 1], [2, 1, 1], [2, 2, 1], [2, 2, 2], [3, 2, 2]]
    assert list(system.turns) == [(14.25 + 10 * t, Turn(t, (GradientRef(1, 0, t),))) for t in range(3)]
    assert len(served) == 3 + 3, "a gradient and the weights for each update"
    assert system.ledger == TimeLedger(30.0, 0.0)


def test_a_learner_that_swaps_its_buffers_takes_so_long_and_computes_on_the_newer_weights() -> None:
    system = made(AdvStar, Server(1, 1), [10.0], {"swap_seconds": 0.5})
    turns = list(islice(system, 4))
    assert [now for now, _ in turns] == pytest.approx([14.25, 24.25, 34.75, 45.25])
    assert [turn.entries[0].read for _, turn in turns] == [0, 0, 1, 2]
    assert system.ledger.communicating == pytest.approx(2 * 0.5 + 0.5)


def test_a_learner_waits_while_its_last_gradient_is_on_the_way() -> None:
    """It computes for one second. Its leaf takes the first at 1.25 and relays it for four, the second at 5.5."""
    system = made(AdvStar, Server(1, 1), [1.0])
    system.env.run(until=5.49)
    assert (system.server.number, system.ledger.computing) == ([3], 2)
    system.env.run(until=5.51)
    assert (system.server.number, system.ledger.computing) == ([4], 3)
    assert system.ledger.communicating == pytest.approx(5.5 - 3)


def test_learners_are_dealt_over_the_machines_in_turn() -> None:
    assert placement(5, 2) == [3, 2, 3, 2, 3]
    assert placement(6, 4) == [2, 2, 1, 1, 2, 2]
    assert placement(3, 1) == [3, 3, 3]


def test_a_crowded_machine_computes_slower() -> None:
    """(2 + 0.5 * 4) seconds alone, a quarter more for each other learner on the machine."""
    seconds = {"per_call": 2.0, "per_example": 0.5, "crowding": 0.25}
    assert learner_seconds(seconds, 4, 3, 2) == [5.0, 4.0, 5.0]
    assert learner_seconds(seconds, 4, 3, 1) == [6.0, 6.0, 6.0]


@pytest.mark.parametrize("jitter", [0.05, 0.2, 0.5])
def test_jitter_is_the_relative_standard_deviation(jitter: float) -> None:
    draw = GammaDurations(2.0, jitter, 7)
    values = [draw(0) for _ in range(6_400)]
    mean = sum(values) / len(values)
    spread = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    assert mean == pytest.approx(2.0, abs=5 * 2.0 * jitter / 80)  # five standard errors
    assert spread == pytest.approx(2.0 * jitter, rel=0.1)  # five to eight, the gamma being skewed


def test_staleness_is_counted_by_hand() -> None:
    turns = [
        Turn(0, (GradientRef(0, 0, 0),)),
        Turn(1, (GradientRef(0, 0, 1), GradientRef(1, 0, 0))),
        Turn(2, (GradientRef(1, 0, 1), GradientRef(0, 2, 2))),
    ]
    counted = Staleness()
    assert (counted.seconds, counted.total) == (0.0, 0)
    assert counted.add(zip((1.5, 2.5, 4.0), turns, strict=True)) is counted
    assert counted.counts == {0: 2, 1: 2, 2: 1}
    assert counted.averages == [0.0, 1.0, 1.0]
    assert (counted.seconds, counted.total, counted.mean, max(counted.counts)) == (4.0, 5, 0.8, 2)
    assert [counted.above(bound) for bound in (0, 1, 2)] == [3, 1, 0]
