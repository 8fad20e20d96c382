"""A checkpoint as a file: its digest, then a safetensors document whose header holds plain values. No torch here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from suite.files import twice_if_stale

NAME = "checkpoint"
DIGEST = 32  # bytes of the SHA-256 of what follows


class DamagedCheckpoint(ValueError):
    """A checkpoint that was read and does not verify."""


class Content(NamedTuple):
    """A verified checkpoint that is not yet made into tensors."""

    plain: dict[str, Any]  # the shape of the algorithm's state
    values: dict[str, Any]
    document: bytes  # safetensors


def read(folder: Path) -> Content | None:
    """The last checkpoint in a folder, or None where there is none.

    Raises:
        DamagedCheckpoint: It does not verify.
        OSError: It cannot be read now, which says nothing of what it holds.
    """
    try:
        content = twice_if_stale((folder / NAME).read_bytes)
    except FileNotFoundError:
        return None
    except IsADirectoryError as error:
        raise DamagedCheckpoint(f"{folder / NAME} is no file") from error
    digest, document = content[:DIGEST], content[DIGEST:]
    if hashlib.sha256(document).digest() != digest:
        raise DamagedCheckpoint(f"{folder / NAME} does not match its digest")
    length = int.from_bytes(document[:8], "little")
    meta = json.loads(document[8 : 8 + length])["__metadata__"]
    return Content(json.loads(meta["plain"]), json.loads(meta["values"]), document)
