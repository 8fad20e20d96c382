"""The batch size that trains torchvision's ResNet-18 on CIFAR-10 in the least time, by the inverse law.

Expect a table of batch sizes with predicted seconds and 95% intervals, the chosen one marked, and choice.png, after
10 minutes on a GPU (the budget; early runs answer first); `choose_batch.py colours 300` needs no data and two
minutes.
"""

import sys

import torch
from torch import nn
from torchvision.models import resnet18

from suite.data.images import load_images
from suite.optim import choose_batch, device

name, budget = sys.argv[1:] or ("cifar10", "600")
images = load_images(name, "train")
toy = name == "colours"  # small pictures and a threshold soon reached, to see it work
inputs, targets = (images.inputs[:, :, ::4, ::4], images.targets) if toy else (images.inputs, images.targets)


def make_model(seed):
    torch.manual_seed(seed)
    return resnet18(num_classes=images.classes).to(device())


choice = choose_batch(
    make_model,
    nn.functional.cross_entropy,
    (inputs.float().to(device()) / 255, targets.to(device())),
    rate=0.02,
    threshold=1.0 if toy else 0.8,
    batches=(2, 8, 32) if toy else (4, 8, 16, 32, 64, 128, 256, 512),
    seeds=(0, 1, 2),
    share=0.02,
    growth=0.1,
    budget=float(budget),
)
print(choice.frame().to_string(index=False))
print(f"batch size {choice.batch}; {choice.unfinished or 'all runs counted'}")
choice.plot().figure.savefig("choice.png")
