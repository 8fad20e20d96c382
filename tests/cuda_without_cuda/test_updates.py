"""Every algorithm, network and path makes updates on a GPU that is not there: one device, and nobody waits for it."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice

import pytest
import torch
from fake_cuda import PATHS, Direct, HostWaits, Waits, moved, problem, session
from torch import nn

from reference_impls import numbers
from reference_impls.crossbow import SMA
from reference_impls.inverse_law import SGD
from reference_impls.isgd import ISGD
from reference_impls.matex_agd import DelayedSGD
from reference_impls.rudra import Softsync
from suite.communication.collectives import in_process
from suite.models.registry import construct
from suite.optim.vector import Vector
from suite.training.evaluation import CapturedTest, ChunkTest
from suite.training.flat import ALIGNMENT, FlatModule
from suite.training.gradients import backend
from suite.training.optimizers import Adam, CaffeSGD, TorchSGD

pytestmark = [
    pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor:UserWarning"),
    pytest.mark.usefixtures("small_networks"),
]

SERVER = {
    "architecture": "base",
    "seconds": {"per_call": 1.0, "per_example": 0.0, "crowding": 0.0, "jitter": 0.1},
    "machines": 1,
    "model_bytes": 1000,
    "network": [0.0, 1e9],
    "memory": [0.0, 1e9],
    "update_seconds": 0.0,
}
ALGORITHMS = {
    "sgd": (SGD, 1, {}),
    "sgd, 3 workers": (SGD, 3, {}),
    "isgd": (ISGD, 1, {"batches": 8, "zeta": 0.01}),
    "isgd, 2 workers": (ISGD, 2, {"batches": 8, "zeta": 0.01}),
    "sma": (SMA, 2, {}),
    "delayed": (DelayedSGD, 2, {"delay": 1}),
    "hardsync": (Softsync, 3, {"workers": 3, "n": 0}),
    "softsync": (Softsync, 3, {"workers": 3, "n": 1, "history": 8}),
    "softsync, per gradient": (Softsync, 3, {"workers": 3, "n": 1, "history": 8, "per_gradient": True}),
    "async": (Softsync, 3, {"workers": 3, "n": 3, "history": 16}),
}
SOLVERS = {
    "torch": lambda parameters: TorchSGD(0.9, 5e-4),
    "caffe": lambda parameters: CaffeSGD(0.9, 5e-4, lr_scale=torch.ones(parameters, device="cuda")),
    "adam": lambda parameters: Adam(),
}
WARM, WATCHED = 2, 2  # updates: the first ones make what the later ones find


def made(name: str, network: str, path: str, solver: str = "torch", **options):
    kind, workers, settings = ALGORITHMS[name]
    parameters = sum(p.numel() for p in construct(network).parameters())
    algorithm = kind(optimizer=SOLVERS[solver](parameters), collective=in_process(workers), **settings)
    served = {"server": SERVER} if kind is Softsync else {}
    return session(network, algorithm, path, **served, **options)


def train(one, watching) -> None:
    turns = one.turns()
    for turn in islice(turns, WARM):
        one.update(turn)
    with watching():
        for turn in islice(turns, WATCHED):
            one.update(turn)
    assert one.t == WARM + WATCHED
    assert one.algorithm.model(one.state).device.type == "cuda"
    rows = [value for _, row in one.recorder._waiting for value in row.values()]
    assert {value.device.type for value in rows} == {"cuda"}, "a curve is read from the device in one go"


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("name", "network", "path"),
    [
        *((name, "caffe_lenet", "looped") for name in ALGORITHMS),
        *(
            (*made, path)
            for made in (("sgd", "caffe_cifar_full"), ("isgd", "tiny_bn"), ("sma", "tiny_bn"))
            for path in PATHS
        ),
        *(
            (name, "caffe_lenet", path)
            for name in ("isgd, 2 workers", "softsync")
            for path in ("vectorised", "captured")
        ),
    ],
)
def test_updates_stay_on_the_device_and_wait_for_nothing(name, network, path):
    train(made(name, network, path), Waits)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_so_do_all_solvers_and_layouts(solver, channels_last):
    train(made("sma", "tiny_bn", "looped", solver, channels_last=channels_last), Waits)


@contextmanager
def torchs_own_watch():
    """Raises where a library waits for the device inside an operation too, which only a GPU can show."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.gpu
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_updates_wait_for_nothing_on_a_gpu_that_is_there(name, path):
    train(made(name, "caffe_lenet", path), torchs_own_watch)


