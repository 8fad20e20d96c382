"""Gradients of a small network by machine code made for it: no framework between its layers.

For a batch of a few examples a framework's calls cost several times their arithmetic. ``native.cpp`` and its headers
hold the layers as templates; a *plan* is the network written as a type, so that every extent is a constant, and is
compiled at first use (:mod:`suite.training.machine_code`). A run records the *build*, since another may round
differently. Before a network's plan is used, its gradient is compared with autograd's.

A problem that has no native gradient says why (:func:`refusal`): a layer without a template, a layout or precision it
was not written for, no compiler. It is then computed by another path.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from reference_impls.contract import Algorithm, Points, Turn
from reference_impls.rudra import Softsync, SoftsyncState
from suite.models.layers import BatchNorm, ResidualBlock, WithinChannelLRN, ZeroPaddedShortcut
from suite.models.network import Chain
from suite.training.evaluation import WorstFirst
from suite.training.gradients.backend import Backend, Batch, Reader, Rows, ServerStep, Updated
from suite.training.gradients.native_check import agrees
from suite.training.machine_code import NUMBERS, NativeError, Source
from suite.training.optimizers import CaffeSGD, InPlace, alone_in_place

FILE = Path(__file__).with_suffix(".cpp")
SOURCE = Source(
    FILE, tuple(FILE.with_name(f"native_{name}.h") for name in ("layers", "products", "residual", "team", "winograd"))
)

WIDEST = 64  # channels of a batch norm: those of narrow networks, whose gain was measured
CHUNK = 20  # examples of a test read at a time: machine code takes few as fast as many
MONOTONE = nn.ReLU | nn.Tanh
Three = tuple[Tensor, Tensor, Tensor]


def plan(module: nn.Module) -> str:
    """The type in ``native.cpp`` that stands for a network. Raises NativeError for one that has none.

    A ``Conv`` in it makes the fewest multiplications that it can; as ``Direct`` it would sum directly.
    An activation before a maximum is taken after it, of fewer numbers: it is monotone, so the outputs are the same
    but for the rounding of the activation.
    """
    if not isinstance(module, Chain):
        raise NativeError("the network is no chain of layers")
    if any(p.dtype not in NUMBERS for p in module.parameters()):
        raise NativeError(f"its numbers must be one of {', '.join(NUMBERS.values())}")
    rows, after = _rows(module, tuple(module.input_shape))
    if len(after) != 1:
        raise NativeError("the network does not end in one row of outputs for each example")
    return f"Rows<{', '.join(rows)}>"


def _rows(module: nn.Sequential, inputs: tuple[int, ...]) -> tuple[list[str], tuple[int, ...]]:
    """The templates of layers that take a whole batch, from maps or rows of a shape, and the shape of the outputs."""
    rows, pictures, before, after = list[str](), list[str](), None, inputs
    for name, layer, shape, after in _layers(module, inputs):
        if isinstance(layer, nn.Linear):
            if layer.bias is None or len(shape) != 1:
                raise NativeError(f"its layer {name} has no bias, or reads maps")
            rows += [*_together(pictures), f"Linear<{layer.in_features}, {layer.out_features}>"]
            pictures = []
        elif isinstance(layer, nn.Dropout) and len(shape) == 1:
            rows += [*_together(pictures), f"Dropout<{shape[0]}>"]
            pictures = []
        elif isinstance(layer, BatchNorm | ResidualBlock):
            coupled = _norm(name, layer, shape) if isinstance(layer, BatchNorm) else _residual(name, layer, shape)
            rows += [*_together(pictures), coupled]
            pictures = []
        elif isinstance(layer, nn.ReLU) and isinstance(before, BatchNorm):
            rows[-1] = f"{rows[-1][:-1]}, true>"
        else:
            pictures.append(_of_one_example(name, layer, shape, after))
            if isinstance(layer, nn.MaxPool2d) and isinstance(before, MONOTONE):
                pictures[-2:] = [pictures[-1], _of_one_example(name, before, after, after)]
        before = layer
    return [*rows, *_together(pictures)], after


def _norm(name: str, layer: BatchNorm, shape: tuple[int, ...]) -> str:
    channels, *extent = shape
    if channels % 16 or math.prod(extent) % 4 or channels > WIDEST:
        raise NativeError(f"its layer {name} normalises {channels} channels, and 16, 32 and so on to {WIDEST} can be")
    eps, momentum = (Fraction(str(number)) for number in (layer.eps, layer.momentum))
    ratios = (f"std::ratio<{number.numerator}, {number.denominator}>" for number in (eps, momentum))
    return f"Norm<{math.prod(extent)}, {channels}, {', '.join(ratios)}>"


def _residual(name: str, block: ResidualBlock, shape: tuple[int, ...]) -> str:
    """Series take the place of maps by their gradients, which only these layers allow."""
    series = []
    for part in (block.branch, block.shortcut):
        layers = part if isinstance(part, nn.Sequential) else nn.Sequential(part)
        kinds = "".join(type(layer).__name__ for layer in layers).replace("BatchNormReLU", "BatchNorm")
        if set(kinds.split("Conv2dBatchNorm")) - {"", "Identity", "ZeroPaddedShortcut"}:
            raise NativeError(f"its block {name} is not made of convolutions, each normalised")
        series.append(f"Series<{', '.join(_rows(layers, shape)[0] if kinds != 'Identity' else ())}>")
    return f"Residual<{', '.join(series)}>"


def _layers(
    module: nn.Sequential, shape: tuple[int, ...]
) -> Iterator[tuple[str, nn.Module, tuple[int, ...], tuple[int, ...]]]:
    """Each layer with its name and the shapes of an example before and after it."""
    for name, layer in module.named_children():
        after = tuple(_outputs(layer, shape))
        yield name, layer, shape, after
        shape = after


def _outputs(layer: nn.Module, shape: tuple[int, ...]) -> torch.Size:
    if isinstance(layer, nn.Linear):  # torch would import its compiler, for a second, to tell the shape of a product
        return torch.Size([*shape[:-1], layer.out_features])
    state = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
    numbers = next((tensor.dtype for tensor in state.values()), torch.float32)
    meta = {name: torch.empty_like(tensor, device="meta") for name, tensor in state.items()}
    return torch.func.functional_call(layer, meta, (torch.empty(2, *shape, dtype=numbers, device="meta"),)).shape[1:]


def _together(pictures: list[str]) -> list[str]:
    return [f"Pictures<{', '.join(pictures)}>"] if pictures else []


def _of_one_example(name: str, layer: nn.Module, shape: tuple[int, ...], after: tuple[int, ...]) -> str:
    """The template of a layer that takes examples one by one, from maps [channels, height, width] or a row."""
    if isinstance(layer, MONOTONE):
        return f"{'Relu' if isinstance(layer, nn.ReLU) else 'Tanh'}<{math.prod(shape)}>"
    if isinstance(layer, nn.Flatten) and len(after) == 1:
        channels, *extent = shape
        return f"Flatten<{math.prod(extent)}, {channels}>"
    if len(shape) == 3:
        channels, height, width = shape
        here, windowed = f"{height}, {width}, {channels}", isinstance(layer, nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d)
        window = _square(layer.kernel_size, layer.stride, layer.padding) if windowed else ""
        match layer:
            case nn.Conv2d(groups=1, dilation=(1, 1), padding_mode="zeros") if window:
                return f"Conv<{here}, {layer.out_channels}, {window}{', false' if layer.bias is None else ''}>"
            case ZeroPaddedShortcut():
                return f"Subsample<{here}, {after[0]}, {layer.stride}>"
            case nn.MaxPool2d(dilation=1 | (1, 1), return_indices=False) if window:
                return f"MaxPool<{here}, {window}, {after[1]}, {after[2]}>"
            case nn.AvgPool2d(divisor_override=None, count_include_pad=counted) if window:
                if counted or window.endswith(" 0"):
                    return f"AveragePool<{here}, {window}, {after[1]}, {after[2]}>"
            case WithinChannelLRN(beta=0.75):
                alpha = Fraction(str(layer.alpha))
                return f"WithinChannel<{here}, {layer.size}, std::ratio<{alpha.numerator}, {alpha.denominator}>>"
    raise NativeError(f"its layer {name} ({type(layer).__name__}) has no native form")


def _square(*extents: Any) -> str:
    """Kernel, stride and padding as template arguments; empty where they differ along the axes."""
    pairs = [extent if isinstance(extent, tuple) else (extent, extent) for extent in extents]
    return ", ".join(str(across) for across, _ in pairs) if all(a == b for a, b in pairs) else ""


# ---------------------------------------------------------------- building


class Library:
    """A plan's machine code. ``build`` names it: equal builds give equal bits on the same processor."""

    def __init__(self, path: Path, build: str):
        self.build, self.agrees = build, False  # with autograd, once compared
        library = ctypes.CDLL(str(path))
        self.work: Callable[[int, int], int] = library.work  # numbers of scratch memory, of examples and threads
        library.work.restype, library.work.argtypes = ctypes.c_long, [ctypes.c_long] * 2
        library.block.restype = ctypes.c_long
        self.block: int = library.block()  # examples that its convolutions take together
        self.winograd: bool = bool(library.winograd())  # whether any of them is no direct sum
        self.gradient: Callable[..., float] = library.gradient
        library.gradient.restype = ctypes.c_double
        library.gradient.argtypes = [*[ctypes.c_void_p] * 4, *[ctypes.c_long] * 2, *[ctypes.c_void_p] * 2]
        self.update: Callable[..., float] = library.update
        library.update.restype = ctypes.c_double
        library.update.argtypes = [
            *[ctypes.c_void_p] * 5,
            ctypes.c_double,
            *[ctypes.c_void_p] * 2,
            *[ctypes.c_long] * 2,
            *[ctypes.c_void_p] * 2,
        ]
        self.test: Callable[..., None] = library.test
        library.test.restype = None
        library.test.argtypes = [*[ctypes.c_void_p] * 3, *[ctypes.c_long] * 2, *[ctypes.c_void_p] * 2]


