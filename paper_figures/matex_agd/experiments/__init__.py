"""What is run for this paper, by experiment name: where each body lies, and what a run of it is expected to cost.

The modules beside this one may import torch; this one may not.
"""

from __future__ import annotations

from suite.experiment import Experiment, bodies, lazily
from suite.models.table import counts
from suite.runner.cost import FLOPS_PER_SECOND
from suite.spec import RunSpec
from suite.training.settings import STREAMED


def imagenet_seconds(spec: RunSpec) -> float:
    """Seconds of one core: forward and backward of every training picture, and forward of those evaluated."""
    s = spec.settings
    pictures = s["updates"] * (3 * s["batch"] * s["workers"] + s["evaluate"]["examples"] / s["evaluate"]["every"])
    return pictures * counts(**s["model"]).flops_per_example / FLOPS_PER_SECOND


def compute_seconds(spec: RunSpec) -> float:
    """A forward and a backward pass of both networks, one more often than they count."""
    s = spec.settings
    images = zip((s["model"], s["beside"]), s["batches"], strict=True)
    flops = sum(3 * batch * counts(name).flops_per_example for name, batch in images)
    return (s["repeats"] + 1) * flops / FLOPS_PER_SECOND


def hosts_seconds(spec: RunSpec) -> float:
    """Blocks of seven updates of six methods and of none, asleep for most of it."""
    s = spec.settings
    return 1.2 * len(s["devices"]) * (s["repeats"] + 1) * 49 * s["seconds"]


body = bodies(__name__)


EXPERIMENTS = {
    "matex_agd/layers": Experiment(body("layers:layers"), lambda spec: 2.0, clock="none"),
    "matex_agd/link": Experiment(body("link:link"), lambda spec: 240.0, memory=lambda spec: 900_000_000, timed=True),
    "matex_agd/hosts": Experiment(
        body("link:hosts"), hosts_seconds, memory=lambda spec: 3_000_000_000, timed=True, clock="asleep"
    ),
    "matex_agd/serial_gap": Experiment(body("serial_gap:serial_gap"), lambda spec: 6.0),
    "matex_agd/compute": Experiment(
        body("compute:compute"), compute_seconds, memory=lambda spec: 4_000_000_000, timed=True
    ),
    "matex_agd/imagenet": Experiment(
        lazily("suite.training.streaming:train"),
        imagenet_seconds,
        lambda spec: ("imagenet",),
        lambda spec: 8_000_000_000,
        settings=STREAMED,
    ),
    "matex_agd/workers": Experiment(body("link:sums"), lambda spec: 5.0, memory=lambda spec: 900_000_000, timed=True),
}
