"""The batch size that trains torchvision's ResNet-18 on CIFAR-10 in the least time, by the inverse law.

Expect a table of batch sizes with predicted seconds and 95% intervals, the chosen one marked, and choice.png, after
10 minutes on a GPU (the budget; early runs answer first); `choose_batch.py digits 200` needs no data and a minute.
Group norm stands for batch norm, whose statistics of 4 pictures say little.
"""

import sys

import torch
from torch import nn
from torchvision.models import resnet18

from suite.data.images import load_images
from suite.optim import choose_batch, device

name, budget = sys.argv[1:] or ("cifar10", "600")
toy = name == "digits"  # small grey pictures, few sizes and a threshold soon reached
images = load_images(name, "train", **({"size": 8} if toy else {}))
pictures = (images.inputs.float() / 255).expand(-1, 3, -1, -1).contiguous()


def make_model(seed):
    torch.manual_seed(seed)
    network = resnet18(num_classes=images.classes, norm_layer=lambda channels: nn.GroupNorm(8, channels))
    if toy:  # its first half is enough for 8 x 8 pixels
        network.layer3, network.layer4, network.fc = nn.Identity(), nn.Identity(), nn.Linear(128, images.classes)
    return network.to(device())


choice = choose_batch(
    make_model,
    nn.functional.cross_entropy,
    (pictures.to(device()), images.targets.to(device())),
    rate=0.02 if toy else 0.005,
    threshold=1.3 if toy else 0.8,
    batches=(8, 16, 64) if toy else (4, 8, 16, 32, 64, 128, 256, 512),
    seeds=(0, 1) if toy else (0, 1, 2),
    share=0.05,
    growth=0.1,
    budget=float(budget),
)
print(choice.frame().to_string(index=False))
print(f"batch size {choice.batch}; {choice.unfinished or 'all runs counted'}")
choice.plot().figure.savefig("choice.png")
