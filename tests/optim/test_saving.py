"""A training that is saved within an epoch, and models that are kept in files: whole, small and the right one."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_model, save_model
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, WeightedRandomSampler

from suite.optim import EASGD, ISGD, SMA, DelayedSGD, LocalSGD, Softsync

MAKERS: dict[str, Callable[..., Any]] = {
    "SMA": SMA,
    "SMA, AdamW": partial(SMA, base=torch.optim.AdamW),
    "EASGD": partial(EASGD, alpha=0.2),
    "LocalSGD, AdamW": partial(LocalSGD, base=torch.optim.AdamW, local_steps=3),
    "ISGD": partial(ISGD, batches=8, zeta=0.1, margin=0.0),
    "DelayedSGD": partial(DelayedSGD, delay=2),
    "layer-wise": partial(DelayedSGD, layerwise=True),
    "Softsync": Softsync,
}
ALL = pytest.mark.parametrize("name", MAKERS)


class Noisy(Dataset):
    """Examples with noise that is drawn anew whenever one is looked at."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.full((3,), float(index)) / 16 + 0.1 * torch.randn(3), torch.tensor([index % 2.0])


class Stream(IterableDataset):
    """The same in an order that the pass itself draws."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        for index in torch.randperm(16).tolist():
            yield Noisy()[index]


LOADERS: dict[str, Callable[[], DataLoader]] = {
    "shuffled": lambda: DataLoader(Noisy(), batch_size=2, shuffle=True),
    "weighted": lambda: DataLoader(Noisy(), batch_size=2, sampler=WeightedRandomSampler(torch.arange(1.0, 17.0), 16)),
    "batches": lambda: DataLoader(
        Noisy(), batch_sampler=BatchSampler(RandomSampler(Noisy(), replacement=True), 2, drop_last=True)
    ),
    "stream": lambda: DataLoader(Stream(), batch_size=2),
}


def made(name: str, seed: int = 0) -> tuple[Any, nn.Module]:
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(3, 20), nn.Dropout(0.3), nn.Tanh(), nn.Linear(20, 1))
    return MAKERS[name](module, lr=0.05), module


def train(
    opt: Any, module: nn.Module, epochs: int, folder: Path | None = None, stop: int = -1, kind: str = "shuffled"
) -> Tensor:
    """The model's weights after epochs of 8 batches; with a folder it is saved and left after batch ``stop``."""
    loader = LOADERS[kind]()
    begun = opt.resume(folder) if folder else {}
    had = 0
    for epoch in range(begun.get("epoch", 0), epochs):
        for inputs, targets in opt.epoch(loader):

            def closure(inputs: Tensor = inputs, targets: Tensor = targets) -> Tensor:
                opt.zero_grad()
                loss = (module(inputs) - targets).square().mean()
                loss.backward()
                return loss

            opt.step(closure)
            had += 1
            if folder and had == stop:
                opt.save(folder, epoch=epoch)
                return torch.zeros(())
    return nn.utils.parameters_to_vector(opt.average().parameters())


@ALL
@pytest.mark.parametrize("stop", [1, 13, 16])
def test_a_training_saved_within_an_epoch_ends_in_the_same_bits(tmp_path: Path, name: str, stop: int):
    straight = train(*made(name), epochs=3)
    train(*made(name), epochs=3, folder=tmp_path, stop=stop)
    assert torch.equal(train(*made(name, seed=7), epochs=3, folder=tmp_path), straight)


@pytest.mark.parametrize("kind", LOADERS)
def test_every_kind_of_loader_is_taken_up_within_its_pass(tmp_path: Path, kind: str):
    straight = train(*made("SMA"), epochs=3, kind=kind)
    train(*made("SMA"), epochs=3, folder=tmp_path, stop=13, kind=kind)
    assert torch.equal(train(*made("SMA", seed=7), epochs=3, folder=tmp_path, kind=kind), straight)


@pytest.mark.parametrize(("inside", "left"), [(True, 5), (False, 8)])
def test_a_pass_that_is_left_is_over_and_one_that_was_saved_needs_its_batches(
    tmp_path: Path, inside: bool, left: int
):
    loader = DataLoader(Noisy(), batch_size=2, shuffle=True)
    opt, _ = made("SMA")
    for number, _ in enumerate(opt.epoch(loader)):
        if number == 2:
            opt.save(tmp_path)
            break
    if not inside:
        opt.save(tmp_path)
    assert len(list(opt.epoch(loader))) == 8
    opt.resume(tmp_path)
    assert len(list(opt.epoch(loader))) == left
    opt.resume(tmp_path)
    if inside:
        with pytest.raises(ValueError, match="saved after 3 batches, and the loader gives 2"):
            next(opt.epoch(DataLoader(Noisy(), batch_size=8)))


@ALL
def test_the_weights_of_one_of_several_learners_are_not_given_away_without_a_word(name: str):
    """Once; neither by ``save`` nor by copies, and not where the module holds what is tested."""
    opt, module = made(name)
    several = name in ("SMA", "SMA, AdamW", "EASGD", "LocalSGD, AdamW", "Softsync")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        copy.deepcopy(module).state_dict()
        opt.average().state_dict()
        assert said == []
        for _ in range(2):
            module.state_dict()
    assert len(said) == several
    if several:
        assert "opt.average().state_dict()" in str(said[0].message)


@ALL
def test_the_average_is_kept_by_safetensors_and_a_part_of_it_is_small(tmp_path: Path, name: str):
    opt, module = made(name)
    train(opt, module, epochs=1)
    model = opt.average()
    save_model(model, str(tmp_path / "model"))
    other = nn.Sequential(nn.Linear(3, 20), nn.Dropout(0.3), nn.Tanh(), nn.Linear(20, 1))
    load_model(other, str(tmp_path / "model"))
    assert all(torch.equal(a, b) for a, b in zip(other.parameters(), model.parameters(), strict=True))
    torch.save(nn.Sequential(nn.Linear(20, 1)).state_dict(), tmp_path / "as small as it gets")
    torch.save(model[3].state_dict(), tmp_path / "part")
    assert (tmp_path / "part").stat().st_size <= 1.1 * (tmp_path / "as small as it gets").stat().st_size


def test_the_average_of_tied_weights_is_kept_by_safetensors_once(tmp_path: Path):
    def tied() -> nn.Module:
        module = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9, bias=False))
        module[1].weight = module[0].weight
        return module

    module, other = tied(), tied()
    opt = SMA(module, lr=0.05)
    for _ in range(4):
        opt.zero_grad()
        module(torch.arange(9)).square().mean().backward()
        opt.step()
    model = opt.average()
    save_model(model, str(tmp_path / "model"))
    load_model(other, str(tmp_path / "model"))
    assert torch.equal(other[1].weight, model[0].weight)
    assert model[1].weight is model[0].weight
    assert (tmp_path / "model").stat().st_size < 2 * 36 * 4
