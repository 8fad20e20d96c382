"""The paper's experiments by name, with what they are expected to cost.

The modules of this package hold what computes the runs and import torch; they are imported when a run begins. This
one is imported by every command.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

from suite.data.catalogue import DATASETS
from suite.experiment import Experiment, lazily
from suite.models.table import counts
from suite.runner.cost import FLOPS_PER_SECOND, SMALL, TRAIN
from suite.spec import RunSpec, canonical

UPDATE_OVERHEAD = 1.0e-3  # seconds per update outside the network
# Updates times learning rate of a search down to a loss [nats]; how many they are is what is to be found out. The
# medians of the stored curves are 4 to 15 on MNIST, 45 on CIFAR-10 and 38 on CIFAR-100. Each halving of the loss
# takes 2.5 times as far: 38 (small LeNet) and 28 (medium) to half of MNIST's, 71 to a quarter; with two classes 22
# and 61. Near the loss of a uniform guess, the third number, the way goes as the square of the loss's fall from it.
TYPICAL_WAY = {
    ("mnist", "digits"): (11.0, 0.288, math.log(10)),
    ("mnist", "parity"): (11.0, 0.173, math.log(2)),
    ("cifar10", "classes"): (45.0, 1.151, math.log(10)),
    ("cifar100", "classes"): (38.0, 3.551, math.log(100)),
}
TYPICAL_HALVING = 2.5
ADAM = 50.0  # learning rates of SGD that go as far in an update as one of Adam's
TYPICAL_TRANSLATION = 900  # updates of a translation; the means of the stored curves are 530 to 930
SECONDS_PER_WORD, WORDS_PER_SENTENCE = 1e-4, 18
TYPICAL_TESTS = 300  # of a sweep on the geometric grid, half of each cut short


def sweep_seconds(spec: RunSpec) -> float:
    """Updates and tests of one search, as if it went a typical way at its learning rate."""
    s = spec.settings
    flops = counts(s["model"]["name"]).flops_per_example
    known = TYPICAL_WAY.get((s["data"]["name"], s["data"]["labels"]), TYPICAL_WAY["mnist", "digits"])
    way, reached, uniform = known
    lowest = min(threshold for thresholds in s["monitors"].values() for threshold in thresholds)
    further, fallen = TYPICAL_HALVING ** math.log2(reached / lowest), (uniform - lowest) / (uniform - reached)
    way *= min(further, fallen**2) if lowest > reached else further
    updates = min(s["limit"], way / s["rate"] / (ADAM if s["descent"]["rule"] == "adam" else 1))
    tests = updates / s["every"] if not s["growth"] else TYPICAL_TESTS
    sample = s["sample"] or s["share"] * DATASETS[s["data"]["name"]].sizes["train"]
    work = 3 * updates * s["batch"] + tests * sample / 2 * len(s["monitors"])
    return work * flops / FLOPS_PER_SECOND + updates * UPDATE_OVERHEAD


def sweep_data(spec: RunSpec) -> tuple[str, ...]:
    return (spec.settings["data"]["name"],)


def sweep_pack(spec: RunSpec, device: str) -> Hashable:
    """Searches of one network, data set and batch size may share their steps; on a CPU that pays at small batches."""
    s = spec.settings
    if counts(s["model"]["name"]).has_dropout or (device == "cpu" and s["batch"] > SMALL):
        return None
    return canonical({name: s.get(name) for name in ("data", "share", "sample_of", "model", "batch", "workers")})


def translate_seconds(spec: RunSpec) -> float:
    """Words of all updates and tests, at a rate that falls with the square of the hidden units."""
    s = spec.settings
    words = TYPICAL_TRANSLATION * s["words"] + TYPICAL_TESTS * s["sample"] * WORDS_PER_SENTENCE / 2
    return words * SECONDS_PER_WORD * max(1.0, (s["model"]["hidden"] / 32) ** 2)


def phrases_seconds(spec: RunSpec) -> float:
    s = spec.settings
    return s["updates"] * s["words"] * SECONDS_PER_WORD * max(1.0, s["model"]["hidden"] / 64)


def translate_data(spec: RunSpec) -> tuple[str, ...]:
    tested = spec.settings.get("test_corpus")
    return (spec.settings["corpus"], *([tested] if tested else []))


EXPERIMENTS = {
    "inverse_law/sweep": Experiment(
        lazily("paper_figures.inverse_law.experiments.sweep:sweep"),
        sweep_seconds,
        sweep_data,
        lambda spec: 700_000_000,
        sweep_pack,
        lazily("paper_figures.inverse_law.experiments.sweep:sweep_together"),
        TRAIN.measure,
    ),
    "inverse_law/networks": Experiment(
        lazily("paper_figures.inverse_law.experiments.networks:networks"), arithmetic=True
    ),
    "inverse_law/noise": Experiment(
        lazily("paper_figures.inverse_law.experiments.noise:gradient_noise"), lambda spec: 3.0
    ),
    "inverse_law/words": Experiment(
        lazily("paper_figures.inverse_law.experiments.words:overshoot"), lambda spec: 3.0
    ),
    "inverse_law/attention": Experiment(lazily("paper_figures.inverse_law.experiments.attention:attention")),
    "inverse_law/phrases": Experiment(
        lazily("paper_figures.inverse_law.experiments.translate:phrases"), phrases_seconds, translate_data
    ),
    "inverse_law/translate": Experiment(
        lazily("paper_figures.inverse_law.experiments.translate:search"), translate_seconds, translate_data
    ),
    "inverse_law/loop": Experiment(
        lazily("paper_figures.inverse_law.experiments.loop:loop"), lambda spec: 25.0, timed=True
    ),
}
