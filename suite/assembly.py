"""From plain settings to the objects of a training run: data, network, order, algorithm, solver."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from suite import descent as descents
from suite.algorithms import algorithm
from suite.data import images, order, transforms
from suite.flat import FlatModule
from suite.models import build, initialise
from suite.problems import Classification
from suite.spec import seed, thaw

DTYPES = {"float32": torch.float32, "float64": torch.float64, "tf32": torch.float32, "bf16": torch.float32}


@dataclass
class Assembly:
    """Everything a training loop needs, on one device."""

    problem: Classification
    x0: Tensor
    order: Any
    algorithm: Any
    config: Any
    descent: Any
    test_inputs: Tensor
    test_targets: Tensor
    evaluation_transform: Callable[[Tensor], Tensor]


def fields(kind: Any, values: Mapping[str, Any], what: str) -> dict[str, Any]:
    """``values`` as keyword arguments of a NamedTuple or dataclass; raises ValueError for unknown ones."""
    known = getattr(kind, "_fields", None) or [f.name for f in dataclasses.fields(kind)]
    if unknown := set(values) - set(known):
        raise ValueError(f"{what}: unknown settings {sorted(unknown)}; known are {sorted(known)}")
    return dict(values)


def make_descent(settings: Mapping[str, Any], flat: FlatModule) -> Any:
    """The solver named by ``rule`` with the network's multipliers as [d] vectors."""
    values = thaw(settings)
    rule = values.pop("rule")
    kinds = {"caffe": descents.Caffe, "torch": descents.Torch, "adam": descents.Adam}
    if rule not in kinds:
        raise ValueError(f"descent rule must be one of {sorted(kinds)}, not {rule!r}")
    module = flat.module
    if values.pop("multipliers", False):
        values["lr_scale"] = flat.scale(module.lr_multipliers)  # type: ignore[arg-type]
        values["decay_scale"] = flat.scale(module.decay_multipliers)  # type: ignore[arg-type]
    return kinds[rule](**fields(kinds[rule], values, f"descent {rule}"))


def make_network(settings: Mapping[str, Any], run_seed: int, device: str, dtype: torch.dtype) -> Any:
    """A built and initialised network; the weights depend on the run's seed alone."""
    options = thaw(settings)
    module = build(options.pop("name"), **options)
    initialise(module, seed(run_seed, "weights"))
    return module.to(device=device, dtype=dtype)


def assemble(
    settings: Mapping[str, Any], run_seed: int, execution: Mapping[str, Any], data_root: Path | None
) -> Assembly:
    """Build a classification run. Raises ValueError (DataError) in one sentence for what cannot be had."""
    device, dtype = execution["device"], DTYPES[execution["precision"]]
    data = thaw(settings["data"])
    name, how = data.pop("name"), data.pop("transform", "scale")
    examples = data.pop("examples", None)
    training = images.load_images(name, "train", root=data_root, **data)
    testing = images.load_images(name, "test", root=data_root, **data)
    inputs, targets = training.inputs.to(device), training.targets.to(device)
    if examples is not None:
        subset = torch.randperm(len(targets), generator=torch.Generator().manual_seed(seed("subset", name)))
        inputs, targets = inputs[subset[:examples]], targets[subset[:examples]]
    flat = FlatModule(
        make_network(settings["model"], run_seed, device, dtype), channels_last=execution["channels_last"]
    )
    decode = transforms.make(how, inputs, dtype)
    problem = Classification(flat, inputs, targets, decode)
    batches = order.make(
        settings.get("order", {"kind": "fixed-cycle"}),
        targets=targets,
        batch=settings["batch"],
        workers=settings.get("workers", 1),
        seed=seed(run_seed, "order"),
    )
    chosen = thaw(settings["algorithm"])
    module = algorithm(chosen.pop("name"))
    if chosen.get("batches") == "epoch":
        chosen["batches"] = batches.batches
    config = module.Config(**fields(module.Config, chosen, "algorithm")) if hasattr(module, "Config") else None
    return Assembly(
        problem=problem,
        x0=flat.point(),
        order=batches,
        algorithm=module,
        config=config,
        descent=make_descent(settings["descent"], flat),
        test_inputs=testing.inputs.to(device),
        test_targets=testing.targets.to(device),
        evaluation_transform=decode,
    )
