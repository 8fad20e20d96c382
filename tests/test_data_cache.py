"""Decoded data on disk: decoded once, read as numbers alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from suite.data.cache import cached

MADE: list[str] = []


class Planted:
    """Unpickled it leaves a trace, as harmful code would."""

    def __reduce__(self) -> tuple[object, ...]:
        return (_made, ("unpickled",))


def _made(what: str) -> None:
    MADE.append(what)


def decode() -> tuple[np.ndarray, np.ndarray]:
    _made("decoded")
    return np.arange(8, dtype=np.uint8).reshape(2, 1, 2, 2), np.array([0, 1])


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    MADE.clear()


def test_a_split_is_decoded_once(tmp_path: Path):
    once, again = (cached(tmp_path, "key", decode) for _ in range(2))
    assert MADE == ["decoded"]
    assert again.checksum == once.checksum
    assert np.array_equal(again.inputs, decode()[0])


@pytest.mark.parametrize("part", ["inputs", "targets"])
def test_objects_in_place_of_numbers_are_not_unpickled(tmp_path: Path, part: str):
    before = cached(tmp_path, "key", decode).checksum
    np.save(tmp_path / f"key.{part}.npy", np.array([Planted()], dtype=object), allow_pickle=True)
    assert cached(tmp_path, "key", decode).checksum == before
    assert MADE == ["decoded", "decoded"]
