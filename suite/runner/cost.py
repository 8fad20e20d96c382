"""What a training run is expected to cost, without importing torch."""

from __future__ import annotations

from math import prod
from typing import Any

from suite.data.catalogue import DATASETS
from suite.experiment import Experiment, lazily
from suite.models.table import counts
from suite.spec import RunSpec, trainings
from suite.training.settings import TRAINING

FLOPS_PER_SECOND = 4e10  # one core of the reference CPU on small convolutions, where no measurement is below
# Seconds of a gradient by the fastest path of one core: of an image, and of a step beside its images. All but the
# transformer and Caffe's LeNet were timed side by side on one host, in seconds of a processor, and are scaled so that
# Caffe's networks on CIFAR-10 keep the seconds of their stored runs, and VGG those of its stored searches. Both
# residual networks have autograd's seconds over the gain of machine code: 2.03 times for ResNet-20 at M = 4 and 1.74
# at 64, 1.66 for ResNet-32. Their stored runs were autograd's, but two of ResNet-32.
GRADIENT = {
    "caffe_cifar_full": (380e-6, 0.6e-3),
    "caffe_cifar_quick": (350e-6, 0.7e-3),
    "caffe_lenet": (230e-6, 0.3e-3),
    "character_transformer": (1.1e-3, 0.3e-3),
    "cifar_lenet": (286e-6, 1.6e-3),
    "crossbow_lenet": (350e-6, 0.5e-3),
    "crossbow_resnet32": (3.9e-3, 8.4e-3),
    "lenet_small": (70e-6, 0.1e-3),
    "lenet_medium": (122e-6, 0.5e-3),
    "lenet_large": (353e-6, 2.1e-3),
    "narrow_alexnet": (680e-6, 3e-3),
    "resnet20": (2.3e-3, 4e-3),
    "vgg_large": (4.2e-3, 32e-3),
    "vgg_medium": (3.1e-3, 18e-3),
}
FORWARD = 0.5  # of a gradient's seconds an image that its test takes
# Seconds of an image's test where that is not so: Winograd convolutions serve the gradient alone, and batch norm
# costs a gradient more than a test.
TEST = {
    "caffe_cifar_full": 320e-6,
    "caffe_cifar_quick": 270e-6,
    "caffe_lenet": 90e-6,
    "character_transformer": 400e-6,
    "cifar_lenet": 200e-6,
    "crossbow_resnet32": 2.0e-3,
    "narrow_alexnet": 490e-6,
    "resnet20": 1.2e-3,
}
OVERHEAD = 0.3e-3  # seconds per update outside the network: indices, pictures, the solver's step
STOPPED = 0.19  # of its updates that a run with a stopping rule makes: the mean of the stored ones, of 14 to 24%


def test_size(name: str) -> int:
    """Examples of a data set that are evaluated: its test split, or the validation split where tests are secret."""
    sizes = DATASETS[name].sizes
    return sizes["test"] if name != "imagenet" else sizes["validation"]


def expected_updates(spec: RunSpec) -> float:
    """Updates that a run will make: all of them, unless a rule is likely to stop it."""
    return spec.settings["updates"] * (STOPPED if spec.settings.get("stop") else 1.0)


def image_seconds(name: str, **options: Any) -> float:
    """Seconds of an image's gradient in a large batch: operations at the network's measured speed, or the usual."""
    operations = counts(name, **options).flops_per_example
    measured = GRADIENT.get(name)
    return operations * (measured[0] / counts(name).flops_per_example if measured else 3 / FLOPS_PER_SECOND)


def gradient_seconds(images: float, steps: float, name: str, **options: Any) -> float:
    """Seconds of ``steps`` gradients of a network that read ``images`` images in all."""
    return images * image_seconds(name, **options) + steps * GRADIENT.get(name, (0.0, 1.2e-3))[1]


def test_seconds(images: float, name: str, **options: Any) -> float:
    """Seconds of forward passes of so many images."""
    share = TEST[name] / GRADIENT[name][0] if name in TEST else FORWARD
    return images * share * image_seconds(name, **options)


def seconds(spec: RunSpec) -> float:
    """Gradients of all workers, the evaluations, and what an update takes beside them."""
    return sum(map(stage_seconds, trainings(spec)))


def stage_seconds(spec: RunSpec) -> float:
    s, updates = spec.settings, expected_updates(spec)
    model, workers = s["model"], s.get("workers", 1)
    images = s["evaluate"].get("test_examples", s["data"].get("examples", test_size(s["data"]["name"])))
    test = images + s["evaluate"].get("train_examples", 0) + s["evaluate"].get("recompute", 0)
    evaluations = updates / s["evaluate"]["every"] + 1
    gradients = gradient_seconds(updates * workers * s["batch"], updates * workers, **model)
    return gradients + test_seconds(evaluations * test, **model) + updates * OVERHEAD


def data(spec: RunSpec) -> tuple[str, ...]:
    return (spec.settings["data"]["name"],)


def memory(spec: RunSpec) -> int:
    """Bytes: interpreter and torch, the data set as uint8, ten vectors of parameters per worker, activations."""
    s = spec.settings
    network, info = counts(**s["model"]), DATASETS[s["data"]["name"]]
    images = (info.sizes["train"] + test_size(info.name)) * prod(network.input_shape)
    vectors = 4 * network.parameters * 10 * s.get("workers", 1)
    return 350_000_000 + images + vectors + 8 * max(s["batch"], 500) * network.activations_per_example


TRAIN = Experiment(
    lazily("suite.training.loop:train"),
    seconds,
    data,
    memory,
    measure=lazily("suite.runner.autotune:measure_training"),
    pilot=lazily("suite.runner.pilot:training"),
    check=lazily("suite.runner.pilot:check"),
    settings=TRAINING,
)
