"""Decoding of single pictures, in worker processes.

torchvision decodes and torch resizes a JPEG in 0.55 of Pillow's time (500x375 to 256x256, one thread), and the pixels
differ from Pillow's by one level at most, in one of five hundred. Pillow takes what torchvision does not read alike:
other formats, CMYK, files without their end, and pictures that Pillow can decode at a fraction of their size.

torchvision announces since 0.29 that its decoder will move to another package; until it is gone it is used, and
afterwards, as where torchvision is not installed, Pillow takes all pictures.
"""

from __future__ import annotations

import io
import warnings
from functools import cache

import numpy as np
from PIL import Image

from suite.data.catalogue import DataError

MOVING = "The image decoding and encoding capabilities of TorchVision are deprecated"
END = b"\xff\xd9"  # the last marker of a JPEG; torchvision shows what there is of a file that lacks it


@cache
def decoder() -> str:
    """Who decodes most JPEGs here: "torchvision" or "pillow"."""
    try:
        from torchvision.io import decode_jpeg  # noqa: F401
    except ImportError:
        return "pillow"
    return "torchvision"


def one_thread() -> None:
    """Begin a worker process: there is one per core, so each computes alone."""
    if decoder() == "torchvision":
        import torch

        torch.set_num_threads(1)


def decode_resized(pictures: list[tuple[str, bytes]], side: int) -> np.ndarray:
    """uint8 [n, 3, side, side] of (where, encoded picture): squashed to a square as Caffe's ImageNet is.

    JPEGs of twice ``side`` and more are decoded at the smallest of the codec's scales (1/1, 1/2, 1/4, 1/8) that is
    no smaller than ``side``; all are resized bilinearly with antialiasing. Grey and CMYK pictures become RGB.

    Raises:
        DataError: a picture cannot be decoded; the message begins with its ``where``.
    """
    pixels = np.empty((len(pictures), 3, side, side), np.uint8)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", MOVING, DeprecationWarning)
        for row, (where, content) in enumerate(pictures):
            try:
                with Image.open(io.BytesIO(content)) as image:
                    suits = _suits(image, content, side)
                    pixels[row] = _by_torchvision(content, side) if suits else _by_pillow(image, side)
            except (OSError, ValueError, SyntaxError, RuntimeError) as error:
                raise DataError(f"{where} cannot be decoded ({error}); copy the file again") from error
    return pixels


def _suits(image: Image.Image, content: bytes, side: int) -> bool:
    return (
        decoder() == "torchvision"
        and image.format == "JPEG"
        and image.mode in ("L", "RGB")
        and min(image.size) < 2 * side
        and content.rstrip(b"\0").endswith(END)
    )


def _by_torchvision(content: bytes, side: int) -> np.ndarray:
    import torch
    from torch.nn.functional import interpolate
    from torchvision.io import ImageReadMode, decode_jpeg

    encoded = torch.frombuffer(bytearray(content), dtype=torch.uint8)  # a copy: torch wants to own what it reads
    decoded = decode_jpeg(encoded, mode=ImageReadMode.RGB)
    return interpolate(decoded[None], (side, side), mode="bilinear", antialias=True)[0].numpy()


def _by_pillow(image: Image.Image, side: int) -> np.ndarray:
    image.draft("RGB", (side, side))
    resized = image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(resized).transpose(2, 0, 1)
