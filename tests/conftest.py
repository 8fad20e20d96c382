"""Data that tests of several rooms read: the papers' data sets, and a tiny ImageNet."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the papers' data sets; skips the test where there is none."""
    named = os.environ.get("SGD_SUITE_DATA")
    root = Path(named) if named else CHECKOUT.parent / "shared" / "data"
    if not root.is_dir():
        pytest.skip(f"no data sets at {root}: name their folder in SGD_SUITE_DATA")
    return root


@pytest.fixture(scope="session")
def data_of(data_root: Path) -> Callable[[str], Path]:
    """The same folder for a data set by name; skips the test where it is not there."""
    from suite.data.catalogue import available

    def root(name: str) -> Path:
        here, reason = available(name, data_root)
        if not here:
            pytest.skip(reason)
        return data_root

    return root


@pytest.fixture
def small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let settings name the tests' own networks: ``tiny_bn`` and ``linear``."""
    import small_networks

    from suite.models.registry import CLASSIFIERS

    for network in (small_networks.tiny_bn, small_networks.linear):
        monkeypatch.setitem(CLASSIFIERS, network.__name__, network)


@pytest.fixture
def small_imagenet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a folder of ImageNet's layout: 24 training and 8 test pictures of 3 classes, seen by colour."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    from suite.data import catalogue

    sizes = {"train": 24, "validation": 8}
    folder = tmp_path / "ILSVRC" / "imagenet-1k" / "data"
    folder.mkdir(parents=True)
    for split, rows in sizes.items():
        pictures = []
        for row in range(rows):
            pixels = np.random.default_rng(row).integers(0, 60, (40, 40, 3))
            pixels[..., row % 3] += 150
            stream = io.BytesIO()
            Image.fromarray(pixels.astype(np.uint8)).save(stream, "JPEG")
            pictures.append({"bytes": stream.getvalue(), "path": f"{row}.JPEG"})
        table = pa.table({"image": pictures, "label": [row % 3 for row in range(rows)]})
        pq.write_table(table, folder / f"{split}-00000-of-00001.parquet")
    small = replace(catalogue.DATASETS["imagenet"], sizes=sizes, classes=3)
    monkeypatch.setitem(catalogue.DATASETS, "imagenet", small)
    return tmp_path
