"""Telemetry: a scripted card is read in full, and its absence is a reason, not an error."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import namedtuple
from types import SimpleNamespace

import pytest

from suite.runs import telemetry
from suite.runs.periodic import every
from suite.runs.telemetry import Absent, Gpu, Host, Watch, watch


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


def test_a_card_is_read_at_both_ends_and_in_between():
    with Watch("cuda", period=1e6, nvml=Card()) as watching:
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


@pytest.mark.parametrize(
    ("visible", "name"), [("", "card 0"), ("2,0", "card 2"), ("GPU-1f2e,3", "card GPU-1f2e"), (" 1 ", "card 1")]
)
def test_the_card_is_the_first_that_cuda_sees(monkeypatch, visible, name):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert Gpu(nvml=Card()).handle == name
    cards = [SimpleNamespace(uuid="aa-bb"), SimpleNamespace(uuid="cc-dd")]
    cuda = SimpleNamespace(is_available=lambda: bool(cards), get_device_properties=cards.__getitem__)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert Gpu(nvml=Card()).handle == "card GPU-aa-bb"
    cards.clear()
    assert Gpu(nvml=Card()).handle == name


def test_the_dictionary_is_filled_when_the_block_ends_even_by_an_error():
    with contextlib.suppress(KeyError), watch("cuda", nvml=Card()) as seen:
        assert seen == {}
        raise KeyError
    assert seen["gpu"]["looks"] >= 2
    assert seen["cpu"]["resident_bytes"]["high"] > 2**20


def test_a_thread_looks_in_between():
    with Watch(period=0.001) as watching:
        for _ in range(2000):
            if len(watching.looks["cpu"]) > 3:
                break
            time.sleep(0.005)
    assert len(watching.looks["cpu"]) > 3
    assert "telemetry" not in {thread.name for thread in threading.enumerate()}


def test_what_is_repeated_ends_with_the_block_and_never_outlives_the_process():
    """Also where the block fails."""
    called, again = [], threading.Semaphore(0)
    with contextlib.suppress(KeyError), every(1e-3, lambda: called.append(again.release()), "repeated"):
        (thread,) = (thread for thread in threading.enumerate() if thread.name == "repeated")
        assert thread.daemon
        assert again.acquire(timeout=60)
        assert again.acquire(timeout=60)
        raise KeyError
    assert not thread.is_alive()
    with every(1e6, called.clear, "waiting"):
        pass
    assert called


def test_a_reading_that_the_card_lacks_is_left_out():
    found = Gpu(nvml=Card(broken="nvmlDeviceGetPowerUsage")).look()
    assert "power_watts" not in found
    assert found["clock_mhz"] == 1980


@pytest.mark.parametrize("broken", ["nvmlInit", "nvmlDeviceGetHandleByIndex"])
def test_without_a_card_the_reason_is_given(broken: str):
    with watch("cuda", nvml=Card(broken=broken)) as seen:
        pass
    assert seen["gpu"] == {}
    assert seen["gpu_absent"] == "NVML: Not Supported"
    assert seen["cpu"]["looks"] == 2


def test_without_the_package_the_reason_names_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(Absent, match="nvidia-ml-py is not installed"):
        Gpu()


def test_off_the_gpu_nothing_asks_for_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(telemetry, "Gpu", lambda *a, **k: pytest.fail("looked for a card"))
    with watch("cpu") as seen:
        pass
    assert (seen["gpu"], seen["gpu_absent"]) == ({}, "timed on device cpu")


def test_time_taken_by_other_machines_is_a_share_of_what_passed(monkeypatch):
    Times = namedtuple("Times", "user idle steal")
    passed = iter([Times(10.0, 80.0, 10.0), Times(12.0, 84.0, 14.0), Times(12.0, 84.0, 14.0)])
    monkeypatch.setattr("psutil.cpu_times", lambda: next(passed))
    host = Host()
    assert "stolen_percent" not in host.look()
    assert host.look()["stolen_percent"] == pytest.approx(40.0)
    assert "stolen_percent" not in host.look(), "no time has passed"


def test_a_kernel_that_does_not_count_it_is_no_reason_to_fail(monkeypatch):
    Times = namedtuple("Times", "user idle")
    monkeypatch.setattr("psutil.cpu_times", lambda: Times(1.0, 2.0))
    host = Host()
    assert "stolen_percent" not in host.look() | host.look()


def test_all_reasons_for_which_a_card_was_held_back_are_named_in_order(monkeypatch: pytest.MonkeyPatch):
    card = Card()
    names = ("SwThermalSlowdown", "HwPowerBrakeSlowdown", "DisplayClockSetting", "SyncBoost", "HwThermalSlowdown")
    for place, name in enumerate(names):
        setattr(card, f"nvmlClocksThrottleReason{name}", 16 << place)
    monkeypatch.setattr(card, "nvmlDeviceGetCurrentClocksThrottleReasons", lambda handle: 0xFFF, raising=False)
    with watch("cuda", nvml=card) as seen:
        pass
    assert seen["gpu"]["throttled"] == sorted([*names, "SwPowerCap", "HwSlowdown"])


def test_the_load_is_that_of_the_last_minute(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.getloadavg", lambda: (1.5, 15.0, 150.0))
    assert Host().look()["load_average"] == 1.5
