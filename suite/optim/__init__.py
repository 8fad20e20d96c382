"""The papers' algorithms as optimisers for one's own training: alone, under ``torchrun``, on several nodes.

They are used as ``torch.optim``'s are, and take the module as well, since some of them keep several copies of it::

    opt = SMA(model, lr=0.1, momentum=0.9, learners=4)
    for inputs, targets in loader:
        opt.zero_grad()
        loss_of(model(inputs), targets).backward()
        opt.step()
    test(opt.average())

Started by ``torchrun --nproc-per-node 2 train.py`` the same lines train over processes: they meet when the optimiser
is made, take up process 0's weights, and each but process 0 draws random numbers of its own from there on. A process
that dies or stalls ends the others with :class:`WorkerLost`, which names it.
"""

import warnings

import torch

from suite.batch_size.choice import choose_batch
from suite.batch_size.joint_choice import choose_batch_and_rate
from suite.communication.group import WorkerLost
from suite.lazy import TESTED
from suite.optim.delayed import DelayedSGD
from suite.optim.files import load_file, save_file
from suite.optim.isgd import ISGD
from suite.optim.joining import device, share
from suite.optim.local import DiLoCo, LocalSGD, PostLocalSGD
from suite.optim.parameter_server import parameter_server
from suite.optim.sma import EASGD, SMA
from suite.optim.softsync import Softsync

__all__ = [
    "EASGD",
    "ISGD",
    "SMA",
    "DelayedSGD",
    "DiLoCo",
    "LocalSGD",
    "PostLocalSGD",
    "Softsync",
    "WorkerLost",
    "choose_batch",
    "choose_batch_and_rate",
    "device",
    "load_file",
    "parameter_server",
    "save_file",
    "share",
]

if tuple(map(int, torch.__version__.split(".")[:2])) >= TESTED:
    warnings.warn(
        f"suite.optim is tested with torch below {TESTED[0]}.{TESTED[1]}, and this is {torch.__version__}",
        stacklevel=2,
    )
