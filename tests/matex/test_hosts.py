"""What runs over links and on hosts: methods, sleep, what is sent, and how both networks are timed."""

from __future__ import annotations

import itertools
import time

import pandas as pd
import pytest
import torch

from paper_figures.matex_agd import exchanges, settings
from paper_figures.matex_agd.exchanges import ASLEEP, asleep
from paper_figures.matex_agd.experiments import compute, link
from suite.communication import link as device_asleep
from suite.communication.link import PAYLOAD
from suite.cost_models import AllReduce, LayerTimes, NetworkTimes
from suite.experiment import Context
from suite.spec import RunSpec
from suite.training import numerics


def test_methods_over_the_link_are_those_that_are_read() -> None:
    assert (*link.METHODS, "PyTorch DDP") == exchanges.METHODS
    for name in exchanges.DELAYED:
        assert link.METHODS[name] == {"delay": int(name.split()[1])}
    for name in exchanges.LAYER_WISE:
        given = {"order": "backward", **link.METHODS[name]}  # the order that is taken where none is named
        assert given == {"layerwise": True, "order": name.split()[1]}
    assert link.METHODS["SGD"] == {}


def test_computing_over_exchanging_is_that_of_the_machine(monkeypatch):
    """Of a network of three layers on 4 devices: 3 s of computing, and 8 MB over links of 4 MB/s."""
    table = pd.DataFrame({"flops": [1e6, 2e6, 1e6], "weights": [9e5, 9e5, 1e5], "biases": [5e4, 5e4, 0]})
    monkeypatch.setattr(link, "layers_of", lambda name: table)
    settings = {"network": "", "batch": 4, "flops": 4e6 * 2.75 / 3, "memory": 1e12, "beta": 4e6}
    asleep, bits = link.dilated({**settings, "seconds": 0.3, "numbers": 1e4, "stages": 9}, 4)
    ring = AllReduce(0.0, bits / 8 * PAYLOAD, 4).transfer(asleep.size)
    assert (asleep.forward + asleep.backward, asleep.size) == (pytest.approx(0.3), 4e4)
    assert ring / 0.3 == pytest.approx(2 * 3 / 4 * 8e6 / 4e6 / 3, rel=1e-6)
    assert [n.tensors for n in asleep.layers] == [(18000, 1000), (18000, 1000), (2000,)]


def test_stages_keep_all_seconds_and_bytes():
    layers = [LayerTimes(1.0, 2.0, (40.0, 4.0)), LayerTimes(1.0, 2.0, (8.0,)), LayerTimes(2.0, 4.0, (16.0, 4.0))]
    assert link.stages(layers, 2) == (LayerTimes(2.0, 4.0, (48.0, 4.0)), LayerTimes(2.0, 4.0, (16.0, 4.0)))
    assert link.stages(layers, 9) == tuple(layers)


def test_waking_late_delays_nothing_that_follows(monkeypatch):
    now = [10.0]

    def late(seconds: float) -> None:
        now[0] += seconds + (0.25 if seconds else 0.0)

    monkeypatch.setattr(device_asleep.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(device_asleep.time, "sleep", late)
    device = device_asleep.Device()
    device.begin()
    for _ in range(4):
        device.compute(1.0)
    assert now == [14.25]
    now[0] += 1.0  # somebody else was waited for
    device.begin()
    device.compute(1.0)
    assert now == [16.5]


def test_both_networks_are_timed_in_turns_after_one_to_warm_up(tmp_path, monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(compute.time, "process_time", lambda: float(next(ticks)) ** 2)
    small = {"model": "digits_lenet", "beside": "caffe_lenet", "batches": [2, 4], "repeats": 2}
    spec = RunSpec("matex_agd/compute", small)
    table = compute.compute(spec, Context(tmp_path, numerics.choose(spec, "cpu", 1))).curves["compute"]
    assert table["network"].tolist() == ["digits_lenet"] * 2 + ["caffe_lenet"] * 2
    assert table["repeat"].tolist() == [0, 1] * 2
    assert table["seconds"].tolist() == [9 / 2, 17 / 2, 13 / 4, 21 / 4]  # an image
    assert settings.COMPUTE.settings["batches"] == (32, 256)


def test_the_sleeping_network_takes_its_time_and_no_less():
    module = link.SleepingNetwork(NetworkTimes(asleep(ASLEEP)))
    began = time.perf_counter()
    module(torch.rand(1)).sum().backward()
    assert time.perf_counter() - began >= 3 * sum(seconds for _, seconds in ASLEEP)
    assert sum(p.numel() for p in module.parameters()) == sum(n + 100 for n, _ in ASLEEP)
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in module.parameters())
