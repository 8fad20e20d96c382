"""From plain settings to the objects of a training run: data, network, order, algorithm, solver."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from reference_impls.contract import Algorithm, Collective, Optimizer
from reference_impls.crossbow import SMA
from reference_impls.inverse_law import SGD
from reference_impls.isgd import ISGD
from reference_impls.local_sgd import DiLoCo, LocalSGD, PostLocalSGD
from reference_impls.matex_agd import DelayedSGD
from reference_impls.rudra import Softsync
from suite.communication.collectives import in_process
from suite.data import images, order, transforms
from suite.data.augmentation import Augmentation, Augmented
from suite.data.order import Order
from suite.models import classifier, initialise
from suite.models.network import Network, parameter_specs
from suite.spec import seed, thaw
from suite.training.flat import FlatModule
from suite.training.numerics import Numerics
from suite.training.optimizers import AdaGrad, Adam, AdamW, CaffeSGD, TorchSGD
from suite.training.problem import Classification

DTYPES = {"float32": torch.float32, "float64": torch.float64, "tf32": torch.float32, "bf16": torch.float32}
ALGORITHMS: dict[str, type[Algorithm[Any]]] = {  # a paper of another package adds its own
    "sgd": SGD,
    "isgd": ISGD,
    "rudra": Softsync,
    "matex_agd": DelayedSGD,
    "crossbow": SMA,
    "local_sgd": LocalSGD,
    "post_local_sgd": PostLocalSGD,
    "diloco": DiLoCo,
}
SOLVERS: dict[str, type[Any]] = {
    "caffe": CaffeSGD,
    "torch": TorchSGD,
    "adam": Adam,
    "adamw": AdamW,
    "adagrad": AdaGrad,
}


@dataclass
class Assembly:
    """Everything a training loop needs, on one device."""

    problem: Classification
    x0: Tensor
    order: Order
    algorithm: Algorithm[Any]  # of workers that are all rows of this process
    test_inputs: Tensor
    test_targets: Tensor


def fields(kind: Any, values: Mapping[str, Any], what: str, besides: Collection[str] = ()) -> dict[str, Any]:
    """``values`` as keyword arguments of a NamedTuple or dataclass; raises ValueError for unknown ones.

    The fields ``besides`` are not for settings to give.
    """
    names = getattr(kind, "_fields", None) or [f.name for f in dataclasses.fields(kind)]
    known = set(names) - set(besides)
    if unknown := set(values) - set(known):
        raise ValueError(f"{what}: unknown settings {sorted(unknown)}; known are {sorted(known)}")
    return dict(values)


def make_optimizer(settings: Mapping[str, Any], flat: FlatModule) -> Optimizer:
    """The solver named by ``rule`` with the network's multipliers as [d] vectors."""
    values = thaw(settings)
    rule = values.pop("rule")
    if rule not in SOLVERS:
        raise ValueError(f"descent rule must be one of {sorted(SOLVERS)}, not {rule!r}")
    if values.pop("multipliers", False):
        specs = dict(parameter_specs(flat.module))
        values["lr_scale"] = flat.scale({name: spec.lr_multiplier for name, spec in specs.items()})
        values["decay_scale"] = flat.scale({name: spec.decay_multiplier for name, spec in specs.items()})
    return SOLVERS[rule](**fields(SOLVERS[rule], values, f"descent {rule}"))


def algorithm_class(name: str) -> type[Algorithm[Any]]:
    """The algorithm of this name; raises ValueError for another."""
    if name not in ALGORITHMS:
        raise ValueError(f"unknown algorithm {name!r}; there are {sorted(ALGORITHMS)}")
    return ALGORITHMS[name]


def make_algorithm(
    settings: Mapping[str, Any], optimizer: Optimizer, collective: Collective, batches_per_epoch: int
) -> Algorithm[Any]:
    """The algorithm named by ``name``; ``batches: "epoch"`` means as many as an epoch has."""
    values = thaw(settings)
    kind = algorithm_class(values.pop("name"))
    if values.get("batches") == "epoch":
        values["batches"] = batches_per_epoch
    bound = {field.name for field in dataclasses.fields(Algorithm)}
    return kind(optimizer, collective, **fields(kind, values, "algorithm", besides=bound))


def defaults(settings: Mapping[str, Any]) -> set[str]:
    """Paths of the settings that the algorithm and the solver of a run have, whether they are written out or not."""
    found: set[str] = set()
    algorithm, descent = settings.get("algorithm"), settings.get("descent")
    if isinstance(algorithm, Mapping):
        bound = {field.name for field in dataclasses.fields(Algorithm)}
        own = {field.name for field in dataclasses.fields(algorithm_class(algorithm["name"]))} - bound
        found |= {f"algorithm.{name}" for name in own}
    if isinstance(descent, Mapping):
        scalars = {field.name for field in dataclasses.fields(SOLVERS[descent["rule"]]) if "scale" not in field.name}
        found |= {f"descent.{name}" for name in scalars}
    return found


