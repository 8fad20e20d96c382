"""One protocol for autograd, machine code and CUDA graphs: gradients, and what a backend does faster by itself.

Of what an algorithm asks for, entries that share a point are joined where that is exact. Autograd's gradients come
one at a time, through a module bound to flat views or of any functional loss, or all in one call: the twin of the
loop, equal to a bound that follows from d and the precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from reference_impls.contract import Algorithm, Points, Turn
from reference_impls.numbers import on_device
from suite.training.evaluation import CapturedTest, read, score
from suite.training.flat import FlatModule
from suite.training.loss_reading import LossReading
from suite.training.optimizers import alike, alone_in_place
from suite.training.recording import CudaGraphs, refusal

Batch = tuple[Tensor, ...]
Rows = tuple[Tensor, Tensor, Tensor]  # losses [n], gradients [n, d], buffers [n, q]


CHUNKS = {"cpu": 50, "cuda": 2000}  # examples read at a time: small chunks let a test end early
Updated = tuple[Any, Tensor, dict[str, Tensor]]  # state, buffers [1, q], scalars worth a curve (0-d)


# A whole update of one worker, from turn, points, state, buffers, examples and rate. It may overwrite the state
# passed in, and the next call the state returned.
Step = Callable[[Turn, Points, Any, Tensor, Tensor, Tensor], Updated]
# An update of a parameter server along gradients that all read one version of its weights, from turn, state, the
# batch of all of them and rate. It gives the state and the loss (nats); the state passed in may be overwritten.
ServerStep = Callable[[Turn, Any, Batch, float], tuple[Any, float]]


class Reader(NamedTuple):
    """Reads the loss of one sample again and again."""

    read: Callable[[Tensor, Tensor, float], LossReading]  # at a point [d] with buffers [q], against a threshold
    last: Tensor | None = None  # [N] decides in which order the sample is read next, so that checkpoints hold it


class Backend:
    """Computes the gradients of a problem; every backend is the slow twin's equal up to rounding.

    A problem's ``fetch`` turns example indices [b] into a batch, ``loss`` is the mean loss of a batch at a point, and
    ``b0`` gives its first buffers.

    A subclass defines ``__call__``, or ``indexed`` where it gathers by itself. It overrides ``step``, ``evaluate`` or
    ``reader`` where it has a faster way than gradients followed by the algorithm's own update, or than tests by
    autograd's forward pass. Tensors that are returned are borrowed: they are valid until the next call.
    """

    name: ClassVar[str]
    one_length: ClassVar[bool] = False  # whether the batches of one call must have one length
    recorder: CudaGraphs | None = None  # of calls beside these gradients, tests among them

    def __init__(self, problem: Any):
        self.problem = problem

    @classmethod
    def of_run(cls, problem: Any, build: str | None = None) -> Backend:
        """The backend of a run; ``build`` names the machine code that the run began with.

        Raises:
            ValueError: The gradients would not be those of the loop, or not those that the run began with.
        """
        if why := cls.refusal(problem):
            raise ValueError(f"gradients cannot be {cls.name}: {why}; use path looped")
        return cls(problem)

    @classmethod
    def refusal(cls, problem: Any) -> str | None:
        """Why this backend cannot compute a problem here, or None."""
        return None

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        """Losses [n], gradients [n, d] and buffers [n, q] of points [n, d] with a batch each."""
        raise NotImplementedError

    def of_examples(self, points: Tensor, buffers: Tensor, examples: Sequence[Tensor]) -> Rows:
        """The same of n vectors of example indices, whose lengths may differ."""
        if not self.one_length or len({len(rows) for rows in examples}) == 1:
            return self.indexed(points, buffers, examples)
        parts = []
        for i, rows in enumerate(examples):
            row = self.indexed(points[i : i + 1], buffers[i : i + 1], [rows])
            parts.append([tensor.clone() for tensor in row])  # the next call may overwrite them
        losses, grads, after = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
        return losses, grads, after

    def indexed(self, points: Tensor, buffers: Tensor, examples: Sequence[Tensor]) -> Rows:
        """The same of vectors of lengths that one call takes."""
        return self(points, buffers, [self.problem.fetch(rows) for rows in examples])

    def step(self, algorithm: Algorithm[Any]) -> Step | None:
        """A whole update by an algorithm, or None where gradients and ``algorithm.update`` make it."""
        return None

    def server_step(self, algorithm: Algorithm[Any]) -> ServerStep | None:
        """A whole update of a parameter server, or None as in ``step``."""
        return None

    def evaluate(self, x: Tensor, buffers: Tensor, inputs: Tensor, targets: Tensor) -> tuple[float, float]:
        """Mean loss (nats) and error (share) of a point [d] with buffers [q] on images [N, C, H, W]."""
        return score(self.problem, x, buffers, inputs, targets)

    def reader(self, inputs: Tensor, targets: Tensor) -> Reader:
        """A reader of the mean loss on decoded inputs [N, ...] with targets [N]."""
        sample: dict[str, Any] = {"inputs": inputs, "targets": targets, "chunk": CHUNKS[inputs.device.type]}
        recorder = self.recorder or (None if refusal(self.problem) else CudaGraphs())
        if recorder is None:
            return Reader(partial(read, self.problem, **sample))
        return Reader(partial(CapturedTest(self.problem, recorder, decoded=True).read, **sample))


def compute_gradients(
    backend: Backend, points: Points, buffers: Tensor, examples: Tensor, *, join: bool = True
) -> Rows:
    """Losses [n], sums of gradients [p, d] and buffers [n, q] for points with examples [n, b].

    Entries that share a point are joined into one larger batch when ``join`` allows: the mean gradient is the
    same in exact arithmetic. Batch norm would couple the joined batches, so its networks are never joined.
    """
    shares = points.shares
    if max(shares) == 1:
        return backend.of_examples(points.parameters, buffers, examples.unbind())
    counts = on_device(shares, points.parameters.device)
    if join and not backend.problem.batch_norm:
        batches = [rows.reshape(-1) for rows in examples.split(shares)]
        losses, grads, _ = backend.of_examples(points.parameters, buffers[: len(shares)], batches)
        losses = losses.repeat_interleave(counts, output_size=sum(shares))
        return losses, grads * counts.to(grads)[:, None], buffers
    rows = points.parameters.repeat_interleave(counts, 0, output_size=sum(shares))
    losses, grads, after = backend.of_examples(rows, buffers, examples.unbind())
    return losses, torch.stack([part.sum(0) for part in grads.split(shares)]), after


class AutogradGradients(Backend):
    """One gradient at a time through a module bound to flat views.

    Fresh gradients are taken from autograd and written once: clearing a vector and adding to it would read and
    write it twice. On a CPU every parameter's is copied to its place, which takes half to nine tenths of the time of
    a concatenation; on a GPU that would be a launch for each.
    """

    name = "looped"

    def __init__(self, problem: Any):
        super().__init__(problem)
        self.flat: FlatModule = problem.flat
        self._on_cpu = self.flat.x.device.type == "cpu"
        self._keep(self.flat.grad[None])

    @classmethod
    def of_run(cls, problem: Any, build: str | None = None) -> Backend:
        return cls(problem) if hasattr(problem, "flat") else Functional(problem)

    def step(self, algorithm: Algorithm[Any]) -> ForeachStep | None:
        return ForeachStep(self, algorithm.optimizer) if alone_in_place(algorithm, self.flat.x.dtype) else None

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        n = len(batches)
        if len(self._grads) < n:
            self._keep(points.new_empty(n, self.flat.d))
        losses = []
        after = torch.empty_like(buffers) if self.flat.q else buffers
        for i, batch in enumerate(batches):
            losses.append(self._one(points[i], buffers[i], batch, i))
            if self.flat.q:
                after[i] = self.flat.buffers
        return torch.stack(losses), self._grads[:n], after

    def _keep(self, grads: Tensor) -> None:
        """Write gradients to these rows [rows, d] from now on."""
        self._grads = grads
        self._views = [self.flat.views(row) for row in grads] if self._on_cpu else []

    def tensors(self, point: Tensor, buffers: Tensor, batch: Batch) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        """Loss (0-d) and autograd's own gradients at a point [d], one for each parameter; None for an unused one."""
        flat = self.flat
        flat.borrow(point, buffers)
        inputs, targets = batch
        with self.problem.kernels:
            loss = self.problem.criterion(flat.module(inputs), targets)
            return loss.detach(), torch.autograd.grad(loss, flat.parameters, allow_unused=True)

    def _one(self, point: Tensor, buffers: Tensor, batch: Batch, row: int) -> Tensor:
        loss, grads = self.tensors(point, buffers, batch)
        if self._on_cpu:
            for view, grad in zip(self._views[row], grads, strict=True):
                view.zero_() if grad is None else view.copy_(grad)
        else:
            self.flat.flatten(grads, self._grads[row])
        return loss


