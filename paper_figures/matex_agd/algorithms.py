"""The paper's algorithms and equations: what their statements come to in the suite's implementation."""

from __future__ import annotations

import itertools

from paper_figures.matex_agd.link_results import draw_link, link_ratios, link_runs
from suite.claims.measured import exact, interval, point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.spec import RunSpec

PROPERTIES = RunSpec("matex_agd/properties")
WORKERS = RunSpec("matex_agd/workers")
LAYERS = RunSpec("matex_agd/layers")
ALEXNET, GOOGLENET = "caffe_alexnet", "caffe_googlenet"


def properties_and_workers(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    return {"properties": (PROPERTIES,), "workers": (WORKERS,), "layers": (LAYERS,)}


def _reader(evidence: Evidence, group: str) -> tuple[dict, tuple[str, ...]]:
    run = evidence.run(group)
    return dict(run.results), (run.id,)


def backpropagation(evidence: Evidence) -> Quantities:
    found, runs = _reader(evidence, "properties")
    yield (
        "gradient-check",
        exact(found["algorithm_1/gradient check"], runs=runs, note="central differences, step 1e-6"),
    )
    yield "relu", exact(found["algorithm_1/relu"], runs=runs, note="torch.relu on 1001 points of [-5, 5]")
    steps = [
        a - b for order in ("algorithm 1", "autograd") for a, b in _pairs(found[f"algorithm_1/order of {order}"])
    ]
    yield "last-to-first", exact(float(min(steps)), runs=runs, note="smallest step down, Algorithm 1 and autograd")


def _pairs(values: list[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(values))


def update_rule(evidence: Evidence) -> Quantities:
    found, runs = _reader(evidence, "properties")
    note = "cost before less cost after a step of 1e-3, with the printed plus sign"
    yield "descent", exact(found["algorithm_1/cost lowered by plus"], runs=runs, note=note)
    yield "descent-minus", exact(found["algorithm_1/cost lowered by minus"], runs=runs, note="with a minus sign")


def synchronous(evidence: Evidence) -> Quantities:
    found, runs = _reader(evidence, "properties")
    yield (
        "equals-serial",
        exact(
            max(found["synchronous/gradient difference"], found["synchronous/serial difference"]),
            runs=runs,
            note="one gradient, and the weights after 12 updates; LeNet, 4 workers, float64",
        ),
    )
    yield "equal-split", exact(found["partition/difference of mini-batches"], runs=runs)
    yield "disjoint", exact(found["partition/shared samples"], runs=runs, note="50,000 samples, 4 workers, one epoch")


def synchronous_processes(evidence: Evidence) -> Quantities:
    found, runs = _reader(evidence, "workers")
    started_apart = found["synchronous/drawn apart"] > 0
    yield (
        "replicas-equal",
        exact(
            max(found["synchronous/begun apart"], found["synchronous/ended apart"]),
            runs=runs,
            note=f"two processes; before the broadcast their weights {'differed' if started_apart else 'agreed'}",
        ),
    )
    yield "one-reduction", exact(found["synchronous/reductions per update"], runs=runs)
    yield (
        "in-place",
        exact(
            found["synchronous/gradient buffers"] - 1 + found["synchronous/sums outside the gradient buffers"],
            runs=runs,
        ),
    )
    yield (
        "after-use",
        exact(
            float(found["synchronous/started before backward ended"] == 0),
            runs=runs,
            note="no sum starts during backward",
        ),
    )


def reduction_rounds(evidence: Evidence) -> Quantities:
    """Rounds until every node knows every addend, when pairs exchange all they know (recursive doubling)."""
    rounds = []
    for nodes in (2, 4, 8, 16, 32, 64):
        known, distance = [{node} for node in range(nodes)], 1
        while any(len(held) < nodes for held in known):
            known = [held | known[node ^ distance] for node, held in enumerate(known)]
            distance *= 2
        rounds.append(distance.bit_length() - 1)
    yield "reduce-cost", exact(rounds, note="2 to 64 nodes; a ring takes 2 (n-1) rounds of 1/n of the data")


def layer_wise(evidence: Evidence) -> Quantities:
    found, runs = _reader(evidence, "properties")
    note = "LeNet, 4 workers, 12 updates, float64"
    yield "equals-sequential", exact(found["layer_wise/sequential difference"], runs=runs, note=note)
    yield "order-independent", exact(found["layer_wise/order difference"], runs=runs, note=note)
    yield (
        "copy-needed",
        exact(
            found["algorithm_1/error in place"] - found["algorithm_1/error on a copy"],
            runs=runs,
            note="error of averaged gradients, in place less on a copy, where the bias gradient is delta itself",
        ),
    )


def layer_wise_blobs(evidence: Evidence) -> Quantities:
    found, runs = _reader(evidence, "layers")
    per_tensor, other = _reader(evidence, "properties")
    yield (
        "reductions",
        exact(
            found[f"{ALEXNET} tensors"] * per_tensor["layer_wise/reductions per update and tensor"],
            runs=(*runs, *other),
            note="tensors of AlexNet x reductions per tensor counted on LeNet",
        ),
    )


def timed_sums(evidence: Evidence) -> Quantities:
    from suite.claims.intervals import log_interval

    found, runs = _reader(evidence, "workers")
    import math

    for name, key in (("bias-first", "weights over bias"), ("fixed-cost", "many small over one large")):
        ours = log_interval(found[key])
        ends = (math.log(ours.mean), math.log(ours.low), math.log(ours.high))
        yield name, interval(*ends, kind="measured", n=ours.n, runs=runs, note=f"log of {key}, two gloo processes")


def delayed(evidence: Evidence) -> Quantities:
    found, runs = _reader(evidence, "properties")
    yield (
        "delay-exact",
        exact(found["delayed/age of applied gradients"], runs=runs, note="turns from gradient to update"),
    )
    yield "zero-delay-is-sgd", exact(found["delayed/zero delay difference"], runs=runs)
    yield "first-iterations-idle", exact(found["delayed/moved while idle"], runs=runs)
    yield "staleness-constant", exact(found["delayed/staleness over delay"], runs=runs)
    note = "largest stable eta lambda of delays 0 to 3 with momentum 0.9, the solver's default"
    yield "stability-momentum", exact(found["delayed/largest stable rate, momentum 0.9"], runs=runs, note=note)
    note = "difference that decay at the weights read makes, over the distance moved in 12 updates; delays 1 to 3"
    yield "solver", exact(found["delayed/effect of the solver"], runs=runs, note=note)
    yield (
        "stability",
        exact(
            found["delayed/largest stable rate"],
            runs=runs,
            note="found by running the update; theory 2 sin(pi/(2(2d+1)))",
        ),
    )


def delayed_processes(evidence: Evidence) -> Quantities:
    found, runs = _reader(evidence, "workers")
    names = [f"delay {delay}" for delay in (1, 2, 3)]
    used = [found[f"{n}/gradient buffers"] - 1 + found[f"{n}/sums outside the gradient buffers"] for n in names]
    agree = all(found[f"{n}/lanes"] == count for n, count in zip(names, used, strict=True))
    lanes = "as many process groups" if agree else "another number of process groups"
    yield "resources", exact(used, runs=runs, note=f"buffers beside the gradient's own, and {lanes}")
    apart = max(found[f"{n}/{when} apart"] for n in names for when in ("begun", "ended"))
    yield "replicas-equal", exact(apart, runs=runs, note="two gloo processes, delays 1 to 3")


def small_delay(evidence: Evidence) -> Quantities:
    """Share of the evaluated pairs (delay, devices) in which the delay is below half the number of devices."""
    from suite.cost_models.machines import DGX1

    pairs = [(delay, devices) for delay in (1, 2, 3) for devices in DGX1.devices if devices > 1]
    share = sum(2 * delay < devices for delay, devices in pairs) / len(pairs)
    yield "small-delay", exact(share, note="share of delays 1-3 on 2, 4 and 8 devices that are below half of them")


def efficiency(evidence: Evidence) -> Quantities:
    from paper_figures.matex_agd.printed import printed

    (best,), (speedup,) = printed("fig1a/efficiency"), printed("fig1a/speedup")
    yield "consistency", exact(best / speedup, note="82% / 1.7, if both belong to one setting")


def bounds_of_overlap(evidence: Evidence) -> Quantities:
    """What layer-wise exchange hides of the time it may hide behind, at its best over a grid of links."""
    from paper_figures.matex_agd.figure1 import link_grid

    orders = ("all", "backward", "completed")
    shares = {
        order: max(case.hidden_by_layers(order) / case.network.after_first_gradient for case in link_grid(evidence))
        for order in orders
    }
    seen = ", ".join(f"{order} {share:.3f}" for order, share in shares.items())
    note = f"largest share hidden over both networks and 60 links, by order of applying: {seen}"
    yield "overlap-limit", point(max(shares.values()), kind="simulated", note=note)


def bounds_of_delay(evidence: Evidence) -> Quantities:
    """Iteration time over compute time: the smallest, and the largest among links whose sums fit."""
    from paper_figures.matex_agd.figure1 import link_grid

    ratios, fitting = [], []
    for case in link_grid(evidence):
        for delay, seconds in case.delayed.items():
            ratios.append(seconds / case.network.compute)
            latency, transfer = case.cost.latency, case.cost.transfer(case.network.size)
            if latency + transfer <= delay * case.network.compute and transfer <= case.network.compute:
                fitting.append(ratios[-1])
    yield "time-per-iteration", point([min(ratios), 2 - max(fitting)], kind="simulated",
                                      note="smallest ratio; 2 less the largest where communication fits")  # fmt: skip


ARTIFACTS = (
    Artifact("matex_agd/alg1", "Back-propagation, layer by layer", properties_and_workers, (backpropagation,)),
    Artifact(
        "matex_agd/alg-sgd",
        "Synchronous gradient descent with one blocking all-reduce",
        properties_and_workers,
        (synchronous, synchronous_processes, reduction_rounds),
    ),
    Artifact(
        "matex_agd/alg-layerwise",
        "Layer-wise averaging on copies, overlapped with backward",
        properties_and_workers,
        (layer_wise, layer_wise_blobs, timed_sums, bounds_of_overlap),
    ),
    Artifact(
        "matex_agd/alg-agd",
        "Gradients applied one, two or three iterations late",
        properties_and_workers,
        (delayed, delayed_processes, small_delay, bounds_of_delay),
    ),
    Artifact("matex_agd/eq1", "Update of weights and biases", properties_and_workers, (update_rule,)),
    Artifact(
        "matex_agd/eq-efficiency",
        "Speed-up and parallel efficiency",
        link_runs,
        (efficiency, link_ratios),
        draw_link,
        "Rates relative to no communication of every method over a shaped link at three speeds, with the cost "
        "model's prediction, for a sleeping and a computing network",
        (9.6, 4.0),
    ),
)