def wrong_device(monkeypatch):
    monkeypatch.setattr(numbers, "on_device", lambda values, device, dtype=torch.int64: torch.tensor(values))
    monkeypatch.setattr(backend, "on_device", numbers.on_device)


def from_the_host(monkeypatch):
    here = lambda values, device, dtype=torch.int64: torch.tensor(values, dtype=dtype, device=device)
    monkeypatch.setattr(backend, "on_device", here)


def reading(monkeypatch):
    plain = SGD.update

    def update(self, state, turn, losses, *rest):
        return plain(self, state, turn, losses * bool((losses > 0).any()), *rest)

    monkeypatch.setattr(SGD, "update", update)


def without_a_size(monkeypatch):
    plain = torch.Tensor.repeat_interleave

    def repeated(tensor, repeats, dim=None, *, output_size=None):
        return plain(tensor, repeats, dim)

    monkeypatch.setattr(torch.Tensor, "repeat_interleave", repeated)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("plant", "refused"),
    [
        (wrong_device, "same device"),
        (from_the_host, "copies from cpu to cuda at once"),
        (reading, "_local_scalar_dense"),
        (without_a_size, "repeat_interleave"),
    ],
)
def test_what_must_not_be_done_is_noticed(monkeypatch, plant, refused):
    one = made("sgd, 3 workers", "caffe_lenet", "looped")
    train(one, Waits)
    plant(monkeypatch)
    with pytest.raises((HostWaits, RuntimeError), match=refused), Waits():
        one.update(next(one.turns()))


class Uneven(nn.Sequential):
    """Batch norm behind a convolution of 450 weights, so that its own start in the middle of four."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 6, 5, bias=False), nn.Conv2d(6, 8, 3, bias=False), nn.BatchNorm2d(8))


def starts(module) -> list[int]:
    return [parameter.storage_offset() * parameter.element_size() % ALIGNMENT for parameter in module.parameters()]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    "bind", [FlatModule, lambda module: Vector([list(module.parameters())])], ids=["runs", "users"]
)
def test_kernels_find_every_parameter_on_a_boundary_they_can_read(bind):
    """cuDNN's batch norm of channels-last pictures failed on others; a network of one vector has them anywhere."""
    module = moved(Uneven())
    bound = bind(module)
    assert set(starts(module)) == {0}
    point = torch.ones_like(bound.x)
    bound.load(point)
    assert set(starts(module)) == {0}


def test_on_a_cpu_all_parameters_are_views_of_one_vector():
    module = Uneven()
    vector = FlatModule(module).x
    assert {parameter.untyped_storage().data_ptr() for parameter in module.parameters()} == {vector.data_ptr()}
    assert len(set(starts(module))) > 1


@pytest.mark.usefixtures("gpu")
def test_rows_of_a_captured_gradient_are_read_on_such_boundaries_too(monkeypatch):
    case, seen = problem("tiny_bn", True), []
    assert case.d % 4, "the second row starts in the middle of four numbers"
    call = torch.func.functional_call
    monkeypatch.setattr(
        torch.func,
        "functional_call",
        lambda module, state, inputs: (seen.append(state), call(module, state, inputs))[1],
    )
    points = torch.zeros(3, case.d, device="cuda")
    captured = PATHS["captured"](case)
    examples = torch.zeros(3, 4, dtype=torch.int64, device="cuda")
    captured.indexed(points, case.b0().repeat(3, 1), examples)
    ChunkTest(CapturedTest(case, Direct()), points[1], case.b0(), case.inputs, case.targets).compute()
    assert len(seen) > 3
    for state in seen:
        assert not [name for name, part in state.items() if part.storage_offset() * part.element_size() % ALIGNMENT]


@pytest.mark.gpu
@pytest.mark.parametrize("users", [False, True])
def test_batch_norm_anywhere_in_a_vector_trains_on_a_gpu_that_is_there(users):
    torch.manual_seed(0)
    module = Uneven().cuda().to(memory_format=torch.channels_last)
    pictures = torch.randn(16, 3, 32, 32, device="cuda").contiguous(memory_format=torch.channels_last)
    expected = torch.autograd.grad(module(pictures).square().sum(), tuple(module.parameters()))
    bound = Vector([list(module.parameters())]) if users else FlatModule(module, channels_last=True)
    for _ in range(2):
        found = torch.autograd.grad(module(pictures).square().sum(), tuple(module.parameters()))
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
        bound.load(bound.x.clone())