@cache
def library(network: str, numbers: str) -> Library:
    """The library of a plan, compiled unless it is kept already. Raises NativeError where it cannot be made."""
    return SOURCE.library(_definitions(network, numbers), Library)


def _definitions(network: str, numbers: str) -> dict[str, str]:
    return {"REAL": numbers, "PLAN": network}


# ---------------------------------------------------------------- use


class Native(Backend):
    """Gradients one at a time by a network's own machine code, each in the threads that torch has.

    A thread takes two examples or more: with a few the same bits come from any number of threads, with more the sums
    of convolutions and the loss are rounded in another order by each number, and no other.

    Raises NativeError where there is none, or where it is of another build than the one that a run began with.
    """

    name = "native"

    def __init__(self, problem: Any, build: str | None = None, direct: bool = False):
        """``direct``: by direct sums alone; where a build is named, it says by itself which form it is."""
        super().__init__(problem)
        if not hasattr(problem, "flat") or problem.criterion is not F.cross_entropy:
            raise NativeError("it is no network, or its loss is not the cross-entropy")
        self.flat = problem.flat
        if self.flat.x.device.type != "cpu":
            raise NativeError(f"machine code is made for the CPU, and the network lies on {self.flat.x.device.type}")
        if not self.flat.channels_last and any(len(shape) == 4 for shape in self.flat.shapes):
            raise NativeError("weights of convolutions must lie channels-last")
        network = self._form(build, direct)
        layers = _layers(self.flat.module, self.flat.module.input_shape)
        self._dropouts = [(layer, shape[0]) for _, layer, shape, _ in layers if isinstance(layer, nn.Dropout)]
        if self._dropouts and self.flat.q:
            raise NativeError("it has dropout beside batch norm")
        self.library = library(network, NUMBERS[self.flat.x.dtype])
        if build not in (None, self.library.build):
            raise NativeError(
                f"it was begun with the native build {build}, and source, compiler and processor here make "
                f"{self.library.build}, which may round differently"
            )
        self._grads = self.flat.grad[None]
        self._work = self.flat.x.new_empty(0)
        if not self.library.agrees and not agrees(self):
            raise NativeError("its machine code does not agree with autograd: the compiler is not to be trusted")
        self.library.agrees = True

    def _form(self, build: str | None, direct: bool) -> str:
        """The plan with convolutions in the form of a build, or in the one asked for."""
        fewest = plan(self.flat.module)
        summed = fewest.replace("Conv<", "Direct<")
        if build == SOURCE.build(_definitions(summed, NUMBERS[self.flat.x.dtype])):
            return summed
        return summed if direct and build is None else fewest

    @classmethod
    def of_run(cls, problem: Any, build: str | None = None) -> Native:
        return cls(problem, build)

    @classmethod
    def refusal(cls, problem: Any) -> str | None:
        """Why a problem has no native gradient here. Compiles what is not kept yet, which takes seconds."""
        try:
            cls(problem)
        except NativeError as error:
            return str(error)
        return None

    def step(self, algorithm: Algorithm[Any]) -> NativeStep | None:
        return NativeStep(self, algorithm.optimizer) if alone_in_place(algorithm, self.flat.x.dtype) else None

    def server_step(self, algorithm: Algorithm[Any]) -> ServerStep | None:
        if not isinstance(algorithm, Softsync) or algorithm.per_gradient or self.flat.x.dtype != torch.float32:
            return None
        if self.flat.q:  # it passes no running statistics
            return None
        return NativeServerStep(self, algorithm) if isinstance(algorithm.optimizer, InPlace) else None

    def reader(self, inputs: Tensor, targets: Tensor) -> Reader:
        if self.flat.q:  # batch norm is tested by its running statistics, which machine code does not read
            return super().reader(inputs, targets)
        worst = WorstFirst(self.losses, inputs, targets, CHUNK)
        return Reader(worst.read, worst.last)

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        n = len(batches)
        if len(self._grads) < n:
            self._grads = points.new_empty(n, self.flat.d)
        points = points.detach().contiguous()
        after = buffers.clone() if self.flat.q else buffers
        losses = [self._one(points[i], self._grads[i], after[i], *batch) for i, batch in enumerate(batches)]
        return points.new_tensor(losses), self._grads[:n], after

    def _one(self, point: Tensor, grad: Tensor, buffers: Tensor, *batch: Tensor) -> float:
        inputs, targets, shared_by = self._laid(*batch)
        beside = self._beside(buffers, len(targets))
        data = addresses(point, grad, inputs, targets)
        return self.library.gradient(*data, len(targets), shared_by, *addresses(self._work, beside))

    def update(
        self, points: Three, memory: Tensor, rules: Any, momentum: float, batch: Batch, buffers: Tensor
    ) -> float:
        """The loss at the first of three points [d]; the third becomes the second, moved along the gradient there.

        The three may be one vector. The velocity ``memory`` [d] and ``buffers`` [q] are advanced in place. ``rules``
        holds three numbers for each tensor, of the library's type: see ``Rule`` in ``native_layers.h``.
        """
        inputs, targets, shared_by = self._laid(*batch)
        beside = self._beside(buffers, len(targets))
        *weights, images, labels, work, more = addresses(*points, memory, inputs, targets, self._work, beside)
        return self.library.update(*weights, rules, momentum, images, labels, len(targets), shared_by, work, more)

    def losses(self, point: Tensor, inputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each example [b] at a point [d], in float64, as networks are tested: without dropout."""
        point = point.detach().contiguous()
        inputs, targets, shared_by = self._laid(inputs, targets)
        found = torch.empty(len(targets), dtype=torch.float64)
        data = addresses(point, inputs, targets)
        self.library.test(*data, len(targets), shared_by, *addresses(self._work, found))
        return found

    def _laid(self, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, int]:
        """A batch with its pictures channels-last, how many threads share it, and scratch memory for them."""
        shared_by = threads(len(targets))
        if len(self._work) < (needed := self.library.work(len(targets), shared_by)):
            self._work = inputs.new_empty(needed)
        laid = inputs.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else inputs
        return laid, targets, shared_by

    def _beside(self, buffers: Tensor, examples: int) -> Tensor:
        """Running statistics [q], or what each dropout multiplies its outputs [examples, n] by, one after another."""
        if not self._dropouts:
            return buffers
        return torch.cat([_drawn(layer, self._work.new_empty(examples, n)).view(-1) for layer, n in self._dropouts])


class NativeStep:
    """Forward, backward and step by one call of machine code, layer by layer while a gradient is in the cache."""

    def __init__(self, backend: Native, solver: Any):
        self.backend, self.solver = backend, solver
        self.rules = lru_cache(1)(self._rules)  # a rate stays for a while

    def __call__(
        self, turn: Turn, points: Points, state: Any, buffers: Tensor, examples: Tensor, lr: Tensor
    ) -> Updated:
        """One worker's state itself, overwritten; the loss is the one before the update."""
        batch, x = self.backend.problem.fetch(examples[0]), state.x
        buffers = buffers.clone() if self.backend.flat.q else buffers
        loss = self.move((x, x, x), state.memory, batch, lr.item(), buffers[0])
        return state, buffers, {"loss": torch.scalar_tensor(loss, dtype=torch.float64)}

    def move(self, points: Three, memory: Tensor, batch: Batch, lr: float, buffers: Tensor) -> float:
        """As :meth:`Native.update`, at a rate."""
        return self.backend.update(points, memory, self.rules(lr), self.solver.optimizer.momentum, batch, buffers)

    def _rules(self, lr: float) -> Any:
        """A C array of three numbers for each tensor: inner, outer, decay.

        velocity <- momentum velocity + inner (gradient + decay w);  w <- w - outer velocity
        """
        rule, found = self.solver.optimizer, list[float]()
        for rate, decay in self.solver.multipliers(self.backend.flat.segments):
            inner, outer = (lr * rate, 1.0) if isinstance(rule, CaffeSGD) else (1.0, lr * rate)
            found += [inner, outer, rule.decay * decay]
        return (ctypes.c_float * len(found))(*found)


class NativeServerStep:
    """The same at a parameter server: along the gradient of one version of its weights, into a place of its own."""

    def __init__(self, backend: Native, algorithm: Softsync):
        self.algorithm, self.step = algorithm, NativeStep(backend, algorithm.optimizer)
        self.nothing = backend.flat.buffers  # there is no batch norm

    def __call__(self, turn: Turn, state: SoftsyncState, batch: Batch, lr: float) -> tuple[SoftsyncState, float]:
        versions, place = state.versions, (turn.t + 1) % self.algorithm.history
        read = self.algorithm.version(state, turn.t, turn.entries[0].read)
        # The oldest version gives way, once it is a vector of its own: at first all are the initial one.
        new = versions[place] if turn.t + 1 >= self.algorithm.history else torch.empty_like(state.x)
        loss = self.step.move((read, state.x, new), state.memory, batch, lr, self.nothing)
        return SoftsyncState(new, state.memory, (*versions[:place], new, *versions[place + 1 :])), loss


def addresses(*tensors: Tensor) -> list[int]:
    """Where tensors begin, for machine code."""
    return [tensor.data_ptr() for tensor in tensors]


def threads(examples: int) -> int:
    """How many share a batch."""
    return max(1, min(torch.get_num_threads(), examples // 2))


def _drawn(layer: nn.Dropout, factors: Tensor) -> Tensor:
    """Factors of one pass, drawn as torch draws them on a CPU: not at all where all are kept or all are dropped."""
    p = layer.p if layer.training else 0.0
    return factors.fill_(1 - p) if p in (0, 1) else factors.bernoulli_(1 - p).div_(1 - p)
