"""Table 1: the data sets and networks of the experiments, and the size of each network's weights."""

from __future__ import annotations

import math

from paper_figures.isgd.settings import IMAGENET_STORED, NETWORKS
from suite.claims.estimate import exact
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Quantities

BYTES_PER_WEIGHT = 4  # float32
MEGABYTE, GIGABYTE = 1e6, 1e9
IMAGENET_TEST = 100_000  # images of ILSVRC-2012's third split, whose labels are withheld; the suite never reads it


def weight_megabytes(kind: str) -> float:
    """Size of the weights of the network that the paper trains on a data set."""
    from suite.models.table import counts

    return counts(NETWORKS[kind]).parameters * BYTES_PER_WEIGHT / MEGABYTE


def measure_networks(_: Evidence) -> Quantities:
    """Sizes of the networks, from the networks."""
    lenet, quick, alexnet = (weight_megabytes(kind) for kind in ("mnist", "cifar", "imagenet"))
    yield "lenet-weight-mb", exact(lenet)
    yield "caffe-quick-weight-mb", exact(quick)
    yield "alexnet-weight-mb", exact(alexnet)
    yield "size-order", exact((lenet - quick, alexnet - lenet))


def measure_data_sets(_: Evidence) -> Quantities:
    """Sizes of the data sets, from the catalogue that the loaders verify their files against."""
    mnist, cifar, imagenet = DATASETS["mnist"], DATASETS["cifar10"], DATASETS["imagenet"]
    assert cifar.shape is not None
    yield "mnist-images", exact(mnist.sizes["train"], note="training images; with the test images there are 70,000")
    yield "mnist-classes", exact(mnist.classes)
    count = sum(cifar.sizes.values())
    yield "cifar-images", exact((count, *cifar.shape[1:], cifar.classes), note="training and test images")
    count = sum(imagenet.sizes.values()) + IMAGENET_TEST
    note = "training, validation and test images"
    yield "imagenet-images", exact((count, *IMAGENET_STORED[1:], imagenet.classes), note=note)
    per_image = math.prod(IMAGENET_STORED)
    every = count * per_image / GIGABYTE
    note = f"training images at one byte a value; all {count:,} images would take {every:.1f} GB"
    yield "imagenet-gb", exact(imagenet.sizes["train"] * per_image / GIGABYTE, note=note)


ARTIFACTS = (
    Artifact(
        "isgd/table1",
        "Data sets, networks and weight sizes used in the experiments",
        measures=(measure_networks, measure_data_sets),
    ),
)
