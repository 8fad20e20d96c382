"""What produced a run: versions, device, CPU, threads, determinism, revision, and a digest of the source.

A run under way goes on by equal source only. The digest covers every Python and C++ file of the harness, the
reference implementations and the papers' packages, but for what only reads stored runs. It is evidence of sameness
and not of difference: an edit of a comment moves it too.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "torch",
    "torchvision",
    "pillow",
    "numpy",
    "scipy",
    "pandas",
    "datasets",
    "simpy",
    "sentencepiece",
    "sacrebleu",
)


@lru_cache
def revision() -> dict[str, Any]:
    """Git revision and whether code that computes runs had uncommitted changes; ``unknown`` outside the checkout."""
    try:
        ask = lambda *words: subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, timeout=20, check=True
        ).stdout.strip()
        if Path(ask("rev-parse", "--show-toplevel")).resolve() == ROOT:
            packages = [package for package, folder in CODE_PACKAGES.items() if folder == ROOT]
            code = [f"{package}/*{kind}" for package in packages for kind in sorted(KINDS)]
            changed = ask("status", "--porcelain", "-uall", "--", *code, *(f":(exclude){room}" for room in READERS))
            return {"revision": ask("rev-parse", "HEAD"), "dirty": bool(changed)}
    except (OSError, subprocess.SubprocessError):
        pass
    return {"revision": "unknown", "dirty": None}


def cpu_name() -> str:
    """The processor's model name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """The host, without importing torch: processor, cores, memory (bytes), system, Python."""
    import psutil

    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def machine_class(device: str = "cpu") -> str:
    """What must be alike for speeds to be comparable, as a folder's name.

    The processor's model and cores; for ``cuda``, the card and the major version of its driver, and torch is
    imported to ask.
    """
    if device == "cuda":
        facts = device_facts(device)
        return slug(f"gpu {facts['name']} driver {facts['driver'].partition('.')[0]}")
    host = machine()
    return slug(f"cpu {host['cpu']} {host['cores']} cores")


def slug(text: str) -> str:
    """Lower-case letters and digits with hyphens between."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower().replace("(r)", " ").replace("(tm)", " ")).strip("-")


def versions() -> dict[str, str]:
    """Installed versions of the packages that numbers can depend on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def device_facts(device: str) -> dict[str, Any]:
    """Name, memory and driver of the device a run uses. Imports torch."""
    import torch

    if device != "cuda":
        return {"device": "cpu", "capability": torch.backends.cpu.get_cpu_capability()}
    properties = torch.cuda.get_device_properties(0)
    facts = {
        "device": "cuda",
        "name": properties.name,
        "memory_bytes": properties.total_memory,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }
    try:
        import pynvml

        pynvml.nvmlInit()
        facts["driver"] = pynvml.nvmlSystemGetDriverVersion()
    except Exception as error:  # NVML is optional: absence is recorded, not fatal
        facts["driver"] = f"unknown ({type(error).__name__})"
    return facts


def describe(execution: dict[str, Any], begun: Mapping[str, str]) -> dict[str, Any]:
    """Everything a run folder says about where it came from.

    ``execution`` was fixed before the run began; ``begun`` says when it did (UTC), and the
    digest of the source that computed it.
    """
    device = execution.get("device", "cpu")
    facts = device_facts(device) if "torch" in sys.modules else {"device": device}
    return {**provenance(), "device": facts, "execution": execution, **begun}


def provenance() -> dict[str, Any]:
    """The host, the versions of packages and the revision, without importing torch."""
    return {"machine": machine(), "versions": versions(), **revision()}


# package -> folder that holds it; the catalogue adds those of papers from elsewhere
CODE_PACKAGES = dict.fromkeys(("suite", "reference_impls", "paper_figures"), ROOT)
KINDS = {".py", ".cpp", ".h"}
READERS = ("suite/commands", "suite/report")  # rooms that no run passes through
CODE_DIGITS = 16  # hex digits of the digest


def code_digest() -> str:
    """The digest of the files as they lie on disk when it is first asked for."""
    return _code_digest(tuple(sorted(CODE_PACKAGES.items())))


@cache
def _code_digest(packages: tuple[tuple[str, Path], ...]) -> str:
    found = hashlib.sha256()
    for package, folder in packages:
        for path in sorted((folder / package).rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.suffix in KINDS and not name.startswith(READERS):
                found.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:CODE_DIGITS]