class ForeachStep:
    """One worker's update along autograd's tensors, by torch's fused kernel on the list of them."""

    def __init__(self, backend: AutogradGradients, solver: Any):
        self.backend, self.solver, self.flat = backend, solver, backend.flat
        self._groups = alike(solver.multipliers(self.flat.segments))

    def __call__(
        self, turn: Turn, points: Points, state: Any, buffers: Tensor, examples: Tensor, lr: Tensor
    ) -> Updated:
        """The state itself, overwritten; the loss is the one before the update."""
        loss, grads = self.backend.tensors(state.x, buffers[0], self.backend.problem.fetch(examples[0]))
        x, velocity, rate = self.flat.same_views(state.x), self.flat.same_views(state.memory), lr.item()
        laid = [laid_as(part, grad) for part, grad in zip(x, grads, strict=True)]
        for scale, decay, mine in self._groups:
            self.solver.advance(
                [x[i] for i in mine], [laid[i] for i in mine], [velocity[i] for i in mine], rate * scale, decay
            )
        return state, self.flat.buffers[None].clone() if self.flat.q else buffers, {"loss": loss}


def laid_as(part: Tensor, grad: Tensor | None) -> Tensor:
    """A gradient in the order of its parameter, as the fused kernel assumes it; zero for an unused parameter."""
    if grad is None:
        return torch.zeros_like(part)
    return grad if grad.stride() == part.stride() else torch.empty_like(part).copy_(grad)


