"""The suite's side of a workload: its sessions, executed as it chooses by measurement, unevaluated; its floors.

A floor is what an update must at least do: operations counted, bytes bounded from below. Nothing is computed.

The network runs once forward and backward on the meta device. FLOPs are those of convolutions and matrix products
as ``torch.utils.flop_counter`` counts them, 2 for a multiply-add, forward and backward; the optimiser's few
operations per parameter are left out. Bytes assume that every number crosses the memory once for each use that
cannot be avoided when gradient and update are separate steps:

    per replica    parameters, gradients and velocity, each read once and written once: 6 x 4 bytes per parameter
    per gradient   the batch read once as float32, and what the backward pass needs written once and read once

Weights are in fact read three times and intermediate results move besides, so a real update moves more.

The same pass counts the framework's calls: executed layer by layer, a gradient takes as long as so many calls on
nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.plain import DECAY, MOMENTUM, RATE, example_count, random_sentences
from benchmarks.workloads import SENTENCE, TRANSLATION, WORDS, Workload
from paper_figures.inverse_law.experiments.search import SteppedSgd
from paper_figures.rudra.settings import cifar_server
from suite.data.order import WordOrder
from suite.experiment import Context, RunSpec
from suite.models.registry import construct
from suite.runner.autotune import measure_training
from suite.runner.pilot import build, update_of
from suite.training.build import random_classification, set_up
from suite.training.gradients.backend import AutogradGradients
from suite.training.loop import TrainingRun
from suite.training.numerics import apply, choose
from suite.training.optimizers import TorchSGD
from suite.training.translation import Corpus, TeacherForced, Translation, word_loss

FLOAT = 4  # bytes
VECTORS = 6  # parameters, gradients, velocity: read and written


class Calls(TorchDispatchMode):
    """How many of the framework's calls are made under it."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True)
class Counted:
    """One gradient: FLOPs, bytes of its batch and of what is kept for the backward pass, parameters, the framework's
    calls."""

    flops: float
    batch_bytes: int
    kept_bytes: int
    parameters: int
    calls: int


@cache
def gradient(network: str, batch: int) -> Counted:
    """Counts of one gradient of ``batch`` examples (sentences for ``cgru``)."""
    if network == "cgru":
        module: nn.Module = TeacherForced(construct(network, **TRANSLATION))
        source = torch.zeros(batch, SENTENCE + 1, dtype=torch.int64, device="meta")
        return _counted(module, (source, source != 0, source), source)
    module = construct(network)
    pixels = torch.empty(batch, *module.input_shape, device="meta")
    return _counted(module, pixels, torch.zeros(batch, dtype=torch.int64, device="meta"))


def _counted(module: nn.Module, inputs: Tensor | tuple[Tensor, ...], targets: Tensor) -> Counted:
    module = module.to("meta").train()
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    own = {p.untyped_storage()._cdata for p in module.parameters()} | {t.untyped_storage()._cdata for t in given}
    kept: dict[int, torch.UntypedStorage] = {}  # holding them keeps their addresses from being used again

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = storage
        return tensor

    operations, called = FlopCounterMode(display=False), Calls()
    with called, operations, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = module(inputs)
        loss = word_loss(outputs, targets) if isinstance(inputs, tuple) else F.cross_entropy(outputs, targets)
        loss.backward()
    return Counted(
        float(operations.get_total_flops()),
        sum(t.numel() * t.element_size() for t in given),
        sum(storage.nbytes() for storage in kept.values()),
        sum(p.numel() for p in module.parameters()),
        called.count,
    )


def flops(workload: Workload) -> float:
    """Floating-point operations of an update."""
    return workload.gradients * gradient(workload.network, workload.batch).flops


def calls(workload: Workload) -> int:
    """The framework's calls of an update whose gradients come one by one, layer by layer.

    Hardsync's are at one point, so that all of them are the gradient of one batch.
    """
    if workload.family == "server" and not workload.softsync:
        return gradient(workload.network, workload.batch * workload.learners).calls
    return workload.gradients * gradient(workload.network, workload.batch).calls


