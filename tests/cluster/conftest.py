"""Where the cluster tests find the toy paper, why they are skipped, and the table of cases that they leave."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "harness"))

Row = tuple[str, int, int, int, int]
ROWS = pytest.StashKey[list[Row]]()
HEAD = """\
# Runs on a cluster, and what was done to it

Written by `nox -s cluster`: a real Slurm of two nodes on one machine. An attempt is a run's computation begun; lost
runs are not stored at the end, doubled ones were computed to their end more than once.

| what was done | runs | attempts | lost | doubled |
|---|--:|--:|--:|--:|
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=Path, default=None, metavar="F", help="write the table of cluster cases")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ROWS] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from two_nodes import missing

    here = [item for item in items if item.get_closest_marker("cluster")]
    if here and (why := missing()):
        for item in here:
            item.add_marker(pytest.mark.skip(reason=f"no cluster here: {why}"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    path, rows = session.config.getoption("--cases", None), session.config.stash.get(ROWS, [])
    if path and rows:
        path.write_text(HEAD + "".join("| " + " | ".join(map(str, row)) + " |\n" for row in rows))


@pytest.fixture
def rows(request: pytest.FixtureRequest) -> list[Row]:
    """The table of cases, to be added to."""
    return request.config.stash[ROWS]
