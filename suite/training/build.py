"""From plain settings to the objects of a training run: data, network, order, algorithm, solver."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from reference_impls.contract import Algorithm, Collective, Optimizer
from reference_impls.crossbow import SMA
from reference_impls.inverse_law import SGD
from reference_impls.isgd import ISGD
from reference_impls.local_sgd import DiLoCo, LocalSGD, PostLocalSGD
from reference_impls.matex_agd import DelayedSGD
from reference_impls.rudra import Softsync
from suite.communication.collectives import EXCHANGES, CountingCollective, in_process
from suite.data import images, order, transforms
from suite.data.catalogue import DATASETS
from suite.data.order import Order
from suite.data.transforms import Augmentation, Augmented
from suite.models import classifier, initialise
from suite.models.network import Network, parameter_specs
from suite.models.registry import construct
from suite.spec import seed, thaw
from suite.tables import Table, check_options
from suite.training.flat import FlatModule
from suite.training.numerics import kernels
from suite.training.optimizers import LARS, AdaGrad, Adam, AdamW, CaffeSGD, TorchSGD
from suite.training.problem import Classification
from suite.training.schedules import shape_at
from suite.training.settings import check_kind, check_settings

DTYPES = {"float32": torch.float32, "float64": torch.float64}
ALGORITHMS: Table[type[Algorithm[Any]]] = Table(
    "algorithm",
    {
        "sgd": SGD,
        "isgd": ISGD,
        "rudra": Softsync,
        "matex_agd": DelayedSGD,
        "crossbow": SMA,
        "local_sgd": LocalSGD,
        "post_local_sgd": PostLocalSGD,
        "diloco": DiLoCo,
    },
)
# Dataclasses that are an Optimizer; ``lr_scale``, ``decay_scale`` and ``layers`` are not for settings to give.
SOLVERS: Table[type[Any]] = Table(
    "solver",
    {
        "caffe": CaffeSGD,
        "torch": TorchSGD,
        "adam": Adam,
        "adamw": AdamW,
        "adagrad": AdaGrad,
        "lars": LARS,
    },
)


def single_class(targets: Tensor, batch: int, workers: int, seed: int, batches: int | None = None) -> Order:
    return order.SingleClass(targets.cpu(), batch, seed, batches)


def balanced(targets: Tensor, batch: int, workers: int, seed: int, batches: int) -> Order:
    return order.Balanced(targets.cpu(), batch, seed, batches)


# Functions of targets [N], examples of a batch, workers, seed and their own options that return an Order.
ORDERS: Table[Callable[..., Order]] = Table(
    "order",
    {
        "fixed-cycle": lambda targets, batch, workers, seed: order.FixedCycle(len(targets), batch, seed),
        "shuffled": lambda targets, batch, workers, seed: order.Shuffled(len(targets), batch, seed),
        "with-replacement": lambda targets, batch, workers, seed: order.WithReplacement(len(targets), batch, seed),
        "partitioned": lambda targets, batch, workers, seed: order.Partitioned(len(targets), workers, batch, seed),
        "by-class": lambda targets, batch, workers, seed, skew=1.0: order.ByClass(
            targets.cpu(), workers, batch, seed, skew
        ),
        "single-class": single_class,
        "balanced": balanced,
    },
)
ORDER = {"kind": "fixed-cycle"}  # unless settings name another
PARTITIONS = ("partitioned", "by-class")  # orders that have batches of a worker, and none of all workers
BOUND = ("lr_scale", "decay_scale", "layers")  # fields of solvers that who builds them hands over


@dataclass
class Setup:
    """Everything a training loop needs, on one device."""

    problem: Classification
    x0: Tensor
    order: Order
    algorithm: Algorithm[Any]  # of workers that are all rows of this process
    test_inputs: Tensor
    test_targets: Tensor


def make_optimizer(settings: Mapping[str, Any], flat: FlatModule) -> Optimizer:
    """The solver named by ``rule`` with the network's multipliers as [d] vectors, and its layers if it asks."""
    values = thaw(settings)
    kind = SOLVERS[rule := values.pop("rule")]
    check_kind("descent.multipliers", multipliers := values.pop("multipliers", False), bool)
    check_options(f"descent {rule}", kind, 0, values, hidden=BOUND)
    if multipliers:
        specs = dict(parameter_specs(flat.module))
        values["lr_scale"] = flat.scale({name: spec.lr_multiplier for name, spec in specs.items()})
        values["decay_scale"] = flat.scale({name: spec.decay_multiplier for name, spec in specs.items()})
    if "layers" in settings_of(kind):
        values["layers"] = flat.segments
    return kind(**values)


