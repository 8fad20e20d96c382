"""The paper's experiments by name, with what they are expected to cost.

The modules of this package hold what computes the runs and import torch; they are imported when a run begins. This
one is imported by every command.
"""

from __future__ import annotations

import math

from suite.data.catalogue import DATASETS
from suite.experiment import Experiment, RunSpec, bodies
from suite.runner.cost import OVERHEAD, TRAIN, gradient_seconds, test_seconds

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
ADAM = 500.0  # learning rates of SGD that go as far in an update as one of Adam's, were there no noise
# alpha / N_inf of a LeNet is about this, times the rate, times the loss of a uniform guess over the lowest threshold.
# CIFAR's stored searches give 140 to 220, and 70 to 120.
NOISE = {"cifar10": 170.0, "cifar100": 90.0}
NOISE_OF_DIGITS = 8.0
# alpha / N_inf of VGG and ResNet-20 down to their first thresholds; 18 to 64 in the stored curves by SGD. Three seeds
# by Adam need 620 updates at M = 16 and 60 at M = 256.
DEEP, DEEP_BY_ADAM = 30.0, 400.0
DEEP_WAY = {"cifar10": 0.8, "cifar100": 2.1}  # times as far as LeNet they go: 0.4 to 1.1, 2.0 to 2.4
UNREACHED = 90  # stored searches below the smallest batch went 15 to 90 times N_inf, to their limit
# Updates of a translation at rate 1 to its first, second and third threshold; the means of the stored curves are 90,
# 380 and 530 to 930.
TYPICAL_TRANSLATION = (90, 380, 900)
# For a word at 32 hidden units; a sentence that is translated at the end, by beam search too, takes as long as many.
SECONDS_PER_WORD, WORDS_PER_SENTENCE, WORDS_PER_TRANSLATED = 0.9e-4, 18, 2000
# Examples that a test of a sweep reads, as a share of its sample: it reads the worst first and ends where their sum
# decides. The stored searches read 0.15 to 0.73 on the geometric grid, LeNet's on CIFAR 0.7 to 1, and 0.08 where
# every update is tested. Where the threshold lies close below the loss of a uniform guess, no fewer than its share of
# that loss decide.
TYPICAL_READ, CIFAR_LENET_READ, TYPICAL_READ_OFTEN = 0.4, 0.85, 0.2
TYPICAL_TESTS = 300  # of a translation on the geometric grid, half of each cut short
SET_UP = 3.0  # seconds of a search: pictures read, permuted and decoded


def sweep_seconds(spec: RunSpec) -> float:
    """Updates by the law, N_inf (1 + M_0 / M), and the tests of one search."""
    s = spec.settings
    model, updates = s["model"], sweep_updates(spec)
    if s["growth"]:  # every update at first, then each ``growth`` later than the one before
        first = min(updates, 1 / s["growth"])
        tests = first + math.log(max(1.0, updates / first)) / math.log1p(s["growth"])
        read = CIFAR_LENET_READ if model["name"] == "cifar_lenet" else TYPICAL_READ
    else:
        tests, read = updates / s["every"], TYPICAL_READ_OFTEN
    read = max(read, lowest(spec) / typical_way(spec)[2])
    sample = s["sample"] or s["share"] * DATASETS[s["data"]["name"]].sizes["train"]
    tested = test_seconds(tests * read * sample * len(s["monitors"]), **model)
    return SET_UP + gradient_seconds(updates * s["batch"], updates, **model) + tested + updates * OVERHEAD


def sweep_updates(spec: RunSpec) -> float:
    """Updates that a search makes, had it a typical way to go; at most its limit.

    The law says alpha / M for the noise of small batches, but below a smallest one no number of updates may suffice.
    Such a search is planned at ``UNREACHED`` times N_inf and may go to its limit, far beyond.
    """
    s, goal = spec.settings, lowest(spec)
    way, reached, uniform = typical_way(spec)
    further, fallen = TYPICAL_HALVING ** math.log2(reached / goal), (uniform - goal) / (uniform - reached)
    way *= min(further, fallen**2) if goal > reached else further
    if deep := "lenet" not in s["model"]["name"]:
        way *= DEEP_WAY.get(s["data"]["name"], 1.0)
    adam = s["descent"]["rule"] == "adam"
    floor = way / s["rate"] / (ADAM if adam else 1)
    noise = NOISE.get(s["data"]["name"], NOISE_OF_DIGITS) * s["rate"] * uniform / goal
    if deep:
        times = 1 + (DEEP_BY_ADAM if adam else DEEP) / s["batch"]
    else:
        times = 1 + noise / s["batch"] if s["batch"] > noise / 3 else UNREACHED
    return min(float(s["limit"]), floor * times)


def typical_way(spec: RunSpec) -> tuple[float, float, float]:
    """TYPICAL_WAY of a search's task, or of MNIST's digits."""
    data = spec.settings["data"]
    return TYPICAL_WAY.get((data["name"], data["labels"]), TYPICAL_WAY["mnist", "digits"])


def lowest(spec: RunSpec) -> float:
    """The lowest threshold of a search."""
    return min(threshold for thresholds in spec.settings["monitors"].values() for threshold in thresholds)


def translate_seconds(spec: RunSpec) -> float:
    """Words of all updates, of tests and of what is translated at the end, by the square of the hidden units."""
    s = spec.settings
    updates = min(s["limit"], TYPICAL_TRANSLATION[: len(s["monitors"]["training"])][-1] / s["rate"])
    words = updates * s["words"] + TYPICAL_TESTS * s["sample"] * WORDS_PER_SENTENCE / 2
    words += s.get("test_sentences", 0) * WORDS_PER_TRANSLATED
    return words * SECONDS_PER_WORD * max(1.0, (s["model"]["hidden"] / 32) ** 2)


def translate_data(spec: RunSpec) -> tuple[str, ...]:
    tested = spec.settings.get("test_corpus")
    return (spec.settings["corpus"], *([tested] if tested else []))


body = bodies(__name__)


EXPERIMENTS = {
    "inverse_law/sweep": Experiment(
        body("sweep:sweep"),
        sweep_seconds,
        lambda spec: (spec.settings["data"]["name"],),
        lambda spec: 700_000_000,
        measure=TRAIN.measure,
        check=body("sweep:check"),
    ),
    "inverse_law/noise": Experiment(body("sweep:gradient_noise"), lambda spec: 3.0, clock="none"),
    "inverse_law/translate": Experiment(body("translate:search"), translate_seconds, translate_data),
    "inverse_law/loop": Experiment(body("loop:loop"), lambda spec: 25.0, timed=True),
}