def replicas(workload: Workload) -> int:
    """Sets of parameters that an update changes: runs, averaged learners, or the one server."""
    return workload.learners if workload.family == "averaging" else workload.runs


def least_bytes(workload: Workload) -> float:
    """Bytes that an update moves at least."""
    counted = gradient(workload.network, workload.batch)
    state = replicas(workload) * VECTORS * FLOAT * counted.parameters
    return float(state + workload.gradients * (counted.batch_bytes + 2 * counted.kept_bytes))


FOREVER = 10**9


def specification(workload: Workload) -> RunSpec:
    """The settings that a session and the choice of its execution read."""
    algorithms: dict[str, dict[str, Any]] = {
        "averaging": {"name": "crossbow", "momentum": MOMENTUM},
        "server": {
            "name": "rudra",
            "n": workload.softsync,
            "workers": workload.learners,
            "history": 3 * workload.softsync + 3,
        },
    }
    served = workload.family == "server"
    settings: dict[str, Any] = {
        "model": {"name": workload.network},
        "algorithm": algorithms.get(workload.family, {"name": "sgd"}),
        "descent": {"rule": "torch", "momentum": MOMENTUM, "decay": DECAY},
        "order": {"kind": "with-replacement" if served else "fixed-cycle"},
        "batch": workload.batch,
        "workers": workload.learners,
        "rate": RATE,
        "updates": FOREVER,
        "evaluate": {"every": FOREVER},
        "record": {"every": 10**6},
        **({"server": cifar_server(workload.learners)} if served else {}),
    }
    return RunSpec("train", settings)


def execution(workload: Workload, device: str, threads: int) -> dict[str, Any]:
    """How the suite would execute it here: path and memory format, measured as before a first run."""
    spec = specification(workload)
    chosen = choose(spec, device, threads)
    if workload.family == "translation":
        return chosen  # its experiment measures nothing beforehand
    return chosen | dict(measure_training(spec, chosen))


def session(workload: Workload, chosen: Mapping[str, Any]) -> TrainingRun:
    """A session on random pictures."""
    spec = specification(workload)
    problem = random_classification(
        {"name": workload.network}, example_count(workload), chosen, chosen["channels_last"]
    )
    made = set_up(spec.settings, 0, problem, problem.inputs, problem.targets)
    return build(spec, Context(Path(tempfile.gettempdir()), chosen), made)


class Sentences(SteppedSgd):
    """What inverse_law trains translation with, on random sentences of one length."""

    def __init__(self, workload: Workload, device: str):
        (rows,) = random_sentences(64 * workload.batch, 64 * workload.batch)
        corpus = Corpus(range(TRANSLATION["vocabulary"]), rows, rows)
        sizes = {name: size for name, size in TRANSLATION.items() if name != "vocabulary"}
        problem = Translation(corpus, sizes, 0, device)
        super().__init__(AutogradGradients(problem), TorchSGD(MOMENTUM, DECAY), torch.tensor(RATE, device=device))
        self.order = WordOrder([SENTENCE] * len(rows), WORDS, 0)
        self.state, self.t = self.start(), 0

    def examples(self, t: int) -> torch.Tensor:
        return self.order.sentences(t)[None]

    def advance(self) -> None:
        """The next update."""
        self.state = self.update(self.state, self.t)
        self.t += 1


def in_process(workload: Workload, device: str, threads: int) -> tuple[Callable[[int], None], dict[str, Any]]:
    """The whole workload in this process, and how it is executed; seeds of a sweep come one after another."""
    chosen = execution(workload, device, threads)
    apply(chosen)
    if workload.family == "translation":
        runs = [Sentences(workload, chosen["device"]).advance]
    else:
        runs = [update_of(session(workload, chosen)) for _ in range(workload.runs)]

    def run(updates: int) -> None:
        for update in runs:
            for _ in range(updates):
                update()

    return run, chosen
