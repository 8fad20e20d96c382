"""Table 1: the four networks with their numbers of operators, and the sizes of models and data sets."""

from __future__ import annotations

import math

from paper_figures.crossbow import settings
from suite.claims.measured import exact, point
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Quantities

MIB, GIB, PAGE, FLOAT = 2**20, 2**30, 4096, 4  # bytes
IMAGENET_IMAGES, IMAGENET_SHAPE = 1_431_167, (3, 256, 256)  # training, validation and test; as ISGD's paper counts
PASCAL_PROCESSORS, CORES_PER_PROCESSOR, PASCAL_GIGABYTES = 28, 128, 12  # NVIDIA's Titan X of 2016 (GP102)
CLAIM_OF = {
    "crossbow_lenet": "lenet",
    "crossbow_resnet32": "resnet-32",
    "crossbow_vgg16": "vgg-16",
    "crossbow_resnet50": "resnet-50",
}


def runs(profile: str) -> settings.Groups:
    return {"sizes": (settings.SIZES,)}


def measure_inputs(_: Evidence) -> Quantities:
    """Sizes of the data sets as float32, in MiB."""
    mnist = DATASETS["mnist"]
    assert mnist.shape is not None
    size = mnist.sizes["train"] * math.prod(mnist.shape) * FLOAT
    pages = -(-size // PAGE) * PAGE
    yield "lenet-input-mb", exact(pages / MIB, note=f"training images in whole pages; without, {size / MIB:.4f}")
    for claim, name in (("resnet-32", "cifar10"), ("vgg-16", "cifar100")):
        info = DATASETS[name]
        assert info.shape is not None
        everything = sum(info.sizes.values()) * math.prod(info.shape) * FLOAT
        yield f"{claim}-input-mb", exact(everything / MIB, note="training and test images")
    imagenet = IMAGENET_IMAGES * math.prod(IMAGENET_SHAPE) * FLOAT
    yield "resnet-50-input-mb", exact(imagenet / MIB, note="training, validation and test images")
    cores = PASCAL_PROCESSORS * CORES_PER_PROCESSOR
    gpus = settings.RESNET50["gpus"]
    yield "hardware-gpus", exact((gpus, cores, PASCAL_GIGABYTES), note="cores as NVIDIA lists them for this card")


def measure_networks(evidence: Evidence) -> Quantities:
    """Parameters and operators of the networks that the run built."""
    run = evidence.run("sizes")
    for network, claim in CLAIM_OF.items():
        yield f"{claim}-model-mb", exact(run.results[f"{network}_parameters"] * FLOAT / MIB, runs=[run.id])
        yield f"{claim}-ops", exact(run.results[f"{network}_operators"], runs=[run.id])
    parameters, operators, outputs = (
        run.results[f"crossbow_resnet50_{what}"] for what in ("parameters", "operators", "bytes")
    )
    batch = run.spec.settings["batch"]
    note = f"outputs of forward and gradient operators at batch {batch}, each in its own buffer"
    text = (parameters * FLOAT / MIB, operators, outputs / GIB)
    yield "resnet50-text", point(text, kind="proxy", runs=[run.id], note=note)


ARTIFACTS = (Artifact("crossbow/table1", "Benchmark models and data sets", runs, (measure_inputs, measure_networks)),)
