"""Readings below a folder that fail once, as those of a busy machine or a network's file system do."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PASSING = [errno.EIO, errno.ESTALE, errno.EACCES]


@dataclass
class Fault:
    """The ``at``-th reading below ``folder`` fails with an error's number, and the next ``times - 1`` as well."""

    folder: Path
    number: int
    at: int
    times: int = 1
    seen: int = 0

    @property
    def struck(self) -> bool:
        return self.seen >= self.at

    def look(self, path: Any) -> None:
        """One reading, of whatever kind."""
        if not str(path).startswith(str(self.folder)):
            return
        self.seen += 1
        if self.at <= self.seen < self.at + self.times:
            raise OSError(self.number, os.strerror(self.number), str(path))


class Stream:
    """An open file whose ``read`` is a reading of its own."""

    def __init__(self, stream: Any, path: Any, fault: Fault):
        self.stream, self.path, self.fault = stream, path, fault

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.close()

    def read(self) -> Any:
        self.fault.look(self.path)
        return self.stream.read()


@contextlib.contextmanager
def failing(folder: Path, number: int, at: int, times: int = 1) -> Iterator[Fault]:
    """Count the readings below a folder (its listing, and opening, reading and asking for files), and fail some."""
    fault = Fault(folder, number, at, times)

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *given: Any, **more: Any) -> Any:
            fault.look(path)
            return real(path, *given, **more)

        return call

    opened = io.open

    def open_file(path: Any, mode: str = "r", *given: Any, **more: Any) -> Any:
        if "r" not in mode:
            return opened(path, mode, *given, **more)
        fault.look(path)
        return Stream(opened(path, mode, *given, **more), path, fault)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", open_file)
        for name in ("scandir", "listdir", "lstat"):
            patch.setattr(os, name, watched(getattr(os, name)))
        yield fault