def settings_of(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, each with its default, or a mark of ``inspect`` that there is none."""
    return {name: field.default for name, field in inspect.signature(kind).parameters.items()}


def make_algorithm(
    settings: Mapping[str, Any], optimizer: Optimizer, collective: Collective, batches_per_epoch: int
) -> Algorithm[Any]:
    """The algorithm named by ``name``; ``batches: "epoch"`` means as many as an epoch has."""
    values = thaw(settings)
    kind = ALGORITHMS[name := values.pop("name")]
    if values.get("batches") == "epoch":
        values["batches"] = batches_per_epoch
    check_options(f"algorithm {name}", kind, len(settings_of(Algorithm)), values)
    return kind(optimizer, collective, **values)


def defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that the algorithm, the solver and the order of a run have, whether they are written out or not.

    By path, each with its plain default, None without one.
    """
    found: dict[str, Any] = {}
    algorithm, descent = settings.get("algorithm"), settings.get("descent")
    if isinstance(algorithm, Mapping):
        own, bound = settings_of(ALGORITHMS[algorithm["name"]]), settings_of(Algorithm)
        found |= {f"algorithm.{name}": default for name, default in own.items() if name not in bound}
    if isinstance(descent, Mapping):
        own = settings_of(SOLVERS[descent["rule"]])
        found |= {f"descent.{name}": default for name, default in own.items() if name not in BOUND}
    if isinstance(batches := settings.get("order"), Mapping):
        every = settings_of(ORDERS[batches["kind"]]).items()
        found |= {f"order.{name}": default for name, default in list(every)[4:]}
    if "evaluate" in settings:  # of a training run
        warm = dict.fromkeys(("updates", "rate", "batch", "descent.rule", "descent.momentum", "descent.decay"))
        found |= {f"warmstart.{path}": default for path, default in (warm | found).items()}
    plain = bool | int | float | str | tuple
    return {path: thaw(default) if isinstance(default, plain) else None for path, default in found.items()}


def left_over(settings: Mapping[str, Any], part: str) -> set[str]:
    """Options of a run's algorithm, solver (``descent``) or order that it does not have, as they were another's."""
    own = {path.partition(".")[2] for path in defaults(settings) if path.startswith(f"{part}.")}
    own |= {"name", "rule", "kind"} | ({"share", "without"} if part == "order" else set())
    if part == "descent" and "lr_scale" in settings_of(SOLVERS[settings[part]["rule"]]):
        own.add("multipliers")
    return set(settings[part]) - own


def make_exchange(settings: Mapping[str, Any] | None, workers: int) -> Collective:
    """What moves sums between workers: those named by ``name``, counted, or plain ones without settings."""
    if settings is None:
        return in_process(workers)
    options = thaw(settings)
    make = EXCHANGES[name := options.pop("name")]
    check_options(f"exchange {name}", make, 1, options)
    return CountingCollective(make(workers, **options))


def make_network(settings: Mapping[str, Any], run_seed: int, device: str, dtype: torch.dtype) -> Network:
    """A built and initialised network; the weights depend on the run's seed alone."""
    options = thaw(settings)
    module = classifier(options.pop("name"), **options)
    initialise(module, seed(run_seed, "weights"))
    return module.to(device=device, dtype=dtype)


def make_order(settings: Mapping[str, Any], targets: Tensor, batch: int, workers: int, order_seed: int) -> Order:
    """The batch order named by ``kind``; ``batch`` is what one worker reads in one turn.

    ``split`` cuts every batch of batch x workers examples over the workers, ``pool`` deals whole batches out.
    ``without`` leaves batches out of some epochs (:class:`suite.data.order.LeftOut`).
    """
    options = thaw(settings)
    kind, share, without = options.pop("kind"), options.pop("share", "own"), options.pop("without", None)
    if share not in ("own", "split", "pool"):
        raise ValueError(f"order share={share!r} must be one of own, split, pool")
    if kind in PARTITIONS and share != "own":
        raise ValueError(f"order {kind} gives each worker its own part of the data; share={share!r} must be own")
    if without is not None:
        check_options("order without", order.LeftOut, 1, without)
    check_options(f"order {kind}", ORDERS[kind], 4, options)
    joint = batch * workers if share == "split" else batch
    made = ORDERS[kind](targets, joint, workers, order_seed, **options)
    if without is not None:
        made = order.LeftOut(made, **without)
    if share == "split":
        made = order.SplitBatch(made, workers)
    elif share == "pool":
        made = order.SharedPool(made, workers)
    return made.to(targets.device)


def subset_draw(name: str, examples: int) -> Tensor:
    """All examples [examples] of a data set in the order in which a subset takes them, the same for every run."""
    return torch.randperm(examples, generator=torch.Generator().manual_seed(seed("subset", name)))


def training_examples(data: Mapping[str, Any]) -> int:
    """Training examples of an epoch: all of the set, or as many as these settings of it ask for."""
    every = DATASETS[data["name"]].sizes["train"]
    return min(every, data.get("examples", every), data.get("subset", every))


def check_parts(settings: Mapping[str, Any]) -> None:
    """Build the parts of a training without its data, the network on the meta device.

    Raises:
        ValueError: a part names nothing there is, has settings that what it names has not, or values out of range.
    """
    network: Any = construct(**thaw(settings["model"]))
    solver = make_optimizer(settings["descent"], FlatModule(network))
    workers = settings.get("workers", 1)
    batches = 2  # of an epoch, which only the data tell: the fewest that every algorithm takes
    make_algorithm(settings["algorithm"], solver, make_exchange(settings.get("exchange"), workers), batches)
    data, which = settings["data"], dict(settings.get("order", ORDER))
    transforms.check_rule(data.get("transform", "scale"))
    if "augment" in settings:
        make_augmentation(settings, network.input_shape)
    if "schedule" in settings:
        shape_at(settings["schedule"], settings.get("updates", 1), 0)
    if which["kind"] == "single-class" and "batches" not in which:
        which.pop("without", None)  # of as many batches as the data have classes
    # What an order cannot make of targets that are all alike, it can make of no others.
    alike = torch.zeros(training_examples(data))
    make_order(which, alike, settings["batch"], workers, 0)


def make_augmentation(settings: Mapping[str, Any], shape: Sequence[int]) -> Augmentation:
    """The random crops and flips of training images [C, H, W]. Raises ValueError for examples of another shape."""
    options, enlarge = thaw(settings["augment"]), settings["data"].get("enlarge", 0)
    check_options("augment", transforms.CropFlip, 0, options)
    if len(shape) != 3:
        raise ValueError(f"augment crops pictures [C, H, W], not examples of shape {tuple(shape)}; leave it out")
    return Augmentation(transforms.CropFlip(**options), *((enlarge, enlarge) if enlarge else shape[1:]))


def assemble(
    settings: Mapping[str, Any], run_seed: int, execution: Mapping[str, Any], data_root: Path | None
) -> Setup:
    """Build a classification run. Raises ValueError (DataError) in one sentence for what cannot be had."""
    check_settings(settings)
    device, dtype = execution["device"], DTYPES[execution["precision"]]
    data = thaw(settings["data"])
    name, rule = data.pop("name"), data.pop("transform", "scale")
    subset, enlarge = data.pop("subset", None), data.pop("enlarge", 0)
    training = images.load_images(name, "train", root=data_root, **data).to(device)
    testing = images.load_images(name, "test", root=data_root, **data).to(device)
    inputs, targets = training.inputs, training.targets
    decode = replace(transforms.fit(rule, training.inputs).to(device, dtype), enlarge=enlarge)
    if subset is not None:
        drawn = subset_draw(name, len(targets))[:subset]
        inputs, targets = inputs[drawn], targets[drawn]
    network = make_network(settings["model"], run_seed, device, dtype)
    flat = FlatModule(network, channels_last=execution["channels_last"])
    augmentation = make_augmentation(settings, inputs.shape[1:]) if "augment" in settings else None
    problem = Classification(flat, inputs, targets, decode, augmentation=augmentation, kernels=kernels(execution))
    return set_up(settings, run_seed, problem, testing.inputs, testing.targets)


def set_up(
    settings: Mapping[str, Any], run_seed: int, problem: Classification, test_inputs: Tensor, test_targets: Tensor
) -> Setup:
    """The order and the algorithm of a run on a problem that is there."""
    workers, flat, named = settings.get("workers", 1), problem.flat, settings.get("order", ORDER)
    batches = make_order(named, problem.targets, settings["batch"], workers, seed(run_seed, "order"))
    if problem.augmentation is not None:
        batches = Augmented(batches, problem.augmentation, seed(run_seed, "augment"))
    solver, collective = make_optimizer(settings["descent"], flat), make_exchange(settings.get("exchange"), workers)
    algorithm = make_algorithm(settings["algorithm"], solver, collective, batches.batches_per_epoch)
    return Setup(problem, flat.point(), batches, algorithm, test_inputs, test_targets)


def random_classification(
    model: Mapping[str, Any], examples: int, execution: Mapping[str, Any], channels_last: bool
) -> Classification:
    """A network on ``examples`` random pictures of its input's shape, for timing."""
    device, dtype = execution["device"], DTYPES[execution["precision"]]
    network = make_network(model, 0, device, dtype)
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (examples, *network.input_shape), generator=generator, dtype=torch.uint8)
    targets = torch.randint(network.classes, (examples, *network.label_shape), generator=generator)
    flat = FlatModule(network, channels_last=channels_last)
    decode = lambda x: x.to(dtype) / 256
    return Classification(flat, pixels.to(device), targets.to(device), decode, kernels=kernels(execution))


