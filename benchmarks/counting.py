"""What an update must at least do: floating-point operations counted, bytes bounded from below. Nothing is computed.

The network runs once forward and backward on the meta device. FLOPs are those of convolutions and matrix products
as ``torch.utils.flop_counter`` counts them, 2 for a multiply-add, forward and backward; the optimiser's few
operations per parameter are left out. Bytes assume that every number crosses the memory once for each use that
cannot be avoided when gradient and update are separate steps:

    per replica    parameters, gradients and velocity, each read once and written once: 6 x 4 bytes per parameter
    per gradient   the batch read once as float32, and what the backward pass needs written once and read once

Weights are in fact read three times and intermediate results move besides, so a real update moves more.

The same pass names the matrix products that do these operations (a convolution's are those of its unfolded maps) and
counts the framework's calls: executed layer by layer, a gradient takes as long as so many calls on nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.workloads import SENTENCE, Workload
from suite.models.registry import construct
from suite.training.translation import TeacherForced, word_loss

FLOAT = 4  # bytes
VECTORS = 6  # parameters, gradients, velocity: read and written
TRANSLATION = {"vocabulary": 16_000, "embedding": 512, "hidden": 512}  # inverse_law's paper profile


class Product(NamedTuple):
    """``count`` products of [rows, inner] with [inner, columns] in one call."""

    count: int
    rows: int
    inner: int
    columns: int


class Recorder(TorchDispatchMode):
    """Products and number of calls of what is computed under it."""

    def __init__(self) -> None:
        super().__init__()
        self.products: Counter[Product] = Counter()
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        made = func(*args, **(kwargs or {}))
        self.products.update(products_of(func.overloadpacket, args, made))
        return made


def products_of(operator: Any, args: Any, made: Any) -> list[Product]:
    """The matrix products that an operator of ``torch.ops.aten`` does."""
    aten = torch.ops.aten
    if operator in (aten.mm, aten.addmm, aten.bmm, aten.baddbmm):
        a, b = args[-2:]
        return [Product(len(a) if a.dim() == 3 else 1, *a.shape[-2:], b.shape[-1])]
    if operator is aten.convolution:
        weight, groups = args[1], args[8]
        rows, inner = made.numel() // made.shape[1], weight[0].numel()
        return [Product(groups, rows, inner, len(weight) // groups)]
    if operator is aten.convolution_backward:
        grad, weight, groups, wanted = args[0], args[2], args[9], args[10]
        rows, inner, columns = grad.numel() // grad.shape[1], weight[0].numel(), len(weight) // groups
        both = Product(groups, rows, columns, inner), Product(groups, inner, rows, columns)
        return [product for product, asked in zip(both, wanted, strict=False) if asked]
    return []


@dataclass(frozen=True)
class Counted:
    """One gradient: FLOPs, bytes of its batch and of what is kept for the backward pass; parameters; its products
    with how often each is done, and the framework's calls."""

    flops: float
    batch_bytes: int
    kept_bytes: int
    parameters: int
    products: Counter[Product]
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

    counter, recorder = FlopCounterMode(display=False), Recorder()
    with recorder, counter, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = module(inputs)
        loss = word_loss(outputs, targets) if isinstance(inputs, tuple) else F.cross_entropy(outputs, targets)
        loss.backward()
    return Counted(
        float(counter.get_total_flops()),
        sum(t.numel() * t.element_size() for t in given),
        sum(storage.nbytes() for storage in kept.values()),
        sum(p.numel() for p in module.parameters()),
        recorder.products,
        recorder.calls,
    )


def flops(workload: Workload) -> float:
    """Floating-point operations of an update."""
    return workload.gradients * gradient(workload.network, workload.batch).flops


def fewest(workload: Workload) -> tuple[int, Counted]:
    """How many gradients an update must do one by one, and what one of them is: hardsync's are at one point, so that
    all of them are the gradient of one batch."""
    joined = workload.family == "server" and not workload.softsync
    batch = workload.batch * (workload.learners if joined else 1)
    return 1 if joined else workload.gradients, gradient(workload.network, batch)


def calls(workload: Workload) -> int:
    """The framework's calls of an update whose gradients come one by one, layer by layer."""
    count, one = fewest(workload)
    return count * one.calls


def replicas(workload: Workload) -> int:
    """Sets of parameters that an update changes: runs, averaged learners, or the one server."""
    return workload.learners if workload.family == "averaging" else workload.runs


def least_bytes(workload: Workload) -> float:
    """Bytes that an update moves at least."""
    counted = gradient(workload.network, workload.batch)
    state = replicas(workload) * VECTORS * FLOAT * counted.parameters
    return float(state + workload.gradients * (counted.batch_bytes + 2 * counted.kept_bytes))
