"""A network on random pictures, to time its gradient: they cost what real ones do."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from suite.spec import seed
from suite.training.build import make_network
from suite.training.flat import FlatModule

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