AUXILIARY = 0.3  # of each auxiliary loss, in the train_val.prototxt of Caffe's GoogLeNet


class RandomPictures:
    """A network whose gradient on the same pictures is computed over and over.

    Args:
        network: Its name.
        run_seed: Of its weights, and with ``coordinates`` of its pictures.
        count: Pictures.
        device: Where all of it lies.
        channels_last: How pictures and convolutions are laid out.
    """

    def __init__(
        self, network: str, run_seed: int, count: int, device: str, *coordinates: int, channels_last: bool = True
    ):
        self.module = make_network({"name": network}, run_seed, device, torch.float32)
        self.flat = FlatModule(self.module, channels_last=channels_last)
        draw = torch.Generator().manual_seed(seed(run_seed, "images", *coordinates))
        images = torch.randn(count, *self.module.input_shape, generator=draw).to(device)
        self.images = images.contiguous(memory_format=torch.channels_last) if channels_last else images
        self.labels = torch.randint(self.module.classes, (count,), generator=draw).to(device)

    def differentiate(self, batch: int, first: int = 0) -> None:
        """Write the gradient of so many pictures, from the ``first`` on, into ``flat.grad``; done on the device."""
        part = slice(first, first + batch)
        self.flat.grad.zero_()
        logits = self.module(self.images[part])
        main, *auxiliary = logits if isinstance(logits, tuple) else (logits,)
        loss = F.cross_entropy(main, self.labels[part])
        for each in auxiliary:
            loss = loss + AUXILIARY * F.cross_entropy(each, self.labels[part])
        loss.backward()
        if self.images.is_cuda:
            torch.cuda.synchronize()
