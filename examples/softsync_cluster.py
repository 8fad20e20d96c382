"""MNIST with 1-softsync: a parameter server that updates whenever as many gradients came as there are learners.

Expect 96% or more after 4000 updates, in 2 minutes by `torchrun --nproc-per-node 3 softsync_cluster.py`: a server and
two learners. Without torchrun two learners take turns; `softsync_cluster.py digits 500` needs no data and 20 seconds.
On several nodes start it by a launcher that lets the others go on when a learner is lost, such as `srun --no-kill`.
"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from suite.data.images import load_images
from suite.optim import parameter_server

name, updates = sys.argv[1:] or ("mnist", "4000")
torch.manual_seed(0)
images, pictures = load_images(name, "train"), load_images(name, "test")
dataset = TensorDataset(images.inputs.float() / 255, images.targets)
loader = DataLoader(dataset, batch_size=32, shuffle=True, drop_last=True)
layers = nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(1152, 64), nn.ReLU(), nn.Linear(64, 10)
model = nn.Sequential(*layers)
with parameter_server(model, lr=0.02, momentum=0.9, n=1, updates=int(updates)) as opt:
    for inputs, targets in opt.batches(loader):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        opt.step()


def test(model):
    right = model(pictures.inputs.float() / 255).argmax(1) == pictures.targets
    print(f"accuracy {right.float().mean().item():.1%}")


test(opt.average())
