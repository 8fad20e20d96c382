"""C++ of this package as machine code: compiled at first use by the compiler that is there, and kept.

A *build* is a digest of source, flags, compiler, processor and what was defined; the library lies under it in the
user's cache, in a folder of this user alone, with its SHA-256 beside it, which is checked before it is loaded. Equal
builds give equal bits on the same processor. Whoever loads one compares its results before use.
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
from suite.files import only_ours, private_folder, write_whole
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
CURE = "name a cache folder of your own with SGD_SUITE_CACHE"
DIGEST = ".sha256"  # suffix of the file that holds a library's
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

        A kept one is loaded only where it is what was compiled, so that no other code ever runs. Raises NativeError
        where there is none and it cannot be made.
        """
        build = self.build(definitions)
        try:
            path = private_folder(cache_folder() / "native", CURE) / f"{build}.so"
            if _as_compiled(path):
                with contextlib.suppress(OSError, AttributeError):  # made where the system's libraries are others
                    return load(path, build)
            self._compile(definitions, path)
            return load(path, build)
        except (OSError, AttributeError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", "") or str(error)
            raise NativeError(f"{compiler()[0]} cannot compile it: {said.strip().partition(chr(10))[0]}") from error

    def _compile(self, definitions: Mapping[str, str], path: Path) -> None:
        """Make a library and its digest: both whole or, for a moment between, not of each other, which is seen."""
        staging = path.with_suffix(f".{secrets.token_hex(4)}")
        defined = [f"-D{name}={value}" for name, value in definitions.items()]
        command = [compiler()[0], *self.flags, *defined, str(self.file), "-o", str(staging)]
        subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=True)
        staging.chmod(0o700)  # whatever this user's files are open to
        with open(staging, "rb") as written:
            os.fsync(written.fileno())
        write_whole(path.with_suffix(DIGEST), hashlib.sha256(staging.read_bytes()).hexdigest().encode())
        os.replace(staging, path)


def _as_compiled(path: Path) -> bool:
    """Whether a library is there with its digest, and nobody else could have changed it."""
    try:
        if not only_ours(path):
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == path.with_suffix(DIGEST).read_text()
    except (OSError, ValueError):
        return False
