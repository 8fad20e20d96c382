"""What all tests share: the ``--slow`` switch, and skips that give their reason."""

from __future__ import annotations

import argparse
from collections.abc import Generator

import pytest
from hypothesis import settings

from suite.runner.gc_tuning import search_rarely, spare_imports

settings.register_profile("suite", deadline=None)  # a busy machine is no failure
settings.load_profile("suite")

search_rarely()  # until all tests are imported
pytest_plugins = ["suite.commands.pytest_plugin"]

REQUIRABLE = ("cluster", "data", "gpu")  # markers of tests that not every machine can run


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
