"""The paper's algorithms: what their statements come to in the suite's implementation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from paper_figures.matex_agd.overlap_cases import ALEXNET, LAYERS, link_grid
from suite.claims.estimate import exact, interval, point
from suite.claims.intervals import log_interval
from suite.cost_models.machines import DGX1
from suite.cost_models.overlap import Order
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.spec import RunSpec

PROPERTIES = RunSpec("matex_agd/properties")
WORKERS = RunSpec("matex_agd/workers")


def runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """The same at every profile: checks of what the paper states, on LeNet and random data."""
    return {"properties": (PROPERTIES,), "workers": (WORKERS,), "layers": (LAYERS,)}


def results_of(evidence: Evidence, group: str) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Results of the only run of a group, and its id."""
    run = evidence.run(group)
    return run.results, (run.id,)


def measure_backpropagation(evidence: Evidence) -> Quantities:
    found, of = results_of(evidence, "properties")
    yield (
        "gradient-check",
        exact(found["algorithm_1/gradient check"], runs=of, note="central differences, step 1e-6"),
    )
    yield "relu", exact(found["algorithm_1/relu"], runs=of, note="torch.relu on 1001 points of [-5, 5]")
    steps = [
        a - b
        for order in ("algorithm 1", "autograd")
        for a, b in itertools.pairwise(found[f"algorithm_1/order of {order}"])
    ]
    yield "last-to-first", exact(float(min(steps)), runs=of, note="smallest step down, Algorithm 1 and autograd")


def measure_synchronous(evidence: Evidence) -> Quantities:
    found, of = results_of(evidence, "properties")
    yield (
        "equals-serial",
        exact(
            max(found["synchronous/gradient difference"], found["synchronous/serial difference"]),
            runs=of,
            note="one gradient, and the weights after 12 updates; LeNet, 4 workers, float64",
        ),
    )
    yield "equal-split", exact(found["partition/difference of mini-batches"], runs=of)
    yield "disjoint", exact(found["partition/shared samples"], runs=of, note="50,000 samples, 4 workers, one epoch")


def measure_synchronous_processes(evidence: Evidence) -> Quantities:
    found, of = results_of(evidence, "workers")
    drawn, apart = (found[f"synchronous/{when} apart"] for when in ("drawn", "begun"))
    apart = max(apart, found["synchronous/ended apart"])
    note = f"two processes, whose weights lay {drawn:.2g} apart before the broadcast"
    yield "replicas-equal", exact(apart if drawn else math.inf, runs=of, note=note)
    yield "one-reduction", exact(found["synchronous/reductions per update"], runs=of)
    yield (
        "in-place",
        exact(
            found["synchronous/gradient buffers"] - 1 + found["synchronous/sums outside the gradient buffers"],
            runs=of,
        ),
    )
    yield (
        "after-use",
        exact(
            float(found["synchronous/started before backward ended"] == 0),
            runs=of,
            note="no sum starts during backward",
        ),
    )


def measure_reduction_rounds(evidence: Evidence) -> Quantities:
    """Rounds until every node knows every addend, when pairs exchange all they know (recursive doubling)."""
    rounds = []
    for nodes in (2, 4, 8, 16, 32, 64):
        known, distance = [{node} for node in range(nodes)], 1
        while any(len(held) < nodes for held in known):
            known = [held | known[node ^ distance] for node, held in enumerate(known)]
            distance *= 2
        rounds.append(distance.bit_length() - 1)
    yield "reduce-cost", exact(rounds, note="2 to 64 nodes; a ring takes 2 (n-1) rounds of 1/n of the data")


def measure_layer_wise(evidence: Evidence) -> Quantities:
    found, of = results_of(evidence, "properties")
    note = "LeNet, 4 workers, 12 updates, float64"
    yield "equals-sequential", exact(found["layer_wise/sequential difference"], runs=of, note=note)
    yield "order-independent", exact(found["layer_wise/order difference"], runs=of, note=note)
    yield (
        "copy-needed",
        exact(
            found["algorithm_1/error in place"] - found["algorithm_1/error on a copy"],
            runs=of,
            note="error of averaged gradients, in place less on a copy, where the bias gradient is delta itself",
        ),
    )


def measure_layer_wise_blobs(evidence: Evidence) -> Quantities:
    found, of = results_of(evidence, "layers")
    per_tensor, other = results_of(evidence, "properties")
    yield (
        "reductions",
        exact(
            found[f"{ALEXNET} tensors"] * per_tensor["layer_wise/reductions per update and tensor"],
            runs=(*of, *other),
            note="tensors of AlexNet x reductions per tensor counted on LeNet",
        ),
    )


