"""The state of the machine beside a timing: GPU clocks, power, temperature, throttling, memory; CPU and load.

    with watch("cuda") as seen:
        ...what is timed...
    seen["gpu"]["clock_mhz"]  # {"low": ..., "median": ..., "high": ...}

A thread looks every ``PERIOD`` seconds, and once at each end. What cannot be read is left out, and without a GPU
``gpu`` is empty and ``gpu_absent`` says why. Nothing here imports torch.
"""

from __future__ import annotations

import os
import statistics
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

PERIOD = 0.5  # seconds; a look takes well under a millisecond of one core

Look = Callable[[], Mapping[str, float | frozenset[str]]]


class Absent(Exception):
    """There is no GPU to look at; the message says why."""


class Gpu:
    """One card through NVML. Raises Absent when there is no NVML, no driver or no card.

    ``nvml`` is the module ``pynvml``, or what stands for it.
    """

    def __init__(self, index: int = 0, nvml: Any = None):
        self.nvml = nvml = nvml or _pynvml()
        try:
            nvml.nvmlInit()
            self.handle = nvml.nvmlDeviceGetHandleByIndex(index)
            self.name = nvml.nvmlDeviceGetName(self.handle)
        except nvml.NVMLError as error:
            raise Absent(f"NVML: {error}") from error
        prefix = "nvmlClocksThrottleReason"
        skipped = {"None", "All", "GpuIdle", "ApplicationsClocksSetting", "UserDefinedClocks"}
        self.reasons = {
            name.removeprefix(prefix): value
            for name, value in vars(nvml).items()
            if name.startswith(prefix) and isinstance(value, int) and name.removeprefix(prefix) not in skipped
        }

    def look(self) -> dict[str, float | frozenset[str]]:
        """Clocks (MHz), power (W), temperature (degrees C), memory in use (bytes), and why clocks are held back."""
        nvml, handle = self.nvml, self.handle
        ways: dict[str, Callable[[], float | frozenset[str]]] = {
            "clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "power_watts": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "temperature_celsius": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            "memory_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            "utilisation_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "throttled": self.throttled,
        }
        found = {}
        for name, read in ways.items():
            with suppress(nvml.NVMLError):  # a card or a virtual machine need not offer every reading
                found[name] = read()
        return found

    def throttled(self) -> frozenset[str]:
        """Names of the reasons, other than idling, for which the card holds its clocks back."""
        bits = self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle)
        return frozenset(name for name, bit in self.reasons.items() if bits & bit)


def _pynvml() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise Absent(f"the package nvidia-ml-py is not installed ({error})") from error
    return pynvml


def look_at_host() -> dict[str, float | frozenset[str]]:
    """Processor frequency (MHz), load average of one minute, and this process's resident memory (bytes)."""
    import psutil

    found: dict[str, float | frozenset[str]] = {}
    with suppress(OSError, psutil.Error, NotImplementedError):
        if frequency := psutil.cpu_freq():
            found["frequency_mhz"] = frequency.current
    with suppress(OSError, AttributeError):
        found["load_average"] = os.getloadavg()[0]
    with suppress(psutil.Error):
        found["resident_bytes"] = psutil.Process().memory_info().rss
    return found


class Sampler:
    """Looks at each source now, every ``period`` seconds in a thread, and at the end."""

    def __init__(self, sources: Mapping[str, Look], period: float):
        self.sources, self.period = sources, period
        self.looks: dict[str, list[Mapping[str, float | frozenset[str]]]] = {name: [] for name in sources}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def look(self) -> None:
        for name, source in self.sources.items():
            self.looks[name].append(source())

    def _run(self) -> None:
        while not self.ended.wait(self.period):
            self.look()

    def start(self) -> None:
        self.look()
        self.thread.start()

    def stop(self) -> None:
        self.ended.set()
        self.thread.join()
        self.look()

    def summary(self) -> dict[str, Any]:
        """Per source the number of looks, and of each reading its low, median and high, or the names it gave."""
        return {name: _summary(looks) for name, looks in self.looks.items()}


def _summary(looks: list[Mapping[str, float | frozenset[str]]]) -> dict[str, Any]:
    found: dict[str, Any] = {"looks": len(looks)}
    for reading in dict.fromkeys(name for look in looks for name in look):
        values = [look[reading] for look in looks if reading in look]
        if isinstance(values[0], frozenset):
            found[reading] = sorted(set().union(*values))  # type: ignore[arg-type]
        else:
            found[reading] = {"low": min(values), "median": statistics.median(values), "high": max(values)}  # type: ignore[type-var]
    return found


@contextmanager
def watch(device: str = "cpu", period: float = PERIOD, nvml: Any = None) -> Iterator[dict[str, Any]]:
    """Watch the machine while the block runs; the dictionary it gives is filled when the block ends.

    ``cpu`` and ``gpu`` map each reading to its low, median and high; ``throttled`` lists reasons. Off CUDA, or
    where the card cannot be read, ``gpu`` is ``{}`` and ``gpu_absent`` the reason.
    """
    seen: dict[str, Any] = {"gpu": {}}
    sources: dict[str, Look] = {"cpu": look_at_host}
    if device == "cuda":
        try:
            card = Gpu(nvml=nvml)
        except Absent as absent:
            seen["gpu_absent"] = str(absent)
        else:
            sources["gpu"] = card.look
            seen["gpu_name"] = card.name
    else:
        seen["gpu_absent"] = f"timed on device {device}"
    sampler = Sampler(sources, period)
    sampler.start()
    try:
        yield seen
    finally:
        sampler.stop()
        seen.update(sampler.summary())
