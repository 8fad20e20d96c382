"""Whoever names no setting gets the paper's, and what an optimiser remembers of its vectors does not pile up."""

from __future__ import annotations

import gc
import importlib.util
import inspect
import weakref

import pytest
import torch
from torch import nn

from suite import optim
from suite.optim import EASGD, ISGD, SMA, DelayedSGD, DiLoCo, LocalSGD, PostLocalSGD, Softsync

# As torch.optim.SGD; without lr every group has its own.
PLAIN = {"lr": None, "momentum": 0.0, "weight_decay": 0.0, "fused": None, "group": None}
BASED = dict.fromkeys(["lr", "momentum", "weight_decay", "base", "fused", "group"])  # None: SGD's, or those of base
PAPERS = {
    ISGD: {"stop": 5, "margin": 3.0},  # three standard deviations (Eq. 10)
    SMA: BASED
    | {"learners": None, "alpha": None, "centre_momentum": 0.9, "tau": 1, "devices": None, "max_learners": 8},
    EASGD: BASED | {"learners": None, "tau": 1},
    LocalSGD: BASED | {"learners": None, "local_steps": 8},
    PostLocalSGD: BASED | {"learners": None, "local_steps": 8},
    DiLoCo: BASED | {"learners": None, "local_steps": 500, "outer_lr": 0.7, "outer_momentum": 0.9},  # Alg. 1
    DelayedSGD: BASED | {"delay": 0, "layerwise": False, "order": "backward", "bucket_bytes": 0},
    Softsync: {"n": 1, "learners": 2, "modulate": True, "per_gradient": False, "updates": None, "watch": None},
}


@pytest.mark.parametrize("made", PAPERS, ids=lambda made: made.__name__)
def test_what_is_not_named_is_the_papers(made: type):
    given = inspect.signature(made).parameters.values()
    named = {one.name: one.default for one in given if one.name != "params" and one.default is not one.empty}
    assert named == PLAIN | PAPERS[made]


def test_a_vector_that_a_loaded_state_replaced_is_let_go():
    """The fused step remembers the parts of the vectors that it stepped last, of none before."""
    module = nn.Linear(3, 2)
    opt = DelayedSGD(module, lr=0.1, momentum=0.9)
    replaced = []
    for _ in range(4):
        module(torch.ones(1, 3)).sum().backward()
        opt.step()
        opt.zero_grad()
        replaced.append(weakref.ref(opt.core_state.memory))
        opt.load_state_dict(opt.state_dict())
    gc.collect()
    assert [memory() is None for memory in replaced[:-1]] == [True] * 3


def imported_anew() -> None:
    spec = importlib.util.find_spec("suite.optim")
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def test_a_release_of_torch_that_was_not_tried_is_told(monkeypatch: pytest.MonkeyPatch):
    """And none below it: a warning is an error here."""
    major, minor = optim.TESTED
    monkeypatch.setattr(torch, "__version__", f"{major}.{minor - 1}.9+cpu")
    imported_anew()
    monkeypatch.setattr(torch, "__version__", f"{major}.{minor}.0a0")
    with pytest.warns(UserWarning, match=f"tested with torch below {major}.{minor}, and this is {major}.{minor}.0a0"):
        imported_anew()
