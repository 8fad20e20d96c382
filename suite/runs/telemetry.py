"""The state of the machine beside a timing: GPU clocks, power, temperature, throttling, memory; CPU and load.

    with Watch("cuda") as watch:
        ...what is timed...
    watch.seen()["gpu"]["clock_mhz"]  # {"low": ..., "median": ..., "high": ...}

A thread looks every ``PERIOD`` seconds, and once at each end. What cannot be read is left out, and without a GPU
``gpu`` is empty and ``gpu_absent`` says why. Nothing here imports torch.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Any

from suite.runs.background import every

PERIOD = 0.5  # seconds; a look takes well under a millisecond of one core

Look = Callable[[], Mapping[str, float | frozenset[str]]]


class Absent(Exception):
    """There is no GPU to look at; the message says why."""


class Gpu:
    """The card that CUDA calls the first, through NVML. Raises Absent when there is no NVML, no driver or no card."""

    def __init__(self) -> None:
        try:
            import pynvml as nvml
        except ImportError as error:
            raise Absent(f"the package nvidia-ml-py is not installed ({error})") from error
        self.nvml = nvml
        try:
            nvml.nvmlInit()
            first = first_visible()
            by_place = isinstance(first, int)
            self.handle = (nvml.nvmlDeviceGetHandleByIndex if by_place else nvml.nvmlDeviceGetHandleByUUID)(first)
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


def first_visible() -> int | str:
    """The first card by CUDA's count, as NVML finds it: its UUID, or its place among all.

    NVML counts every card of the machine by its slot; CUDA only the visible ones, the fastest first. torch knows the
    card's UUID where it is loaded; before, only ``CUDA_VISIBLE_DEVICES`` tells.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    return int(named) if named.isdecimal() else named or 0


class Host:
    """The machine's processors and this process."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None

    def look(self) -> dict[str, float | frozenset[str]]:
        """Processor frequency (MHz), load average of one minute, and this process's resident memory (bytes).

        From the second look on also the share of processor time since the last that other virtual machines of the
        same host took from this one (percent), where the kernel counts it: the cause of most slow spells on one.
        """
        import psutil

        found: dict[str, float | frozenset[str]] = {}
        with suppress(OSError, psutil.Error, NotImplementedError):
            if frequency := psutil.cpu_freq():
                found["frequency_mhz"] = frequency.current
        with suppress(OSError, AttributeError):
            found["load_average"] = os.getloadavg()[0]
        with suppress(psutil.Error):
            found["resident_bytes"] = psutil.Process().memory_info().rss
        with suppress(OSError, psutil.Error, AttributeError):
            times = psutil.cpu_times()
            before, self._before = self._before, (times.steal, sum(times))
            if before is not None and sum(times) > before[1]:
                found["stolen_percent"] = 100 * (times.steal - before[0]) / (sum(times) - before[1])
        return found


class Watch:
    """Looks at the machine now, every ``period`` seconds in a thread, and when asked. Use as a context manager.

    ``device`` "cuda" looks at the first card too.
    """

    def __init__(self, device: str = "cpu", period: float = PERIOD):
        self.period, self.about = period, {}
        self.sources: dict[str, Look] = {"cpu": Host().look}
        if device != "cuda":
            self.about = {"gpu": {}, "gpu_absent": f"timed on device {device}"}
        else:
            try:
                card = Gpu()
            except Absent as absent:
                self.about = {"gpu": {}, "gpu_absent": str(absent)}
            else:
                self.sources["gpu"] = card.look
                self.about = {"gpu_name": card.name}
        self.looks: dict[str, list[Mapping[str, float | frozenset[str]]]] = {name: [] for name in self.sources}
        self.lock = threading.Lock()
        self._looking = ExitStack()

    def __enter__(self) -> Watch:
        self.look()
        self._looking.enter_context(every(self.period, self.look, "telemetry"))
        return self

    def __exit__(self, *error: object) -> None:
        self._looking.close()

    def look(self) -> None:
        """Read every source once."""
        with self.lock:
            for name, source in self.sources.items():
                self.looks[name].append(source())

    def seen(self) -> dict[str, Any]:
        """After one more look: of each source the number of looks, and of each reading its low, median and high."""
        self.look()
        with self.lock:
            return self.about | {name: _summary(looks) for name, looks in self.looks.items()}


def _summary(looks: list[Mapping[str, float | frozenset[str]]]) -> dict[str, Any]:
    found: dict[str, Any] = {"looks": len(looks)}
    for reading in dict.fromkeys(name for look in looks for name in look):
        values = [look[reading] for look in looks if reading in look]
        named = [value for value in values if isinstance(value, frozenset)]
        if named:
            found[reading] = sorted(frozenset[str]().union(*named))
        else:
            numbers = [value for value in values if not isinstance(value, frozenset)]
            found[reading] = {"low": min(numbers), "median": statistics.median(numbers), "high": max(numbers)}
    return found
