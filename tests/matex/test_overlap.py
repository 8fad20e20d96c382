"""Virtual time: cases counted by hand, limits, and what layer-wise and delayed exchange can hide."""

from __future__ import annotations

import pytest
from fabricated_frames import frame_of

from paper_figures.matex_agd.exchanges import (
    ALEXNET,
    CASES,
    DELAYED,
    GOOGLENET,
    LAYER_WISE,
    SHARED,
    layer_costs,
    relative,
)
from paper_figures.matex_agd.experiments import layers
from paper_figures.matex_agd.settings import EFFECTIVE_BATCH
from suite.cost_models import (
    DGX1,
    SANDY_BRIDGE,
    AllReduce,
    LayerCost,
    LayerTimes,
    NetworkTimes,
    Setting,
    delayed,
    layer_wise,
    network,
    rates,
    synchronous,
)

# first to last: forward 1 + 2, backward 2 + 4, apply 1 + 1 seconds; 60 and 20 bytes to send
SMALL = NetworkTimes((LayerTimes(1, 2, (50, 10), apply=1), LayerTimes(2, 4, (20,), apply=1)))


def bus(beta: float, call: float = 0.0) -> AllReduce:
    """Two workers on a ring send a buffer once: size / beta seconds."""
    return AllReduce(0.0, beta, 2, call=call)


def test_costs_of_ring_and_tree_by_hand():
    ring = AllReduce(alpha=0.5, beta=10, workers=4, call=1)
    assert ring.latency == 1 + 6 * 0.5
    assert ring.transfer(40) == 6 * 10 / 10
    tree = AllReduce(alpha=0.5, beta=10, workers=8, kind="tree")
    assert (tree.latency, tree.transfer(40)) == (3, 24)
    assert AllReduce(0.5, 10, 1, call=9).seconds(1e9) == 0
    rounds = [AllReduce(0.5, 10, 2**k, kind="tree").latency for k in range(1, 7)]
    assert rounds == [1, 2, 3, 4, 5, 6], "a reduction and a broadcast of log2 n steps"


def test_synchronous_is_the_sum_of_its_parts():
    assert SMALL.compute == 11
    assert synchronous(SMALL, bus(10)) == 3 + 6 + 8 + 2


def test_layer_wise_by_hand():
    """At 10 bytes/s: the last layer's 20 bytes are ready at 7 and there at 9, when the first layer's 60 are ready.

    They arrive at 14 and 15; ``all`` then applies for 2 s. ``backward`` has applied the last layer by 10 already.
    """
    assert layer_wise(SMALL, bus(10), "all") == 17
    assert layer_wise(SMALL, bus(10), "backward") == 16
    assert layer_wise(SMALL, bus(10), "completed") == 16


def test_copies_delay_what_follows():
    copied = NetworkTimes(
        tuple(LayerTimes(x.forward, x.backward, x.tensors, x.apply, copy=0.5) for x in SMALL.layers)
    )
    assert layer_wise(copied, bus(10), "all") == 18


def test_every_call_costs_its_start_up():
    """Three sums of 1 s start-up each on one lane, back to back, against one."""
    assert layer_wise(SMALL, bus(1e9, call=1), "all") == pytest.approx(9 + 2 + 2)
    assert synchronous(SMALL, bus(1e9, call=1)) == pytest.approx(9 + 1 + 2)


def test_delayed_by_hand():
    """8 s of transfer fit into 11 s of compute; 22 s do not: the link then sets the pace, whatever the delay."""
    for delay in (1, 2, 3):
        assert delayed(SMALL, bus(10), delay) == pytest.approx(11)
        assert delayed(SMALL, bus(80 / 22), delay) == pytest.approx(22)


