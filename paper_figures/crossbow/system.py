"""The experiments about the system: tasks on streams, the auto-tuner's rule, memory plans, operators.

All but the recorded trace are deterministic. None trains anything.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from paper_figures.crossbow.settings import NETWORKS
from reference_impls.crossbow_tuner import Literal, Settling, literal, settling
from suite.experiment import Context
from suite.model_averaging.learners import on_streams
from suite.model_averaging.memory_plan import Operator, Pool, offline, online, run, training_operators
from suite.model_averaging.task_schedule import Durations, Task, idle_seconds, schedule
from suite.models.operators import crossbow_operators
from suite.models.registry import construct
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed

PAUSE = 0.002  # seconds of a recorded learning task; a quadratic's gradient alone is too short to see


def tasks(spec: RunSpec, context: Context) -> Outcome:
    """Virtual schedules of 2 GPUs with 2 learners (Fig. 8), and a trace recorded from threads.

    Results: shares of tasks that keep each rule, and idle stream-seconds under both ways to assign batches.
    """
    durations = Durations(lambda batch: 1 + _uniform(spec.seed, batch), local=0.1, overall=0.5)
    virtual = schedule(4, 2, 2, durations)
    centre_apart, recorded = _recorded(learners=2, iterations=12)
    first_come, round_robin = [], []
    for repeat in range(spec.settings["repeats"]):
        varied = Durations(partial(_length, spec.seed, repeat), local=0.05, overall=0.2)
        first_come.append(idle_seconds(schedule(100, 2, 4, varied)))
        round_robin.append(idle_seconds(schedule(100, 2, 4, varied, "round-robin")))
    results: dict[str, Any] = {
        "idle_first_come": first_come,
        "idle_round_robin": round_robin,
        "recorded_centre_apart": centre_apart,
    }
    for name, trace in (("virtual", virtual), ("recorded", recorded)):
        results |= {f"{name}_{rule}": share for rule, share in _rules(trace).items()}
    frames = {
        name: pd.DataFrame([asdict(t) for t in trace])
        for name, trace in (("virtual", virtual), ("recorded", recorded))
    }
    return Outcome("finished", results, frames)


def _length(run_seed: int, repeat: int, batch: int) -> float:
    """Seconds of a learning task between 0.5 and 1.5."""
    return 0.5 + _uniform(run_seed, batch, repeat)


def _uniform(*coordinates: int) -> float:
    return seed(*coordinates) / 2**63


def _recorded(learners: int, iterations: int) -> tuple[float, list[Task]]:
    """A run on real threads, and how far its centre is from Algorithm 1 written out."""
    target = torch.linspace(-1, 1, 8, dtype=torch.float64)

    def gradient(learner: int, w: Tensor, batch: int) -> Tensor:
        time.sleep(PAUSE * (1 + learner / 2))
        return w - target * (1 + batch % 3)

    x0 = torch.ones(8, dtype=torch.float64)
    _, centre, trace = on_streams(learners, iterations, x0, gradient, alpha=1 / learners, momentum=0.9, lr=0.1)
    w, z, z_prev = x0.expand(learners, -1), x0, x0
    for i in range(iterations):
        g = torch.stack([w[j] - target * (1 + (i * learners + j) % 3) for j in range(learners)])
        c = (w - z) / learners
        w, z, z_prev = w - 0.1 * g - c, z + c.sum(0) + 0.9 * (z - z_prev), z
    return float((centre - z).abs().max()), trace


def _rules(trace: list[Task]) -> dict[str, float]:
    """Shares of cases in which sections 4.1 to 4.3 hold in a trace."""
    by: dict[tuple[str, int, int], Task] = {}
    for task in trace:
        by[task.kind, task.iteration, task.learner if task.learner >= 0 else task.device] = task
    learn = [task for task in trace if task.kind == "learn"]
    local = [task for task in trace if task.kind == "local"]
    iterations, learners = 1 + max(t.iteration for t in learn), 1 + max(t.learner for t in learn)
    later = [task for task in learn if task.iteration]
    free = sum(by["local", task.iteration - 1, task.learner].end <= task.start for task in later)
    done = {i: max(t.end for t in trace if t.kind == "global" and t.iteration == i) for i in range(iterations)}
    began = {i: min(t.start for t in trace if t.kind == "global" and t.iteration == i) for i in range(iterations)}
    following = [task for task in local if task.iteration]
    waited = sum(task.start >= done[task.iteration - 1] for task in following)
    complete = sum(task.end <= began[task.iteration] for task in local)
    overlapping = {task.iteration for task in later if task.start < done[task.iteration - 1]}
    streams = sum(by["learn", t.iteration, t.learner].stream == t.stream for t in local)
    return {
        "learn_after_return": free / len(later),
        "local_after_average": waited / len(following),
        "average_after_local": complete / len(local),
        "iterations_overlapping": len(overlapping) / (iterations - 1),
        "local_per_replica": len(local) / (iterations * learners),
        "learn_per_replica": len(learn) / (iterations * learners),
        "local_on_stream_of_learning": streams / len(local),
    }


def tuner(spec: RunSpec, context: Context) -> Outcome:
    """Algorithm 2 and the settling rule on scripted throughput curves with one peak.

    ``literal_distance``: farthest from the peak in the second half of noise-free runs. ``literal_lost``: share of
    noisy runs on a plateau that reach 0 learners. ``settled``: share of noisy runs that end within one of the peak.
    """
    draw = random.Random(spec.seed)
    lines: list[dict[str, Any]] = []
    distances = []
    for peak in range(1, 9):
        curve = _curve(peak)
        state, visited = Literal(), []
        for reading in range(60):
            state = literal(state, curve(state.learners), threshold=0.02 * curve(1))
            visited.append(state.learners)
            lines.append({"rule": "Algorithm 2", "peak": peak, "reading": reading, "learners": state.learners})
        distances.append(max(abs(count - peak) for count in visited[30:]))
        settled, reading = Settling(), 0
        while not settled.holding:
            settled = settling(settled, curve(settled.learners))
            lines.append({"rule": "settling", "peak": peak, "reading": reading, "learners": settled.learners})
            reading += 1
    lost = 0
    for _ in range(spec.settings["lost_runs"]):
        state = Literal()  # on a plateau, as in Fig. 14 with 8 GPUs: more than 4 learners gain nothing
        for _ in range(2000):
            throughput = 1000 * min(state.learners, 4) * draw.gauss(1, 0.005)
            state = literal(state, throughput, threshold=20.0)
            if state.learners == 0:
                lost += 1
                break
    close = 0
    for _ in range(spec.settings["settling_runs"]):
        peak = draw.randint(1, 8)
        curve, held = _curve(peak), Settling()
        while not held.holding:
            held = settling(held, curve(held.learners) * draw.gauss(1, 0.02))
        close += abs(held.learners - peak) <= 1
    first = literal(Literal(), 100.0, threshold=5.0)
    three = Literal(3, 100.0)
    results = {
        "starts_at": Literal().learners,
        "after_first": first.learners,
        "on_rise": literal(three, 105.1, threshold=5.0).learners - 3,
        "on_fall": literal(three, 99.9, threshold=5.0).learners - 3,
        "on_plateau": [literal(three, t, threshold=5.0).learners - 3 for t in (100.0, 102.0, 105.0)],
        "literal_distance": max(distances),
        "literal_lost": lost / spec.settings["lost_runs"],
        "settled": close / spec.settings["settling_runs"],
        "settling_runs": spec.settings["settling_runs"],
    }
    return Outcome("finished", results, {"walks": pd.DataFrame(lines)})


def _curve(peak: int) -> Callable[[int], float]:
    """Throughput in proportion to the learners up to the peak, 3% less for each learner beyond; 0 for none."""
    return lambda learners: 1000 * min(learners, peak) * 0.97 ** max(0, learners - peak)


def sizes(spec: RunSpec, context: Context) -> Outcome:
    """Parameters and operators of Table 1's networks, counted; offline and online memory plans (section 4.5)."""
    results: dict[str, Any] = {}
    for name in NETWORKS:
        module = construct(name)
        operators = dataflow(module, batch=spec.settings["batch"])
        plan, apart = offline(operators), sum(operator.size for operator in operators)
        results |= {
            f"{name}_parameters": sum(p.numel() for p in module.parameters()),
            f"{name}_operators": crossbow_operators(name),
            f"{name}_bytes": apart,
            f"{name}_planned": plan.bytes,
            f"{name}_overwrites": overwrites(operators),
            f"{name}_shared": [online(operators, 4, lag) for lag in (0, len(operators) // 4, len(operators))],
        }
    return Outcome("finished", results)


def dataflow(module: nn.Module, batch: int) -> list[Operator]:
    """Forward and gradient operators of a classifier with the bytes of their outputs, traced on the meta device.

    A layer's inputs are recognised by the tensors it is called with; views (flatten) are no operators.
    """
    outputs: list[int] = []
    inputs: list[tuple[int, ...]] = []
    origin: dict[int, int] = {}
    alive: list[Tensor] = []  # keeps ids from being used again

    def visit(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        sources = tuple(origin[id(tensor)] for tensor in given if id(tensor) in origin)
        alive.extend((*given, output))
        if isinstance(layer, nn.Flatten | nn.Identity):
            if sources:
                origin[id(output)] = sources[0]
            return
        origin[id(output)] = len(outputs)
        outputs.append(4 * output.numel())
        inputs.append(sources)

    handles = [layer.register_forward_hook(visit) for layer in module.modules() if not list(layer.children())]
    shape: Any = module.input_shape
    with torch.no_grad():
        module.to("meta")(torch.empty(batch, *shape, device="meta"))
    for handle in handles:
        handle.remove()
    return training_operators(outputs, inputs)


def overwrites(operators: list[Operator]) -> int:
    """How often a plan writes into a buffer whose output is still to be read, found by replaying it."""
    last = {position: position for position in range(len(operators))}
    for position, operator in enumerate(operators):
        for source in operator.inputs:
            last[source] = position
    found, held = 0, dict[int, int]()
    for position, buffer in run(operators, Pool()):
        if buffer in held and last[held[buffer]] >= position:
            found += 1
        held[buffer] = position
    return found
