"""A training run in the papers' words, from its specification alone: data, network, rate, length in epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from suite.data.catalogue import DATASETS
from suite.models.table import counts, names
from suite.spec import RunSpec, trainings

Described = SimpleNamespace  # what a specification says of its training, by the names of the printed fields
LEARNING = {"updates", "epochs", "limit"}  # settings that say how long a run learns


def learns(spec: RunSpec, data: tuple[str, ...] = ()) -> bool:
    """Whether a specification names a data set and for how long to learn from it.

    ``data`` are the data sets that the experiment says it needs, for specifications that do not name theirs.
    """
    settings = _settings(spec)
    return bool(data or {"data", "corpus"} & settings.keys()) and bool(LEARNING & settings.keys())


def _settings(spec: RunSpec) -> Mapping[str, Any]:
    """The settings, those of a ``problem`` inside them taken up."""
    return {**spec.settings.get("problem", {}), **spec.settings}


def describe(spec: RunSpec, data: tuple[str, ...] = ()) -> Described:
    """What a specification says of its training; None where it says nothing.

    The names are those of the printed fields. ``images`` counts the whole training set and ``subset`` what the run
    learns from, ``batch`` is of one worker and ``total`` of all, ``splitting`` is Rudra's n, ``drops`` are (epoch,
    factor), ``falls`` are (mean loss below which, factor), ``warmstart`` is in epochs, ``share`` is the part of the
    training data on which the loss is measured, ``growth`` that of the grid of tests. ``kind`` is everything but the
    seed, as text.

    Args:
        spec: the specification.
        data: as in :func:`learns`.
    """
    s = _settings(spec)
    of_data, algorithm, descent, evaluate = (s.get(key, {}) for key in ("data", "algorithm", "descent", "evaluate"))
    name = of_data.get("name") or s.get("corpus") or (data[0] if data else None)
    model = s.get("model")
    network = model.get("name") if isinstance(model, Mapping) else model
    ours = Described(
        **{key: s.get(key) for key in ("rate", "updates", "epochs", "share", "every")},
        **{key: descent.get(key) for key in ("rule", "momentum", "decay")},
        data=name,
        images=DATASETS[name].sizes.get("train") if name and name in DATASETS else None,
        subset=of_data.get("subset") or s.get("sentences"),
        labels=of_data.get("labels"),
        preparation=of_data.get("transform"),
        network=network,
        dropout=counts(network).has_dropout if network in names() else None,
        workers=s.get("workers") or most_learners(s.get("learners", ())),
        splitting=algorithm.get("n") if algorithm.get("name") == "rudra" else None,
        batch=s.get("batch", s.get("words")),
        falls=tuple(zip(algorithm.get("thresholds", ()), algorithm.get("factors", ())[1:], strict=True)),
        tested=s.get("test_corpus"),
        sample=evaluate.get("test_examples", evaluate.get("examples")) or s.get("sample"),
        growth=s.get("growth", 0.0),
        seed=spec.seed,
    )
    ours.total = None if ours.batch is None else ours.batch * ours.workers
    before = describe(trainings(spec)[0], data).epochs if "warmstart" in s else None
    ours.warmstart = None if before is None else round(before, 1)
    if ours.epochs is None and ours.updates and ours.batch and ours.images:
        each = ours.batch * (ours.workers // (ours.splitting or 1))  # floor(lambda / n) gradients an update
        cycle = s.get("order", {}).get("batches", 0) * ours.batch  # of the only batches that are trained on
        ours.epochs = ours.updates * each / (cycle or ours.subset or ours.images)
    drops = s.get("drops", ()) if ours.updates and ours.epochs else ()
    ours.drops = tuple((turn / ours.updates * ours.epochs, factor) for turn, factor in drops)
    ours.kind = repr({**vars(ours), "seed": 0})
    return ours


def most_learners(learners: int | Sequence[Any]) -> int:
    """One count; or the most of a schedule, of counts or of (update, count from there on)."""
    schedule = (learners,) if isinstance(learners, int) else learners
    return max((entry if isinstance(entry, int) else entry[1] for entry in schedule), default=1)
