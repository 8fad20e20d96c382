"""What the ISGD paper states beside its training settings, as plain values."""

from __future__ import annotations

from typing import Any

from paper_figures.isgd.settings import CIFAR, MNIST
from suite.data.catalogue import DATASETS


def _decay(training: dict[str, Any]) -> float:
    return training["descent"]["decay"]


NETWORKS = {"MNIST": "caffe_lenet", "CIFAR-10": "caffe_cifar_quick", "ImageNet": "caffe_alexnet"}

RATES = {"MNIST": MNIST["rate"], "CIFAR-10": CIFAR["rate"], "ImageNet": 0.015}  # section 5.2, at the start
RATE_THRESHOLDS = (2.0, 1.2)  # mean losses (nats) at which ImageNet's rate falls, section 5.2
RATE_FACTORS = (1.0, 0.1, 0.01)  # 0.015, 0.0015, 0.00015

USUAL_DECAY = 1e-4  # section 2.2, "normally around"
# Weight decay of the experiments is not printed; Caffe's solver files for the three networks hold these.
CAFFE_DECAY = {"MNIST": _decay(MNIST), "CIFAR-10": _decay(CIFAR), "ImageNet": 5e-4}

TEST_EVERY_SECONDS = {"MNIST": 2, "CIFAR-10": 6, "ImageNet": 900}  # of training, section 5.2

# (batch size, GPUs), legends of Fig. 6; the abstract's 11.5-hour run is among them
CONFIGURATIONS = {
    "fig6a": ((64, 1), (1000, 4), (2000, 4), (3000, 4)),
    "fig6b": ((100, 1), (200, 4), (500, 4), (2000, 4), (10000, 4)),
    "fig6c": ((256, 1), (256, 4), (1000, 4), (1536, 4), (3400, 4)),
    "abstract": ((1536, 4),),
}
EXAMPLES = {
    "fig6a": DATASETS["mnist"].sizes["train"],
    "fig6b": DATASETS["cifar10"].sizes["train"],
    "fig6c": DATASETS["imagenet"].sizes["train"],
    "abstract": DATASETS["imagenet"].sizes["train"],
}

# (C1 images/s, C2 s), section 3.4.2 and the legend of Fig. 3
SYSTEMS = ((2000.0, 0.3), (1000.0, 0.3))

# ILSVRC-2012 has a third split, whose labels are withheld; the suite never reads it.
IMAGENET_SPLITS = (*DATASETS["imagenet"].sizes.values(), 100_000)
IMAGENET_STORED = (3, 256, 256)  # channels, height, width of the resized images that Caffe's database holds