def test_more_lanes_hide_start_ups_but_not_transfers():
    """A start-up of 25 s passes side by side on every lane: 25 / delay seconds an iteration, or compute."""
    slow, slower = bus(1e12, call=25), bus(1e12, call=60)
    assert [delayed(SMALL, slow, delay) for delay in (1, 2, 3)] == pytest.approx([25, 12.5, 11])
    assert [delayed(SMALL, slower, delay) for delay in (1, 2, 3)] == pytest.approx([60, 30, 20])


def iteration_by_iteration(network: NetworkTimes, cost: AllReduce, delay: int) -> float:
    """The same played: iteration t waits for the sum of t - delay, which travels on lane t mod delay of one link."""
    now = link = 0.0
    lanes, began = [0.0] * delay, []
    for t in range(3000):
        began.append(now)
        now += network.forward + network.backward
        there = lanes[t % delay]
        link = max(max(now, there) + cost.latency, link) + cost.transfer(network.size)
        lanes[t % delay] = link
        now = max(now, there) + network.apply
    return (began[-1] - began[-1 - 1200]) / 1200  # whole rounds of the lanes, after any slack has gone


def test_the_pace_of_delayed_exchange_is_that_of_its_iterations():
    """A link hardly slower than computing (11 s) sets the pace only after some dozens of iterations."""
    for cost in (bus(10), bus(80 / 11.2), bus(80 / 22), bus(20, call=25), bus(80 / 11.1, call=22.1)):
        for delay in (1, 2, 3):
            assert delayed(SMALL, cost, delay) == pytest.approx(iteration_by_iteration(SMALL, cost, delay))


def test_one_worker_communicates_nothing():
    alone = AllReduce(1, 1, 1, call=1)
    assert set(rates(SMALL, alone).values()) == {1.0}


@pytest.mark.parametrize("alpha", [0, 1e-3, 1])
@pytest.mark.parametrize("beta", [1, 10, 1e3])
def test_nothing_beats_no_communication_and_delay_never_loses_to_synchronous(alpha, beta):
    seen = rates(SMALL, AllReduce(alpha, beta, 4))
    assert max(seen.values()) <= 1 + 1e-12
    assert seen["SGD"] <= seen["AGD 1 comm"] + 1e-12
    assert seen["layer-wise, all"] <= seen["layer-wise, backward"] + 1e-12
    assert seen["AGD 1 comm"] <= seen["AGD 2 comm"] + 1e-12
    assert seen["AGD 2 comm"] <= seen["AGD 3 comm"] + 1e-12


def test_layers_cost_what_their_shapes_say():
    setting = DGX1.centre()
    made = network((LayerCost(1e9, (1000, 10)), LayerCost(2e9, (500,))), 4, setting)
    first, last = made.layers
    assert first.forward == pytest.approx(4e9 / setting.flops)
    assert (first.backward, last.backward) == pytest.approx((first.forward, 2 * last.forward))
    assert made.size == 4 * 1510
    assert after_first_gradient(made) == first.backward


def test_what_is_known_of_the_machines_is_what_their_data_sheets_say():
    """NVLink at 20 GB/s in one to four rings at 90%; E5-2670: 16 cores of 16 operations, 8 channels of 12.8 GB/s."""
    assert (DGX1.peak, DGX1.memory, max(DGX1.devices)) == (10.6e12, 732e9, 8)
    assert DGX1.beta == pytest.approx((0.9 * 20e9, 0.9 * 80e9))
    assert (SANDY_BRIDGE.peak, SANDY_BRIDGE.memory) == pytest.approx((16 * 16 * 2.6e9, 8 * 12.8e9))
    for machine in (DGX1, SANDY_BRIDGE):
        assert machine.devices == (1, 2, 4, 8)
        assert 0 < machine.efficiency[0] < machine.efficiency[1] < 1
    quadruple, fourteen = 4e9, 6.8e9  # InfiniBand's data rates, QDR and FDR, before any protocol
    assert SANDY_BRIDGE.beta[0] < quadruple / 2 < quadruple < SANDY_BRIDGE.beta[1] < fourteen


