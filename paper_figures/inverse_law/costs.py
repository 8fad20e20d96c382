"""The paper's experiments by name, with what they are expected to cost; nothing here imports torch."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from importlib import import_module

from suite import training_cost
from suite.data.catalogue import DATASETS
from suite.experiments import Body, Experiment, Together
from suite.models.table import counts
from suite.spec import RunSpec, canonical
from suite.training_cost import FLOPS_PER_SECOND, SMALL

UPDATE_OVERHEAD = 1.0e-3  # seconds per update outside the network
TYPICAL_UPDATES = 1500  # of a sweep; the real number is what is to be found out
SECONDS_PER_WORD, WORDS_PER_SENTENCE = 1e-4, 18
TYPICAL_TESTS = 300  # of a sweep on the geometric grid, half of each cut short


def _load(module: str, function: str) -> Callable[[], Body]:
    return lambda: getattr(import_module(f"paper_figures.inverse_law.{module}"), function)


def sweep_seconds(spec: RunSpec) -> float:
    """Updates and tests of one search, as if it took a typical number of updates."""
    s = spec.settings
    flops = counts(s["model"]["name"]).flops_per_example
    updates = min(s["limit"], TYPICAL_UPDATES)
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
    return canonical({name: s.get(name) for name in ("data", "share", "model", "batch", "workers")})


def sweep_together() -> Together:
    from paper_figures.inverse_law.sweep import sweep_together as together

    return together


def translate_seconds(spec: RunSpec) -> float:
    """Words of all updates and tests, at a rate that falls with the square of the hidden units."""
    s = spec.settings
    words = TYPICAL_UPDATES * s["words"] + TYPICAL_TESTS * s["sample"] * WORDS_PER_SENTENCE / 2
    return words * SECONDS_PER_WORD * max(1.0, (s["model"]["hidden"] / 32) ** 2)


def phrases_seconds(spec: RunSpec) -> float:
    s = spec.settings
    return s["updates"] * s["words"] * SECONDS_PER_WORD * max(1.0, s["model"]["hidden"] / 64)


def translate_data(spec: RunSpec) -> tuple[str, ...]:
    return (spec.settings["corpus"],)


EXPERIMENTS = {
    "inverse_law/sweep": Experiment(
        _load("sweep", "sweep"),
        sweep_seconds,
        sweep_data,
        lambda spec: 700_000_000,
        sweep_pack,
        sweep_together,
        training_cost.measure,
    ),
    "inverse_law/networks": Experiment(_load("experiments", "networks"), lambda spec: 1.0),
    "inverse_law/noise": Experiment(_load("experiments", "gradient_noise"), lambda spec: 3.0),
    "inverse_law/words": Experiment(_load("experiments", "overshoot"), lambda spec: 3.0),
    "inverse_law/attention": Experiment(_load("experiments", "attention"), lambda spec: 1.0),
    "inverse_law/phrases": Experiment(_load("translate", "phrases"), phrases_seconds, translate_data),
    "inverse_law/translate": Experiment(_load("translate", "search"), translate_seconds, translate_data),
    "inverse_law/loop": Experiment(_load("loop", "loop"), lambda spec: 25.0, timed=True),
}
