"""The protocols in integers: what section 3.1 says of staleness, at the size at which the paper says it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from itertools import islice, pairwise

import pytest
import simpy
from simulated_systems import COSTS, messages_at, system

from reference_impls.contract import GradientRef, Turn
from reference_impls.rudra_protocol import Server, average_staleness
from suite.clock import Link
from suite.parameter_server.protocol import GammaDurations, Staleness, play
from suite.parameter_server.simulation import ARCHITECTURES, Base, Messages, simulation


def played(learners: int, n: int, updates: int, jitter: float = 0.05, seed: int = 0) -> list[tuple[float, Turn]]:
    return list(islice(play(Server(learners, n), learners, GammaDurations(1.0, jitter, seed)), updates))


@pytest.mark.parametrize("jitter", [0.0, 0.05, 0.5])
def test_hardsync_has_no_staleness_and_takes_one_gradient_of_each(jitter: float) -> None:
    for _, turn in played(30, 0, 300, jitter):
        assert {entry.read for entry in turn.entries} == {turn.t}
        assert {entry.number for entry in turn.entries} == {turn.t}
        assert sorted(entry.worker for entry in turn.entries) == list(range(30))


def test_hardsync_waits_for_the_slowest() -> None:
    draw = GammaDurations(1.0, 0.3, 5)
    rounds = [max(draw(worker) for worker in range(7)) for _ in range(20)]
    ends = [now for now, _ in islice(play(Server(7, 0), 7, GammaDurations(1.0, 0.3, 5)), 20)]
    assert ends == pytest.approx([sum(rounds[: at + 1]) for at in range(20)], rel=1e-12)


def test_one_softsync_takes_as_many_gradients_as_hardsync_but_not_one_of_each() -> None:
    turns = [turn for _, turn in played(30, 1, 300)]
    assert {len(turn.entries) for turn in turns} == {30}
    assert any(len({entry.worker for entry in turn.entries}) < 30 for turn in turns)


def test_nothing_bounds_staleness_under_async() -> None:
    means = [1000.0, *[1.0] * 29]
    counted = Staleness().add(islice(play(Server(30, 30), 30, GammaDurations(means, 0.05, 0)), 31_000))
    assert max(counted.counts) > 1000 > 2 * 30


def literal_async(learners: int, updates: int, draw: GammaDurations) -> list[Turn]:
    """Eq. 4 without a server object: the next learner to finish updates the weights and reads them."""
    ends = [draw(worker) for worker in range(learners)]
    read, number = [0] * learners, [0] * learners
    turns = []
    for t in range(updates):
        worker = min(range(learners), key=lambda w: (ends[w], w))
        turns.append(Turn(t, (GradientRef(worker, read[worker], number[worker]),)))
        read[worker], number[worker] = t + 1, number[worker] + 1
        ends[worker] += draw(worker)
    return turns


@pytest.mark.parametrize("jitter", [0.0, 0.05, 0.4])
def test_lambda_softsync_is_async_event_for_event(jitter: float) -> None:
    ours = [turn for _, turn in played(30, 30, 3_000, jitter)]
    assert ours == literal_async(30, 3_000, GammaDurations(1.0, jitter, 0))


@pytest.mark.parametrize(("learners", "n"), [(30, 1), (30, 2), (30, 4), (30, 30), (2, 1), (18, 18), (60, 7)])
def test_mean_staleness_is_lambda_minus_one_over_c(learners: int, n: int) -> None:
    each = learners // n
    timed = iter(played(learners, n, 20_000 // each))
    Staleness().add(islice(timed, 20 * n + 20))
    steady = Staleness().add(timed)
    # each learner's reads telescope: only the ends of the stretch can move the mean, by less than n / its length
    assert steady.mean == pytest.approx((learners - 1) / each, abs=4 * n * learners / steady.total)


@pytest.mark.parametrize("n", [1, 2, 4, 30])
def test_staleness_stays_within_2n_at_small_jitter(n: int) -> None:
    counted = Staleness().add(played(30, n, 20_000 // (30 // n)))
    assert min(counted.counts) == 0
    assert max(counted.counts) <= 2 * n


@pytest.mark.parametrize("n", [1, 2, 4, 30])
def test_the_bound_2n_breaks_as_jitter_grows(n: int) -> None:
    shares = []
    for jitter in (0.05, 0.3, 0.6):
        counted = Staleness().add(played(30, n, 20_000 // (30 // n), jitter))
        shares.append(counted.above(2 * n) / counted.total)
    assert shares[0] == 0 < shares[1] < shares[2]


def test_eq_2_is_the_mean_staleness_of_an_update() -> None:
    timed = played(30, 4, 500)
    for _, turn in timed:
        mean = sum(turn.t - entry.read for entry in turn.entries) / len(turn.entries)
        assert average_staleness(turn) == pytest.approx(mean, abs=1e-12)
        assert all(entry.read < turn.t + 1 for entry in turn.entries)
    assert Staleness().add(timed).averages == pytest.approx([average_staleness(turn) for _, turn in timed])


def conserved(turns: list[Turn], learners: int) -> None:
    """Every gradient is applied once, in its learner's order, and timestamps count the updates."""
    numbers = Counter[int]()
    for at, turn in enumerate(turns):
        assert turn.t == at
        for worker, read, number in sorted(turn.entries, key=lambda entry: entry.number):
            assert number == numbers[worker]
            assert 0 <= read <= turn.t
            numbers[worker] += 1
    assert set(numbers) == set(range(learners))