def test_a_layer_costs_its_operations_and_the_bytes_that_move():
    """At 10 operations and 2 bytes a second: 3 examples of 5 operations; 7 numbers of 4 bytes, moved 5 or 2 times."""
    setting = Setting(flops=10.0, memory=2.0, alpha=0.0, beta=1.0, call=0.0)
    first, second = network((LayerCost(5.0, ()), LayerCost(5.0, (6, 1))), 3, setting).layers
    assert first == LayerTimes(forward=1.5, backward=1.5)
    assert second == LayerTimes(forward=1.5, backward=3.0, tensors=(24.0, 4.0), apply=5 * 28 / 2, copy=2 * 28 / 2)


# ---------------------------------------------------------------- section 6.3's sentences, in the cost model


@pytest.fixture(scope="module")
def stored():
    """A frame with the layers of both networks."""
    return frame_of({"layers": [{"tables": {name: layers.measure(name) for name in (ALEXNET, GOOGLENET)}}]}, "smoke")


def after_first_gradient(made: NetworkTimes) -> float:
    """Seconds of backward left when the first gradient is there: what layer-wise exchange can hide behind."""
    last = max(place for place, layer in enumerate(made.layers) if layer.tensors)
    return sum(layer.backward for layer in made.layers[:last])


def links(stored):
    """Both networks on 8 devices of the DGX-1, over 30 links from far too slow to far too fast."""
    for name in (ALEXNET, GOOGLENET):
        made = network(layer_costs(stored.table(name, "layers")), EFFECTIVE_BATCH[name] / 8, DGX1.centre())
        for alpha in (0.0, 1e-6, 1e-5, 1e-4, 1e-3):
            for beta in (1e8, 1e9, 4e9, 1.6e10, 6.4e10, 1e12):
                yield made, AllReduce(alpha, beta, 8)


def test_layer_wise_exchange_hides_hardly_more_than_the_rest_of_backward(stored):
    """Where all updates wait for all sums. Applied layer after layer, later sums also pass behind earlier updates."""
    shares = {order: [] for order in ("all", "backward", "completed")}
    for made, cost in links(stored):
        for order, found in shares.items():
            hidden = synchronous(made, cost) - layer_wise(made, cost, order)
            found.append(hidden / after_first_gradient(made))
    most = {order: max(found) for order, found in shares.items()}
    assert most["all"] <= 1
    assert most["backward"] == pytest.approx(1.085, abs=0.001)
    assert most["completed"] <= 1.09


def test_a_delayed_iteration_takes_its_compute_and_no_more_once_its_sums_fit(stored):
    fitting = []
    for made, cost in links(stored):
        transfer = cost.transfer(made.size)
        for delay in (1, 2, 3):
            ratio = delayed(made, cost, delay) / made.compute
            assert ratio >= 1 - 1e-9
            if cost.latency + transfer <= delay * made.compute and transfer <= made.compute:
                fitting.append(ratio)
    assert len(fitting) > 30
    assert fitting == pytest.approx([1] * len(fitting), abs=1e-9)


def test_delayed_exchange_may_use_more_of_an_iteration_than_layer_wise(stored):
    for name, machine in CASES.values():
        made = network(layer_costs(stored.table(name, "layers")), EFFECTIVE_BATCH[name] / 8, machine.centre())
        assert 1 / 3 < (made.compute - after_first_gradient(made)) / made.compute < 1 / 2


def test_the_order_of_methods_follows_from_the_equations_in_every_panel(stored):
    """Which is why no panel of the cost model decides it."""
    for letter in CASES:
        for devices, corners in relative(stored, letter).items():
            for seen in corners:
                late, by_layer = max(seen[n] for n in DELAYED), max(seen[n] for n in ("layer-wise, all", *LAYER_WISE))
                assert max(seen.values()) <= 1 + 1e-9
                assert devices not in SHARED or late > max(seen["SGD"], by_layer)
