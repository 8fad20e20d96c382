"""What all tests share: the ``--slow`` switch, skips that give their reason, the papers' data and a tiny ImageNet."""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from suite.runner.gc_tuning import search_rarely, spare_imports

settings.register_profile("suite", deadline=None)  # a busy machine is no failure
settings.load_profile("suite")

search_rarely()  # until all tests are imported
pytest_plugins = ["suite.commands.pytest_plugin"]

REQUIRABLE = ("cluster", "data", "gpu")  # markers of tests that not every machine can run
CHECKOUT = Path(__file__).resolve().parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well")
    parser.addoption(
        "--accept-pictures", action="store_true", help="accept the structure of all figures as drawn now"
    )
    parser.addoption(
        "--require",
        type=_requirements,
        default=frozenset(),
        metavar="NAMES",
        help=f"fail instead of skipping where these are missing: any of {','.join(REQUIRABLE)}",
    )


def _requirements(text: str) -> frozenset[str]:
    names = frozenset(text.split(","))
    if unknown := names - set(REQUIRABLE):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: choose from {', '.join(REQUIRABLE)}")
    return names


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip of what ``--require`` names is a failure; tests left out for being slow are not missing anything."""
    report = yield
    needed = item.config.getoption("--require") & {marker.name for marker in item.iter_markers()}
    if report.skipped and needed and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if "slow: give --slow" not in reason:
            report.outcome, report.longrepr = "failed", f"required by --require {','.join(sorted(needed))}: {reason}"
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    """What calls the command line as a user does starts a process."""
    if "started" in getattr(item, "fixturenames", ()):
        item.add_marker("processes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # What measures all stored runs comes first: where several processes share the tests, one of them makes the
    # beginning, and what the others take from it comes from its end. So hardly any other process measures again.
    items.sort(key=lambda item: not any(item.get_closest_marker(name) for name in ("evidence", "journeys")))
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: give --slow to run it"))
    if to_compile := [item for item in items if item.get_closest_marker("compiler")]:
        from suite.training.machine_code import NativeError, compiler

        try:
            compiler()
        except NativeError as error:
            for item in to_compile:
                item.add_marker(pytest.mark.skip(reason=str(error)))
    if on_gpu := [item for item in items if item.get_closest_marker("gpu")]:
        import torch

        if not torch.cuda.is_available():
            for item in on_gpu:
                item.add_marker(pytest.mark.skip(reason="needs CUDA, and torch finds no usable device here"))


def pytest_collection_finish() -> None:
    spare_imports("tests")


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
