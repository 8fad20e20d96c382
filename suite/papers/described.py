"""A training run in the papers' words, from its specification alone: data, network, rate, length in epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from suite.data.catalogue import DATASETS
from suite.models.table import counts, names
from suite.spec import RunSpec

LEARNING = ("updates", "epochs", "limit")  # settings that say how long a run learns


@dataclass(frozen=True)
class Described:
    """What a specification says; None where it says nothing."""

    data: str | None
    images: int | None  # of the whole training set
    subset: int | None  # of them, that the run learns from
    labels: str | None
    preparation: str | None
    network: str | None
    rule: str | None
    batch: float | None
    workers: int
    splitting: int | None  # Rudra's n
    rate: float | None
    momentum: float | None
    decay: float | None
    epochs: float | None
    updates: int | None
    drops: tuple[tuple[float, float], ...]  # (epoch, factor)
    falls: tuple[tuple[float, float], ...]  # (mean loss below which, factor)
    dropout: bool | None
    tested: str | None  # the corpus whose sentences are translated
    sample: int | None  # test images that an evaluation reads; None: all
    share: float | None  # of the training data, that the loss is measured on
    growth: float  # of the grid of tests
    every: int | None  # updates between two tests
    seed: int

    @property
    def total(self) -> float | None:
        """Examples of all workers together."""
        return None if self.batch is None else self.batch * self.workers


def learns(spec: RunSpec, data: tuple[str, ...] = ()) -> bool:
    """Whether a specification names a data set and for how long to learn from it.

    ``data`` are the data sets that the experiment says it needs, for specifications that do not name theirs.
    """
    settings = _settings(spec)
    return (named(settings) or bool(data)) and any(name in settings for name in LEARNING)


def named(settings: Mapping[str, Any]) -> bool:
    return "data" in settings or "corpus" in settings


def _settings(spec: RunSpec) -> Mapping[str, Any]:
    """The settings, those of a ``problem`` inside them taken up."""
    return {**spec.settings.get("problem", {}), **spec.settings}


def _most_learners(schedule: Iterable[int | tuple[int, int]]) -> int:
    """The most learners of a run: a schedule lists counts, or pairs of the update and the count from there on."""
    return max((entry if isinstance(entry, int) else entry[1] for entry in schedule), default=1)


def describe(spec: RunSpec, data: tuple[str, ...] = ()) -> Described:
    """``data`` as in :func:`learns`."""
    s = _settings(spec)
    set_of = s.get("data", {})
    name = set_of.get("name") or s.get("corpus") or (data[0] if data else None)
    model, algorithm, descent = s.get("model"), s.get("algorithm", {}), s.get("descent", {})
    images = DATASETS[name].sizes.get("train") if name and name in DATASETS else None
    subset = set_of.get("subset") or s.get("sentences")
    workers = s.get("workers") or _most_learners(s.get("learners", ()))
    splitting = algorithm.get("n") if algorithm.get("name") == "rudra" else None
    batch, updates = s.get("batch", s.get("words")), s.get("updates")
    epochs = s.get("epochs")
    if epochs is None and updates and batch and images:
        each = batch * (workers // (splitting or 1))  # floor(lambda / n) gradients an update
        cycle = s.get("order", {}).get("batches", 0) * batch  # of a few batches, the only ones that are trained on
        epochs = updates * each / (cycle or subset or images)
    drops = s.get("drops", ()) if updates and epochs else ()
    evaluate = s.get("evaluate", {})
    network = model.get("name") if isinstance(model, Mapping) else model
    return Described(
        data=name,
        images=images,
        subset=subset,
        labels=set_of.get("labels"),
        preparation=set_of.get("transform"),
        network=network,
        rule=descent.get("rule"),
        batch=batch,
        workers=workers,
        splitting=splitting,
        rate=s.get("rate"),
        momentum=descent.get("momentum"),
        decay=descent.get("decay"),
        epochs=epochs,
        updates=updates,
        drops=tuple((turn / updates * epochs, factor) for turn, factor in drops),
        falls=tuple(zip(algorithm.get("thresholds", ()), algorithm.get("factors", ())[1:], strict=True)),
        dropout=counts(network).has_dropout if network in names() else None,
        tested=s.get("test_corpus"),
        sample=evaluate.get("test_examples", evaluate.get("examples")) or s.get("sample"),
        share=s.get("share"),
        growth=s.get("growth", 0.0),
        every=s.get("every"),
        seed=spec.seed,
    )