class Functional(Backend):
    """One gradient at a time of any problem's functional loss (quadratics)."""

    name = "looped"

    def __init__(self, problem: Any):
        super().__init__(problem)
        self._function = grad_and_value(problem.loss, has_aux=True)

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        grads, losses, after = [], [], []
        for point, row, batch in zip(points, buffers, batches, strict=True):
            grad, (loss, new) = self._function(point, row, batch)
            grads.append(grad)
            losses.append(loss)
            after.append(new)
        return torch.stack(losses), torch.stack(grads), torch.stack(after)


class Vectorised(Backend):
    """All gradients in one call, the row axis added by vmap.

    A network is differentiated by its tensors: by the flat vector, each of them would cost a pass over all.
    Dropout's masks are drawn for all rows at once, so a row's depend on the number of rows: for timing alone, and
    refused in runs (``of_run``).
    """

    name = "vectorised"
    one_length = True

    def __init__(self, problem: Any):
        super().__init__(problem)
        self.flat: FlatModule | None = getattr(problem, "flat", None)
        loss = problem.loss if self.flat is None else problem.loss_of
        randomness = "different" if problem.dropout else "error"
        self._function = vmap(grad_and_value(loss, has_aux=True), randomness=randomness)

    @classmethod
    def refusal(cls, problem: Any) -> str | None:
        return "masks of dropout are drawn run by run, row by row" if problem.dropout else None

    def __call__(self, points: Tensor, buffers: Tensor, batches: Sequence[Batch]) -> Rows:
        batch = tuple(torch.stack(parts) for parts in zip(*batches, strict=True))
        flat = self.flat
        with self.problem.kernels:
            grads, (losses, after) = self._function(points if flat is None else flat.named(points), buffers, batch)
        return losses, grads if flat is None else flat.flatten_rows(grads), after
