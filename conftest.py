"""What all tests share: the ``--slow`` switch, skips that give their reason, and the root of the papers' data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["paper_figures.pytest_plugin"]

CHECKOUT = Path(__file__).resolve().parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: give --slow to run it"))
    if on_gpu := [item for item in items if item.get_closest_marker("gpu")]:
        import torch

        if not torch.cuda.is_available():
            for item in on_gpu:
                item.add_marker(pytest.mark.skip(reason="needs CUDA, and torch finds no usable device here"))


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the papers' data sets; skips the test where there is none."""
    named = os.environ.get("SGD_SUITE_DATA")
    root = Path(named) if named else CHECKOUT.parent / "shared" / "data"
    if not root.is_dir():
        pytest.skip(f"no data sets at {root}: name their folder in SGD_SUITE_DATA")
    return root
