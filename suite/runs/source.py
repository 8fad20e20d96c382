"""The digest of the source that computes runs: a run under way goes on by equal source only.

It covers every Python and C++ file of the harness, the reference implementations and the papers' packages, but for
what only reads stored runs. It is evidence of sameness and not of difference: an edit of a comment moves it too.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from suite.runs.environment import ROOT

PACKAGES = dict.fromkeys(("suite", "reference_impls", "paper_figures"), ROOT)  # package -> folder that holds it
KINDS = {".py", ".cpp", ".h"}
READERS = ("suite/cli", "suite/commands", "suite/report")  # rooms that no run passes through
DIGITS = 16  # hex digits of the digest


def include(package: str, folder: Path) -> None:
    """Let another package count, which lies in ``folder``: that of a paper from elsewhere."""
    PACKAGES.setdefault(package, folder)


def digest() -> str:
    """The digest of the files as they lie on disk when it is first asked for."""
    return _digest(tuple(sorted(PACKAGES.items())))


@cache
def _digest(packages: tuple[tuple[str, Path], ...]) -> str:
    found = hashlib.sha256()
    for package, folder in packages:
        for path in sorted((folder / package).rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.suffix in KINDS and not name.startswith(READERS):
                found.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:DIGITS]
