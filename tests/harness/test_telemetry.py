"""Telemetry: a scripted card is read in full, and its absence is a reason, not an error."""

from __future__ import annotations

import sys
from collections import namedtuple
from types import SimpleNamespace

import pytest

from suite.runs.telemetry import Absent, Gpu, Host, Watch


class NVMLError(Exception):
    pass


class Card:
    """What ``pynvml`` offers, with a script of power readings."""

    NVMLError = NVMLError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, watts: tuple[float, ...] = (100.0, 300.0, 200.0), broken: str = ""):
        self.watts, self.broken, self.looks = watts, broken, 0
        self.nvmlClocksThrottleReasonGpuIdle = 1
        self.nvmlClocksThrottleReasonSwPowerCap = 4
        self.nvmlClocksThrottleReasonHwSlowdown = 8
        self.nvmlClocksThrottleReasonNone = 0

    def __getattr__(self, name: str):
        answers = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetHandleByIndex": lambda index: f"card {index}",
            "nvmlDeviceGetHandleByUUID": lambda uuid: f"card {uuid}",
            "nvmlDeviceGetName": lambda handle: f"A {handle}",
            "nvmlDeviceGetClockInfo": lambda handle, which: {1: 1980, 2: 3201}[which],
            "nvmlDeviceGetPowerUsage": self.power,
            "nvmlDeviceGetTemperature": lambda handle, which: 41,
            "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=2**30),
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=97),
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: 1 | (4 if self.looks == 2 else 0),
        }
        if name not in answers:
            raise AttributeError(name)
        if name == self.broken:
            return self.fail
        return answers[name]

    def fail(self, *arguments: object):
        raise NVMLError("Not Supported")

    def power(self, handle: str) -> float:
        self.looks += 1
        return 1000 * self.watts[min(self.looks, len(self.watts)) - 1]


def test_a_card_is_read_at_both_ends_and_in_between(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", Card())
    with Watch("cuda", period=1e6) as watching:
        watching.look()
        seen = watching.seen()
    assert seen["gpu_name"] == "A card 0"
    gpu = seen["gpu"]
    assert gpu["looks"] == 3
    assert gpu["power_watts"] == {"low": 100.0, "median": 200.0, "high": 300.0}
    assert gpu["clock_mhz"]["median"] == 1980
    assert gpu["memory_clock_mhz"]["median"] == 3201
    assert gpu["temperature_celsius"]["high"] == 41
    assert gpu["memory_bytes"]["high"] == 2**30
    assert gpu["throttled"] == ["SwPowerCap"]  # once, and idling is no throttling
    assert "gpu_absent" not in seen


@pytest.mark.parametrize("broken", ["nvmlInit", "nvmlDeviceGetHandleByIndex"])
def test_without_a_card_the_reason_is_given(broken: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", Card(broken=broken))
    with Watch("cuda") as watching:
        seen = watching.seen()
    assert seen["gpu"] == {}
    assert seen["gpu_absent"] == "NVML: Not Supported"
    assert seen["cpu"]["looks"] == 2


def test_without_the_package_the_reason_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(Absent, match="nvidia-ml-py is not installed"):
        Gpu()


def test_time_taken_by_other_machines_is_a_share_of_what_passed(monkeypatch):
    Times = namedtuple("Times", "user idle steal")
    passed = iter([Times(10.0, 80.0, 10.0), Times(12.0, 84.0, 14.0), Times(12.0, 84.0, 14.0)])
    monkeypatch.setattr("psutil.cpu_times", lambda: next(passed))
    host = Host()
    assert "stolen_percent" not in host.look()
    assert host.look()["stolen_percent"] == pytest.approx(40.0)
    assert "stolen_percent" not in host.look(), "no time has passed"


def test_all_reasons_for_which_a_card_was_held_back_are_named_in_order(monkeypatch: pytest.MonkeyPatch):
    card = Card()
    names = ("SwThermalSlowdown", "HwPowerBrakeSlowdown", "DisplayClockSetting", "SyncBoost", "HwThermalSlowdown")
    for place, name in enumerate(names):
        setattr(card, f"nvmlClocksThrottleReason{name}", 16 << place)
    monkeypatch.setattr(card, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda handle: 0xFFF, raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", card)
    with Watch("cuda") as watching:
        seen = watching.seen()
    assert seen["gpu"]["throttled"] == sorted([*names, "SwPowerCap", "HwSlowdown"])


def test_the_load_is_that_of_the_last_minute(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1.5, 15.0, 150.0))
    assert Host().look()["load_average"] == 1.5