def make_network(settings: Mapping[str, Any], run_seed: int, device: str, dtype: torch.dtype) -> Network:
    """A built and initialised network; the weights depend on the run's seed alone."""
    options = thaw(settings)
    module = classifier(options.pop("name"), **options)
    initialise(module, seed(run_seed, "weights"))
    return module.to(device=device, dtype=dtype)


def make_order(settings: Mapping[str, Any], targets: Tensor, batch: int, workers: int, order_seed: int) -> Order:
    """The batch order named by ``kind``; ``batch`` is what one worker reads in one turn.

    ``split`` cuts every batch of batch x workers examples over the workers, ``pool`` deals whole batches out.
    """
    values = thaw(settings)
    kind, share = values.pop("kind"), values.pop("share", "own")
    joint = batch * workers if share == "split" else batch
    makers: dict[str, Callable[[], Order]] = {
        "fixed-cycle": lambda: order.FixedCycle(len(targets), joint, order_seed),
        "shuffled": lambda: order.Shuffled(len(targets), joint, order_seed),
        "with-replacement": lambda: order.WithReplacement(len(targets), joint, order_seed),
        "partitioned": lambda: order.Partitioned(len(targets), workers, batch, order_seed),
        "by-class": lambda: order.ByClass(targets.cpu(), workers, batch, order_seed, **values),
        "single-class": lambda: order.SingleClass(targets.cpu(), joint, order_seed, **values),
        "balanced": lambda: order.Balanced(targets.cpu(), joint, order_seed, **values),
    }
    if kind not in makers or share not in ("own", "split", "pool"):
        raise ValueError(f"order kind={kind!r} must be one of {sorted(makers)}, share={share!r} own, split or pool")
    made = makers[kind]()
    if share == "split":
        made = order.SplitBatch(made, workers)
    elif share == "pool":
        made = order.SharedPool(made, workers)
    return made.to(targets.device)


def subset_draw(name: str, examples: int) -> Tensor:
    """All examples [examples] of a data set in the order in which a subset takes them, the same for every run."""
    return torch.randperm(examples, generator=torch.Generator().manual_seed(seed("subset", name)))


def assemble(
    settings: Mapping[str, Any], run_seed: int, execution: Mapping[str, Any], data_root: Path | None
) -> Assembly:
    """Build a classification run. Raises ValueError (DataError) in one sentence for what cannot be had."""
    device, dtype = execution["device"], DTYPES[execution["precision"]]
    data = thaw(settings["data"])
    name, rule, size = data.pop("name"), data.pop("transform", "scale"), data.pop("padded", None)
    subset = data.pop("subset", None)
    training = images.load_images(name, "train", root=data_root, **data).to(device)
    testing = images.load_images(name, "test", root=data_root, **data).to(device)
    inputs, targets = training.inputs, training.targets
    decode = transforms.fit(rule, training.inputs, size).to(device)
    if subset is not None:
        drawn = subset_draw(name, len(targets))[:subset]
        inputs, targets = inputs[drawn], targets[drawn]
    network = make_network(settings["model"], run_seed, device, dtype)
    flat = FlatModule(network, channels_last=execution["channels_last"])
    workers = settings.get("workers", 1)
    batches = make_order(
        settings.get("order", {"kind": "fixed-cycle"}), targets, settings["batch"], workers, seed(run_seed, "order")
    )
    augmentation = None
    if "augment" in settings:
        crop_flip = transforms.CropFlip(**fields(transforms.CropFlip, thaw(settings["augment"]), "augment"))
        augmentation = Augmentation(crop_flip, *(size or extent for extent in inputs.shape[-2:]))
        batches = Augmented(batches, augmentation, seed(run_seed, "augment"))
    algorithm = make_algorithm(
        settings["algorithm"],
        make_optimizer(settings["descent"], flat),
        in_process(workers),
        batches.batches_per_epoch,
    )
    return Assembly(
        problem=Classification(
            flat,
            inputs,
            targets,
            lambda pixels: decode(pixels).to(dtype),
            augmentation=augmentation,
            numerics=Numerics.of(execution),
        ),
        x0=flat.point(),
        order=batches,
        algorithm=algorithm,
        test_inputs=testing.inputs,
        test_targets=testing.targets,
    )


def random_classification(
    model: Mapping[str, Any], examples: int, execution: Mapping[str, Any], channels_last: bool
) -> Classification:
    """A network on ``examples`` random pictures of its input's shape, for timing."""
    device, dtype = execution["device"], DTYPES[execution["precision"]]
    network = make_network(model, 0, device, dtype)
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (examples, *network.input_shape), generator=generator, dtype=torch.uint8)
    targets = torch.randint(network.classes, (examples,), generator=generator)
    flat = FlatModule(network, channels_last=channels_last)
    numerics = Numerics.of(execution)
    return Classification(flat, pixels.to(device), targets.to(device), lambda x: x.to(dtype) / 256, numerics=numerics)