def measure_timed_sums(evidence: Evidence) -> Quantities:
    found, of = results_of(evidence, "workers")
    for name, key in (("bias-first", "weights over bias"), ("fixed-cost", "many small over one large")):
        ours = log_interval(found[key])
        ends = (math.log(ours.mean), math.log(ours.low), math.log(ours.high))
        yield name, interval(*ends, n=ours.n, runs=of, note=f"log of {key}, two gloo processes")


def measure_delayed(evidence: Evidence) -> Quantities:
    found, of = results_of(evidence, "properties")
    yield (
        "delay-exact",
        exact(found["delayed/age of applied gradients"], runs=of, note="turns from gradient to update"),
    )
    yield "zero-delay-is-sgd", exact(found["delayed/zero delay difference"], runs=of)
    yield "first-iterations-idle", exact(found["delayed/moved while idle"], runs=of)
    constant = [age / delay for delay, age in zip((1, 2, 3), found["delayed/age of applied gradients"], strict=True)]
    yield "staleness-constant", exact(constant, runs=of, note="age over delay; 0 where two gradients differ in age")
    note = "largest stable eta lambda of delays 0 to 3 with momentum 0.9, the solver's default"
    yield "stability-momentum", exact(found["delayed/largest stable rate, momentum 0.9"], runs=of, note=note)
    note = "difference that decay at the weights read makes, over the distance moved in 12 updates; delays 1 to 3"
    yield "solver", exact(found["delayed/effect of the solver"], runs=of, note=note)
    yield (
        "stability",
        exact(
            found["delayed/largest stable rate"],
            runs=of,
            note="found by running the update; theory 2 sin(pi/(2(2d+1)))",
        ),
    )


def measure_delayed_processes(evidence: Evidence) -> Quantities:
    found, of = results_of(evidence, "workers")
    names = [f"delay {delay}" for delay in (1, 2, 3)]
    used = [found[f"{n}/gradient buffers"] - 1 + found[f"{n}/sums outside the gradient buffers"] for n in names]
    threads = [found[f"{n}/lanes"] for n in names]
    note = "buffers beside the gradient's own, then process groups, each with a thread of its own"
    yield "resources", exact([*used, *threads], runs=of, note=note)
    apart = max(found[f"{n}/{when} apart"] for n in names for when in ("begun", "ended"))
    yield "replicas-equal", exact(apart, runs=of, note="two gloo processes, delays 1 to 3")


def telling(evidence: Evidence, group: str, said: Mapping[str, Any]) -> Evidence:
    """A world in which the only run of a group came to other results."""
    return edited(evidence, lambda run: forged(run, said), group)


@counterfeit("matex_agd/alg-sgd/replicas-equal", "matex_agd/alg-agd/replicas-equal")
def every_worker_keeps_its_own_weights(evidence: Evidence) -> Evidence:
    """Nothing is broadcast before the first batch: weights begin and end as far apart as they were drawn."""
    names = ("synchronous", *(f"delay {delay}" for delay in (1, 2, 3)))
    drawn = {name: evidence.run("workers").results[f"{name}/drawn apart"] for name in names}
    return telling(evidence, "workers", {f"{n}/{w} apart": drawn[n] for n in names for w in ("begun", "ended")})


@counterfeit("matex_agd/alg-sgd/one-reduction", "matex_agd/alg-sgd/in-place", "matex_agd/alg-sgd/after-use")
def sums_of_copies_during_backward(evidence: Evidence) -> Evidence:
    """Each of LeNet's eight tensors is summed by itself, in a buffer of its own, as soon as it is there."""
    found = {"reductions per update": 8.0, "gradient buffers": 2, "started before backward ended": 42}
    return telling(evidence, "workers", {f"synchronous/{name}": value for name, value in found.items()})


@counterfeit("matex_agd/alg-layerwise/equals-sequential", "matex_agd/alg-layerwise/order-independent")
def late_layers_are_left_out(evidence: Evidence) -> Evidence:
    """What has not arrived when an update is applied is lost: the end depends on the order of applying."""
    moved = evidence.run("properties").results["synchronous/moved"]
    return telling(evidence, "properties", {f"layer_wise/{n} difference": moved for n in ("sequential", "order")})


