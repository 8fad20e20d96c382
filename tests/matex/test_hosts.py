"""Fig. 1 on hosts that sleep to compute: what they sleep and send, and known answers of what is read from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from fabricated_matex_runs import evidence, run_of
from test_matex_rates import verdict

from paper_figures.matex_agd import hosts
from paper_figures.matex_agd.experiments import link, sleeping
from suite.communication.link import PAYLOAD
from suite.cost_models.overlap import AllReduce, LayerTimes
from suite.papers.artifact import Missing
from suite.papers.counterfeits import COUNTERFEITS

GROUPS = hosts.host_runs("abcd", "reduced")
AS_PRINTED = {"SGD": 0.7, **dict.fromkeys(hosts.LAYER_WISE, 0.8), **dict.fromkeys(hosts.DELAYED, 0.98)}


def told(rates, changed=(), skipped=""):
    """Hosts with these rates over no comm; ``changed`` are (panel, devices, rates) where they differ."""
    draw = np.random.default_rng(0)

    def make(name, spec):
        rows = []
        for devices in hosts.SHARED:
            here = dict(rates)
            for panel, count, others in changed:
                here |= others if (f"hosts {panel}", devices) == (name, count) else {}
            for repeat in range(1, 6):
                alone = np.exp(draw.normal(0, 0.2))  # a repetition is slow as a whole
                seconds = {"no comm": alone, "empty sum": np.nan} | {
                    method: alone / rate * np.exp(draw.normal(0, 0.003)) for method, rate in here.items()
                }
                rows += [
                    {"devices": devices, "repeat": repeat, "method": method, "fastest": s, "seconds": 1.5 * s}
                    for method, s in seconds.items()
                ]
        return run_of(spec, {"skipped": skipped}, hosts=pd.DataFrame(rows))

    return evidence(GROUPS, make, "reduced")


def measured(found, letter="c"):
    return {
        name: (verdict(f"fig1{letter}/{name}", value, "reduced"), value)
        for name, value in hosts.measure_hosts(letter)(found)
    }


def test_hosts_decide_what_the_model_cannot():
    seen = measured(told(AS_PRINTED))
    assert {name: word for name, (word, _) in seen.items()} == dict.fromkeys(seen, "reproduced")
    assert seen["agd-best"][1].values[0] == pytest.approx(np.log(0.98 / 0.8), abs=0.01)
    assert seen["no-comm-best"][1].values[0] == pytest.approx(0.98, abs=0.01)
    ((_, trend),) = hosts.measure_trend(told(AS_PRINTED))
    assert trend.values == (1.0,)


@pytest.mark.parametrize("devices", hosts.SHARED)
def test_one_number_of_devices_is_enough_to_lose(devices):
    ahead = told(AS_PRINTED, [("c", devices, {"SGD": 0.995})])
    words = {name: word for name, (word, _) in measured(ahead).items()}
    assert words == {"agd-best": "not reproduced", "layerwise-below-agd": "reproduced", "no-comm-best": "reproduced"}
    assert measured(told(AS_PRINTED, [("c", devices, {"AGD 2 comm": 1.02})]))["no-comm-best"][0] == "not reproduced"
    ((_, trend),) = hosts.measure_trend(ahead)
    assert trend.values == (pytest.approx(5 / 6),)
    assert measured(ahead, "d")["agd-best"][0] == "reproduced"


def test_counterfeits_of_the_hosts_flip_their_claims():
    for letter in "bcd":
        for name in ("agd-best", "layerwise-below-agd", "no-comm-best"):
            (world,) = COUNTERFEITS[f"matex_agd/fig1{letter}/{name}"]
            assert measured(world(told(AS_PRINTED)), letter)[name][0] == "not reproduced"
    (world,) = COUNTERFEITS["matex_agd/fig1b/same-trend"]
    ((_, trend),) = hosts.measure_trend(world(told(AS_PRINTED)))
    assert trend.values == (0.0,)


def test_hosts_that_could_not_be_made_are_missing():
    with pytest.raises(Missing, match="no root"):
        measured(told(AS_PRINTED, skipped="no root"))


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

    monkeypatch.setattr(sleeping.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sleeping.time, "sleep", late)
    device = sleeping.Device()
    device.begin()
    for _ in range(4):
        device.compute(1.0)
    assert now == [14.25]
    now[0] += 1.0  # somebody else was waited for
    device.begin()
    device.compute(1.0)
    assert now == [16.5]
