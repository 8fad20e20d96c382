"""Every algorithm, network and path makes updates on a GPU that is not there: one device, and nobody waits for it."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice

import pytest
import torch
from fake_cuda import PATHS, HostWaits, Waits, absent_gpu, session

from reference_impls import numbers
from reference_impls.crossbow import SMA
from reference_impls.inverse_law import SGD
from reference_impls.isgd import ISGD
from reference_impls.matex_agd import DelayedSGD
from reference_impls.rudra import Softsync
from suite.communication.collectives import in_process
from suite.models.registry import construct
from suite.training.gradients import batching
from suite.training.optimizers import Adam, CaffeSGD, TorchSGD

pytestmark = pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor:UserWarning")

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
    "segmented": (DelayedSGD, 2, {"delay": 1, "segmented": True}),
    "hardsync": (Softsync, 3, {"workers": 3, "n": 0}),
    "softsync": (Softsync, 3, {"workers": 3, "n": 1, "history": 8}),
    "softsync, per gradient": (Softsync, 3, {"workers": 3, "n": 1, "history": 8, "per_gradient": True}),
    "async": (Softsync, 3, {"workers": 3, "n": 3, "history": 16}),
}
NETWORKS = ("caffe_lenet", "caffe_cifar_full", "tiny_bn")
SOLVERS = {
    "torch": lambda parameters: TorchSGD(0.9, 5e-4),
    "caffe": lambda parameters: CaffeSGD(0.9, 5e-4, lr_scale=torch.ones(parameters, device="cuda")),
    "adam": lambda parameters: Adam(),
}
WARM, WATCHED = 2, 2  # updates: the first ones make what the later ones find


@pytest.fixture
def gpu(monkeypatch):
    with absent_gpu(monkeypatch):
        yield


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


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_updates_stay_on_the_device_and_wait_for_nothing(name, network, path):
    if network == "tiny_bn" and ALGORITHMS[name][0] is Softsync:
        pytest.skip("Rudra's learners exchange no statistics of batch norm")
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
    monkeypatch.setattr(batching, "on_device", numbers.on_device)


def from_the_host(monkeypatch):
    here = lambda values, device, dtype=torch.int64: torch.tensor(values, dtype=dtype, device=device)
    monkeypatch.setattr(batching, "on_device", here)


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