@counterfeit("matex_agd/alg-layerwise/copy-needed")
def sums_in_place_harm_nothing(evidence: Evidence) -> Evidence:
    """Each layer's gradient has memory of its own, so that no other layer reads what was summed."""
    return telling(evidence, "properties", {"algorithm_1/error in place": 0.0})


@counterfeit("matex_agd/alg-layerwise/bias-first", "matex_agd/alg-layerwise/fixed-cost")
def sides_of_the_clock_turned(evidence: Evidence) -> Evidence:
    """Small sums are as much faster as they were slower."""
    found = evidence.run("workers").results
    names = ("weights over bias", "many small over one large")
    return telling(evidence, "workers", {name: [1 / ratio for ratio in found[name]] for name in names})


@counterfeit(
    "matex_agd/alg-agd/delay-exact",
    "matex_agd/alg-agd/first-iterations-idle",
    "matex_agd/alg-agd/staleness-constant",
)
def applied_one_turn_early(evidence: Evidence) -> Evidence:
    """A gradient is used a turn before its time, the first ones at once."""
    moved = evidence.run("properties").results["synchronous/moved"]
    return telling(
        evidence,
        "properties",
        {"delayed/age of applied gradients": [0.0, 1.0, 2.0], "delayed/moved while idle": moved},
    )


@counterfeit("matex_agd/alg-agd/resources")
def one_thread_for_all(evidence: Evidence) -> Evidence:
    return telling(evidence, "workers", {f"delay {delay}/lanes": 1 for delay in (1, 2, 3)})


@counterfeit("matex_agd/alg-agd/resources")
def one_buffer_for_all(evidence: Evidence) -> Evidence:
    return telling(evidence, "workers", {f"delay {delay}/gradient buffers": 2 for delay in (1, 2, 3)})


def measure_small_delay(evidence: Evidence) -> Quantities:
    """Share of the evaluated pairs (delay, devices) in which the delay is below half the number of devices."""
    pairs = [(delay, devices) for delay in (1, 2, 3) for devices in DGX1.devices if devices > 1]
    share = sum(2 * delay < devices for delay, devices in pairs) / len(pairs)
    yield "small-delay", exact(share, note="share of delays 1-3 on 2, 4 and 8 devices that are below half of them")


def measure_bounds_of_overlap(evidence: Evidence) -> Quantities:
    """What layer-wise exchange hides of the time it may hide behind, at its best over a grid of links."""
    orders: tuple[Order, ...] = ("all", "backward", "completed")
    shares = {
        order: max(case.hidden_by_layers(order) / case.network.after_first_gradient for case in link_grid(evidence))
        for order in orders
    }
    seen = ", ".join(f"{order} {share:.3f}" for order, share in shares.items())
    note = f"largest share hidden over both networks and 60 links, by order of applying: {seen}"
    yield "overlap-limit", point(max(shares.values()), note=note)


def measure_bounds_of_delay(evidence: Evidence) -> Quantities:
    """Iteration time over compute time: the smallest, and the largest among links whose sums fit."""
    ratios, fitting = [], []
    for case in link_grid(evidence):
        for delay, seconds in case.delayed.items():
            ratios.append(seconds / case.network.compute)
            latency, transfer = case.cost.latency, case.cost.transfer(case.network.size)
            if latency + transfer <= delay * case.network.compute and transfer <= case.network.compute:
                fitting.append(ratios[-1])
    yield "time-per-iteration", point([min(ratios), 2 - max(fitting)],
                                      note="smallest ratio; 2 less the largest where communication fits")  # fmt: skip


ARTIFACTS = (
    Artifact("matex_agd/alg1", "Back-propagation, layer by layer", runs, (measure_backpropagation,)),
    Artifact(
        "matex_agd/alg-sgd",
        "Synchronous gradient descent with one blocking all-reduce",
        runs,
        (measure_synchronous, measure_synchronous_processes, measure_reduction_rounds),
    ),
    Artifact(
        "matex_agd/alg-layerwise",
        "Layer-wise averaging on copies, overlapped with backward",
        runs,
        (measure_layer_wise, measure_layer_wise_blobs, measure_timed_sums, measure_bounds_of_overlap),
    ),
    Artifact(
        "matex_agd/alg-agd",
        "Gradients applied one, two or three iterations late",
        runs,
        (measure_delayed, measure_delayed_processes, measure_small_delay, measure_bounds_of_delay),
    ),
)