@pytest.mark.parametrize("n", [0, 1, 3, 20])
@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_every_gradient_is_applied_exactly_once(architecture: str, n: int) -> None:
    if architecture == "adv*" and n == 0:
        with pytest.raises(ValueError, match="cannot run hardsync"):
            system(architecture, 20, n)
        return
    made = system(architecture, 20, n)
    turns = [turn for _, turn in islice(iter(made), 3_000 // made.server.collect)]
    conserved(turns, 20)
    assert all(len(turn.entries) >= made.server.collect for turn in turns)
    applied = sum(len(turn.entries) for turn in turns)
    # begun and not applied: one under way at each learner, and what waits in push threads, leaves and the root
    assert applied <= sum(made.server.number) <= applied + 20 * (4 if architecture == "adv*" else 2)


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_nobody_computes_on_weights_that_are_not_made_yet(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = system(architecture, 20, 3)
    begin, began = made.server.begin, []

    def watched(worker: int) -> GradientRef:
        entry = begin(worker)
        began.append((entry.read, made.server.timestamp))
        return entry

    monkeypatch.setattr(made.server, "begin", watched)
    list(islice(iter(made), 50))
    assert all(0 <= read <= newest for read, newest in began)
    assert {read for read, newest in began if not newest} == {0}
    assert max(read for read, _ in began) > 10


@pytest.mark.parametrize("architecture", ["base", "adv"])
def test_hardsync_has_no_staleness_in_any_system(architecture: str) -> None:
    turns = list(islice(iter(system(architecture, 20, 0)), 200))
    assert Staleness().add(turns).counts == {0: 200 * 20}
    by_worker = Counter(entry.worker for _, turn in turns for entry in turn.entries)
    assert set(by_worker.values()) == {200}


def asked_and_pulled(base: Base, served: list[float]) -> tuple[int, int]:
    """Questions for newer weights that the server was handed, and the weights that it sent: each follows a push."""
    asked = served.count(base.messages.inquiry)
    return asked, len(served) - 2 * asked


def test_messages_come_one_by_one_and_pulls_only_when_needed() -> None:
    made = system("base", 12, 1)
    log, served, serve = list[tuple[float, float]](), messages_at(made), made.port.serve

    def noted(seconds: float) -> simpy.Timeout:
        found = serve(seconds)
        log.append((made.port.free - seconds, made.port.free))
        return found

    made.port.serve = noted  # type: ignore[method-assign]
    reads: dict[int, int] = {}
    renewals = 0
    for _, turn in islice(iter(made), 400):
        for entry in sorted(turn.entries, key=lambda e: e.number):
            renewals += entry.read != reads.get(entry.worker, 0)
            reads[entry.worker] = entry.read
    assert len(log) > 9_000
    assert all(before[1] <= after[0] + 1e-9 for before, after in pairwise(log))
    asked, pulls = asked_and_pulled(made, served)
    assert asked > pulls + 12
    assert renewals <= pulls <= renewals + 2 * 12
    eager = system("base", 12, 12)  # an update for every gradient
    served = messages_at(eager)
    list(islice(iter(eager), 4_000))
    asked_eagerly, pulled_eagerly = asked_and_pulled(eager, served)
    assert pulled_eagerly / asked_eagerly > pulls / asked


def test_a_free_server_gives_the_integer_protocol() -> None:
    free = {"network": [0.0, 1e30], "memory": [0.0, 1e30], "update_seconds": 0.0, "machines": 10}
    made = system("base", 10, 3, **free)
    ours = [turn for _, turn in islice(iter(made), 500)]
    mean = 0.004 + 0.003 * 16
    bare = [turn for _, turn in islice(play(Server(10, 3), 10, GammaDurations(mean, 0.05, 0)), 500)]
    assert ours == bare


def test_virtual_time_is_the_sum_of_what_one_learner_waits_for() -> None:
    """Compute, push, the server's update, the question for the timestamp, pull: by hand, all of different lengths."""
    network, memory = Link(0.01, 1e6), Link(0.001, 1e8)
    messages = Messages(4_000, network, memory, update_seconds=0.5)
    push, ask = 0.01 + 4_004 / 1e6, 0.01 + 4 / 1e6
    assert (messages.transfer, messages.inquiry) == pytest.approx((push, ask), rel=1e-12)
    assert messages.copy == pytest.approx(0.001 + 4_004 / 1e8, rel=1e-12)
    system = Base(Server(1, 1), lambda worker: 1.0, messages)
    ends = [now for now, _ in islice(system, 4)]
    turn = 1.0 + push + 0.5 + ask + push
    assert ends == pytest.approx([1.0 + push + at * turn for at in range(4)], rel=1e-12)
    assert system.ledger.computing == pytest.approx(3.0)
    assert system.ledger.communicating == pytest.approx(3 * (turn - 1.0), rel=1e-12)


def test_a_busy_server_slows_learners_down_and_a_faster_one_less() -> None:
    def seconds(bandwidth: float) -> float:
        made = system("base", 12, 12, network=[1e-6, bandwidth])
        return [now for now, _ in islice(iter(made), 2_000)][-1]

    # 2,000 pushes and as many pulls of 0.4 MB cannot take less than the port needs for them
    assert seconds(1e8) >= 2_000 * 2 * 400_004 / 1e8 * 0.98
    assert seconds(1e8) > seconds(1e9) > seconds(1e12)


def test_overlap_rises_from_base_to_adv_to_adv_star() -> None:
    shares = []
    for architecture in ("base", "adv", "adv*"):
        made = system(architecture, 24, 1, 4, model_bytes=30_000_000, network=[1e-6, 1e10], memory=[1e-6, 2e10])
        for _ in islice(iter(made), 60):
            pass
        shares.append(made.ledger.overlap)
    assert shares[0] < shares[1] < shares[2] <= 1


def test_adv_star_is_staler_than_adv() -> None:
    big = {"model_bytes": 30_000_000, "network": [1e-6, 1e10]}
    means = [
        Staleness().add(islice(iter(system(architecture, 24, 1, 4, **big)), 20, 400)).mean
        for architecture in ("adv", "adv*")
    ]
    assert means[0] < means[1]
    assert means[0] == pytest.approx(1, abs=0.5)  # 5.5; the order of pulls, which is not printed, was chosen for it


@pytest.mark.parametrize("n", [0, 1, 300])
def test_an_event_costs_the_same_with_many_learners(n: int) -> None:
    def calls(learners: int) -> float:
        schedule = play(Server(learners, n and max(1, n * learners // 300)), learners, GammaDurations(1.0, 0.05, 0))
        next(schedule)
        made = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        events = 0
        sys.setprofile(count)
        try:
            while events < 3 * learners:
                events += len(next(schedule)[1].entries)
        finally:
            sys.setprofile(None)
        return made / events

    # calls of Python and of C functions per gradient: the same within a few percent from 30 to 3,000 learners
    assert calls(3_000) == pytest.approx(calls(30), rel=0.35)


def test_the_server_survives_a_trip_through_json() -> None:
    whole = Server(5, 2)
    cut = Server(5, 2)
    draw = GammaDurations(1.0, 0.3, 1)
    order = [int(5 * draw(0)) % 5 for _ in range(60)]
    expected = []
    found = []
    for at, worker in enumerate(order):
        expected.append(whole.push(worker))
        whole.pull(worker)
        if at % 7 == 3:
            cut = Server(**json.loads(json.dumps(asdict(cut))))
        found.append(cut.push(worker))
        cut.pull(worker)
    assert found == expected
    assert any(turn is not None for turn in found)


def test_durations_depend_on_coordinates_alone() -> None:
    one, other = GammaDurations([1.0, 2.0], 0.2, 3), GammaDurations([1.0, 2.0], 0.2, 3)
    first = [one(0) for _ in range(300)]
    interleaved = []
    for _ in range(300):
        other(1)
        interleaved.append(other(0))
    assert first == interleaved
    assert sum(first) / 300 == pytest.approx(1.0, abs=0.06)  # five standard errors


def test_unknown_architectures_and_trees_are_refused() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        system("ring", 4, 1)
    with pytest.raises(ValueError, match="takes no tree"):
        simulation({"architecture": "base", **COSTS, "tree": {"per_leaf": 2}}, 4, 1, 4, 0)
