"""Decoding of single pictures in worker processes; imports no torch, so that a worker starts quickly."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from suite.data.catalogue import DataError


def decode_resized(pictures: list[tuple[str, bytes]], side: int) -> np.ndarray:
    """uint8 [n, 3, side, side] of (where, encoded picture): squashed to a square as Caffe's ImageNet is.

    JPEGs are decoded at the smallest of the codec's scales (1/1, 1/2, 1/4, 1/8) that is no smaller than
    ``side``, then resized bilinearly with antialiasing. Grey and CMYK pictures become RGB.

    Raises:
        DataError: a picture cannot be decoded; the message begins with its ``where``.
    """
    pixels = np.empty((len(pictures), 3, side, side), np.uint8)
    for row, (where, content) in enumerate(pictures):
        try:
            with Image.open(io.BytesIO(content)) as image:
                image.draft("RGB", (side, side))
                resized = image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
        except (OSError, ValueError, SyntaxError) as error:
            raise DataError(f"{where} cannot be decoded ({error}); copy the file again") from error
        pixels[row] = np.asarray(resized).transpose(2, 0, 1)
    return pixels
