"""What an update must at least do: floating-point operations counted, bytes bounded from below. Nothing is computed.

The network runs once forward and backward on the meta device. FLOPs are those of convolutions and matrix products
as ``torch.utils.flop_counter`` counts them, 2 for a multiply-add, forward and backward; the optimiser's few
operations per parameter are left out. Bytes assume that every number crosses the memory once for each use that
cannot be avoided when gradient and update are separate steps:

    per replica    parameters, gradients and velocity, each read once and written once: 6 x 4 bytes per parameter
    per gradient   the batch read once as float32, and what the backward pass needs written once and read once

Weights are in fact read three times and intermediate results move besides, so a real update moves more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.workloads import SENTENCE, Workload
from suite.models.registry import construct
from suite.training.translation import TeacherForced, word_loss

FLOAT = 4  # bytes
VECTORS = 6  # parameters, gradients, velocity: read and written
TRANSLATION = {"vocabulary": 16_000, "embedding": 512, "hidden": 512}  # inverse_law's paper profile


@dataclass(frozen=True)
class Counted:
    """One gradient: FLOPs, bytes of its batch and of what is kept for the backward pass; parameters."""

    flops: float
    batch_bytes: int
    kept_bytes: int
    parameters: int


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

    counter = FlopCounterMode(display=False)
    with counter, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = module(inputs)
        loss = word_loss(outputs, targets) if isinstance(inputs, tuple) else F.cross_entropy(outputs, targets)
        loss.backward()
    return Counted(
        float(counter.get_total_flops()),
        sum(t.numel() * t.element_size() for t in given),
        sum(storage.nbytes() for storage in kept.values()),
        sum(p.numel() for p in module.parameters()),
    )


def flops(workload: Workload) -> float:
    """Floating-point operations of an update."""
    return workload.gradients * gradient(workload.network, workload.batch).flops


def replicas(workload: Workload) -> int:
    """Sets of parameters that an update changes: runs, averaged learners, or the one server."""
    return workload.learners if workload.family == "averaging" else workload.runs


def least_bytes(workload: Workload) -> float:
    """Bytes that an update moves at least."""
    counted = gradient(workload.network, workload.batch)
    state = replicas(workload) * VECTORS * FLOAT * counted.parameters
    return float(state + workload.gradients * (counted.batch_bytes + 2 * counted.kept_bytes))
