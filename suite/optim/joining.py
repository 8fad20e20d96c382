"""The processes that an optimiser finds itself among: none but its own, torchrun's, or the caller's."""

from __future__ import annotations

import atexit
import contextlib
from hashlib import sha256
from numbers import Integral
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import _get_default_group, _get_default_store
from torch.utils.data import Dataset, Subset

from reference_impls.contract import Algorithm
from suite.communication.group import TIMEOUT, Group, device_under, fitting_backend, join, number_from_environment
from suite.spec import seed

_found: dict[str, Any] = {}  # the group of this process, and of which default process group it was made


def group(timeout: float | None = None) -> Group:
    """All processes of this job: those of ``init_process_group``, or of ``torchrun``, or this one alone.

    Optimisers of one process share it. Under torchrun the processes meet here, and leave when the program ends.
    ``timeout`` seconds without an answer, by default a minute, mean that another process is lost; one that is given
    holds from here on, for all who share the group, and every process must give it.
    """
    patience = TIMEOUT if timeout is None else timeout
    if not dist.is_initialized() and number_from_environment("WORLD_SIZE", 1, least=1) > 1:
        joined = contextlib.ExitStack()
        _found["group"] = joined.enter_context(join(timeout=patience))
        _found["of"] = _get_default_group()
        atexit.register(joined.close)
        return _found["group"]
    if not dist.is_initialized():
        return Group(dist.HashStore(), 0, 1, patience, "nccl" if torch.cuda.is_available() else "gloo")
    if _found.get("of") is not _get_default_group():
        store = dist.PrefixStore("optim", _get_default_store())
        _found["group"] = Group(store, dist.get_rank(), dist.get_world_size(), patience, _backend())
        _found["group"].heartbeat.start()
        _found["of"] = _get_default_group()
        atexit.register(lambda group: group.heartbeat.stop(), _found["group"])
    elif timeout is not None and timeout != _found["group"].timeout:
        _found["group"].wait_for(timeout)
    return _found["group"]


def device() -> torch.device:
    """Where this process computes: its own GPU where each has one and they exchange over NCCL, otherwise the CPU.

    Call it after ``init_process_group`` where the program does that.

    Returns:
        The device to put the model on before an optimiser is made.

    Example:
        >>> device().type in ("cpu", "cuda")
        True
    """
    several = dist.is_initialized() and dist.get_world_size() > 1
    return device_under(_backend() if several else fitting_backend())


def _backend() -> str:
    """What the default process group exchanges the optimisers' tensors over, which one may do over two."""
    named = dict(entry.split(":") for entry in dist.get_backend_config().split(","))
    if named.get("cuda") != "nccl":
        return named.get("cpu", dist.get_backend())
    return fitting_backend() if "cpu" in named else "nccl"


def share(dataset: Dataset[Any]) -> Subset[Any]:
    """This process's part of a data set: contiguous, disjoint and equally large for all (MaTEx, section 5.1).

    What does not divide is left out. Every process must call it.

    Args:
        dataset: the whole of it, the same in every process.

    Returns:
        The examples of this process, as a data set.

    Raises:
        ValueError: fewer examples than processes, and where processes differ in the number of examples.

    Example:
        >>> from torch.utils.data import TensorDataset
        >>> len(share(TensorDataset(torch.zeros(10, 3))))  # alone: all
        10
    """
    together, examples = group(), len(dataset)  # type: ignore[arg-type]
    together.agree({"number of examples": examples})
    return Subset(dataset, part_of(examples, together))


def part_of(examples: int, group: Group) -> range:
    """The numbers of the examples that ``share`` gives this process of a group."""
    each = examples // group.size
    if each < 1:
        raise ValueError(f"{examples} examples cannot be shared by {group.size} processes; start fewer of them")
    return range(group.rank * each, (group.rank + 1) * each)


def compare_weights(group: Group, algorithm: Algorithm[Any], x: Tensor, what: str) -> None:
    """Wait for all processes, and compare the weights x [d] where the algorithm has the same in all.

    Raises ValueError in each of them where they differ in a bit; ``what`` waits for them.
    """
    digest = ""
    if group.size > 1 and not algorithm.replicated:
        digest = sha256(x.view(torch.uint8).cpu().numpy().data).hexdigest()
    held = group.everyone(digest, what)
    if odd := [rank for rank, each in enumerate(held) if each != held[0]]:
        raise ValueError(
            f"process {odd[0]} has other weights than process 0 in {what}: their rates differed for some steps "
            "(ReduceLROnPlateau by each process's own loss?), or weights were written in one of them; give all the "
            "same, and call take_up() in all to go on from those of process 0"
        )


def own_random_numbers(group: Group) -> None:
    """Let every process but the first draw its own numbers from here on: its own batches, its own masks.

    Scripts seed all processes alike, which gives them the same initial weights and would give a shuffling loader the
    same batches in each.
    """
    if group.rank:
        torch.manual_seed(seed(torch.initial_seed(), "process", group.rank))


def whole(setting: str, value: object, least: int = 0, more: str = "") -> int:
    """The value of a setting. Raises ValueError, by its name, for no whole number or one below ``least``."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{setting}={value!r} must be a whole number of at least {least}{more}")
    return int(value)


def number_of_learners(name: str, learners: object) -> int:
    """The number of learners. Raises ValueError for what is none."""
    return whole(f"{name}: learners", learners, 1, " (SMA also takes 'auto')")
