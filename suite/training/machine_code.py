"""C++ of this package as machine code: compiled at first use by the compiler that is there, and kept.

A *build* is a digest of source, flags, compiler, processor and what was defined; the library lies under it in the
user's cache. Equal builds give equal bits on the same processor. Whoever loads one checks it before use.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch

from suite.data.catalogue import cache_folder
from suite.runs.environment import cpu_name

FLAGS = (
    "-O3",
    "-march=native",
    "-std=gnu++17",
    "-shared",
    "-fPIC",
    "-pthread",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
)
COMPILE_SECONDS = 300
NUMBERS = {torch.float32: "float", torch.float64: "double"}  # what a source calls its numbers

Library = TypeVar("Library")


class NativeError(ValueError):
    """Why there is no machine code here, in one sentence."""


@cache
def compiler() -> tuple[str, str]:
    """The C++ compiler (``$CXX``, else c++, g++ or clang++) and the first line that it says of itself.

    Raises NativeError where there is none.
    """
    for name in filter(None, (os.environ.get("CXX"), "c++", "g++", "clang++")):
        if found := shutil.which(name):
            try:
                said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=20, check=True)
            except (OSError, subprocess.SubprocessError):
                continue
            return found, said.stdout.partition("\n")[0]
    raise NativeError("there is no C++ compiler here")


@dataclass(frozen=True)
class Source:
    """A C++ file with the headers that it includes, and how it is compiled."""

    file: Path
    headers: tuple[Path, ...] = ()
    flags: tuple[str, ...] = FLAGS

    def toolchain(self) -> str:
        """What every build of it here depends on besides its definitions, as a digest; empty without a compiler."""
        try:
            _, said = compiler()
        except NativeError:
            return ""
        texts = [path.read_text() for path in (self.file, *self.headers)]
        return hashlib.sha256("\n".join((*texts, *self.flags, said, cpu_name())).encode()).hexdigest()

    def build(self, definitions: Mapping[str, str]) -> str:
        """The name of what definitions make of it here."""
        return hashlib.sha256("\n".join((self.toolchain(), *definitions.values())).encode()).hexdigest()[:20]

    def library(self, definitions: Mapping[str, str], load: Callable[[Path, str], Library]) -> Library:
        """What ``load`` makes of the library and its build; compiled unless it is kept already.

        ``load`` raises OSError or AttributeError for a damaged one. Raises NativeError where it cannot be made.
        """
        found, _ = compiler()
        build = self.build(definitions)
        path = cache_folder() / "native" / f"{build}.so"
        if path.exists():
            with contextlib.suppress(OSError, AttributeError):  # damaged: compiled again
                return load(path, build)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            staging = path.with_suffix(f".{secrets.token_hex(4)}")
            defined = [f"-D{name}={value}" for name, value in definitions.items()]
            command = [found, *self.flags, *defined, str(self.file), "-o", str(staging)]
            subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=True)
            with open(staging, "rb") as written:
                os.fsync(written.fileno())
            os.replace(staging, path)
            return load(path, build)
        except (OSError, AttributeError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", "") or str(error)
            raise NativeError(f"{found} cannot compile it: {said.strip().partition(chr(10))[0]}") from error
