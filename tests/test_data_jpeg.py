"""Single encoded pictures: who decodes which, and what becomes of it."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from PIL import Image

from suite.data import imagenet as decoding
from suite.data.catalogue import DataError

SIDE = 16

with_torchvision = pytest.mark.skipif(
    decoding.decoder() == "pillow", reason="torchvision is not installed or decodes no longer"
)


def encoded(mode: str, width: int, height: int, kind: str = "JPEG") -> bytes:
    """A picture of noise, in which no pixel is like its neighbour."""
    bands = len(Image.new(mode, (1, 1)).getbands())
    pixels = np.random.default_rng(bands).integers(0, 256, (height, width, bands), dtype=np.uint8)
    stream = io.BytesIO()
    Image.frombytes(mode, (width, height), pixels.tobytes()).save(stream, kind)
    return stream.getvalue()


@pytest.fixture
def by_torchvision(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes in bytes of the pictures that torchvision decodes from here on."""
    from torchvision import io as theirs

    seen: list[int] = []
    decode = theirs.decode_jpeg

    def watched(content: torch.Tensor, **options: object) -> torch.Tensor:
        seen.append(len(content))
        return decode(content, **options)

    monkeypatch.setattr(theirs, "decode_jpeg", watched)
    return seen


@with_torchvision
@pytest.mark.parametrize(
    ("content", "taken"),
    [
        (encoded("RGB", 20, 24), True),
        (encoded("L", 20, 24), True),
        (encoded("RGB", 20, 24) + b"\0\0", True),
        (encoded("RGB", 31, 90), True),
        (encoded("RGB", 90, 31), True),
        (encoded("RGB", 32, 90), False),  # Pillow decodes it at half its size
        (encoded("CMYK", 20, 24), False),
        (encoded("RGB", 20, 24, "PNG"), False),
    ],
)
def test_torchvision_decodes_what_it_reads_as_pillow_does(
    content: bytes, taken: bool, by_torchvision: list[int]
) -> None:
    pixels = decoding.decode_resized([("here", content)], SIDE)
    assert (pixels.shape, pixels.dtype) == ((1, 3, SIDE, SIDE), np.uint8)
    assert by_torchvision == [len(content)] * taken


@with_torchvision
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_pictures_are_those_that_pillow_decodes(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To one level in any pixel; a file without its end goes to Pillow, which refuses it."""
    content = encoded(mode, 30, 28)
    found = decoding.decode_resized([("here", content)], SIDE).astype(int)
    monkeypatch.setattr(decoding, "decoder", lambda: "pillow")
    assert abs(found - decoding.decode_resized([("here", content)], SIDE)).max() <= 1
    monkeypatch.undo()
    with pytest.raises(DataError, match="here cannot be decoded"):
        decoding.decode_resized([("here", content[:-40])], SIDE)


def test_a_large_picture_is_decoded_at_the_scale_that_fits() -> None:
    """At an eighth each block of the JPEG becomes one pixel; resized from its full size it would mix with others."""
    levels = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(levels.repeat(8, axis=0).repeat(8, axis=1)).save(stream, "JPEG", quality=95)
    (found,) = decoding.decode_resized([("here", stream.getvalue())], SIDE)
    assert abs(found.astype(int) - levels).max() <= 2
