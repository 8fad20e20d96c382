"""Sessions on a GPU that is not there: tensors without values on device "cuda", and what must not be done to them.

``FakeTensorMode`` works out shapes and devices of every operation without doing any, so it refuses tensors of two
devices; :class:`Waits` lists the operations for which the host would wait for the GPU. Autograd's backward needs a
driver even so: it is replaced by gradients of the right shapes, and is outside this check.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from reference_impls import numbers
from suite.data.order import FixedCycle, WithReplacement
from suite.experiment import Context
from suite.models.registry import construct
from suite.parameter_server.training import ServerRun
from suite.spec import RunSpec
from suite.training.build import Setup
from suite.training.flat import FlatModule
from suite.training.gradients.backend import AutogradGradients, Vectorised
from suite.training.gradients.cuda_graph import Captured
from suite.training.loop import TrainingRun
from suite.training.numerics import choose
from suite.training.problem import Classification
from suite.training.recording import Body

EXAMPLES, BATCH = 64, 4
# Their result's shape or value comes from the device.
READS = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "_unique2", "unique_dim", "item"}


class HostWaits(AssertionError):
    """The host would wait for the GPU."""


class Waits(TorchDispatchMode):
    """Raises HostWaits at operations that wait for a GPU: reads of its values, and copies that are not queued."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        name = func.overloadpacket.__name__
        on_gpu = any(isinstance(part, Tensor) and part.device.type == "cuda" for part in args)
        if on_gpu and (name in READS or (name == "repeat_interleave" and given.get("output_size") is None)):
            raise HostWaits(f"{func} reads a value from the device")
        found = func(*args, **given)
        if name in ("_to_copy", "copy_"):
            source = args[1] if name == "copy_" else args[0]
            queued = given.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2])
            if source.device.type != found.device.type and not queued and not constant(source):
                raise HostWaits(f"{func} copies from {source.device.type} to {found.device.type} at once")
        return found


def constant(source: Tensor) -> bool:
    """Whether a tensor is a number of the program, which a kernel takes as an argument."""
    return source.dim() == 0 and source.device.type == "cpu" and getattr(source, "constant", None) is not None


class Direct:
    """A recorder that runs a body each time: what a capture and its replays do, without graphs."""

    def record(self, body: Body) -> Body:
        body()
        return body

    def side_by_side(self, branches: list[Body]) -> None:
        for branch in branches:
            branch()


PATHS = {
    "looped": AutogradGradients,
    "vectorised": Vectorised,
    "captured": lambda problem: Captured(problem, Direct()),
}


@contextmanager
def absent_gpu(monkeypatch: Any) -> Iterator[None]:
    """Within, ``device="cuda"`` gives tensors without values."""

    def gradients(outputs: Any, inputs: Any, *args: Any, **options: Any) -> tuple[Tensor, ...]:
        return tuple(torch.empty_like(part) for part in ((inputs,) if isinstance(inputs, Tensor) else inputs))

    monkeypatch.setattr(torch.autograd, "grad", gradients)
    monkeypatch.setattr(numbers, "pinned", lambda values, dtype: torch.tensor(values, dtype=dtype))
    with FakeTensorMode(allow_non_fake_inputs=True):
        yield


def moved(module: nn.Module) -> nn.Module:
    """A network whose parameters and buffers are tensors of the same shapes on the GPU."""
    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False):
            setattr(part, name, nn.Parameter(torch.zeros(parameter.shape, device="cuda")))
        for name, buffer in part.named_buffers(recurse=False):
            setattr(part, name, torch.zeros(buffer.shape, dtype=buffer.dtype, device="cuda"))
    return module


def problem(network: str, channels_last: bool) -> Classification:
    """A network on pictures, all of them on the GPU."""
    module = moved(construct(network))
    pixels = torch.zeros(EXAMPLES, *module.input_shape, dtype=torch.uint8, device="cuda")
    targets = torch.zeros(EXAMPLES, dtype=torch.int64, device="cuda")
    return Classification(FlatModule(module, channels_last=channels_last), pixels, targets, lambda x: x.float() / 256)


def session(network: str, algorithm: Any, path: str, *, channels_last: bool = True, **settings: Any) -> TrainingRun:
    """A session of an algorithm whose updates go on for ever and are all recorded."""
    case, workers = problem(network, channels_last), algorithm.collective.workers
    served = "server" in settings
    settings = {
        "model": {"name": network},
        "algorithm": {"name": "sgd", "n": getattr(algorithm, "n", 0)},
        "batch": BATCH,
        "workers": workers,
        "rate": 0.01,
        "updates": 10**6,
        "evaluate": {"every": 10**6},
        **settings,
    }
    spec = RunSpec("train", settings)
    order = (WithReplacement if served else FixedCycle)(EXAMPLES, BATCH, 0).to(torch.device("cuda"))
    made = Setup(case, case.flat.point(), order, algorithm, case.inputs, case.targets)
    execution = choose(spec, "cuda", 1) | {"path": path, "channels_last": channels_last}
    gradients = PATHS[path](case)
    return (ServerRun if served else TrainingRun)(spec, Context(Path(), execution), made, gradients)
