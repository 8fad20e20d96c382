"""The experiment ``inverse_law/loop``: does the batch size that the method picks train fastest on this machine?

Settings: ``batches`` timed, ``converge`` those whose updates are counted by the method, ``seeds``, ``rate``,
``threshold``, ``hidden`` units of the network (one tanh layer on 8 x 8 digits), ``repeats`` of every run timed.

All batch sizes are then trained to the threshold, without tests, for as many updates as each seed was found to
need; batch sizes take turns. The batch size picked is compared with the one that really was fastest. With one
CPU thread all times are seconds of that thread, so that other processes do not count; else they are wall seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from suite.batch_size.chosen import choose, time_updates
from suite.batch_size.law import Updates
from suite.batch_size.trainer import Trainer
from suite.data.images import load_images
from suite.experiment import Context, Outcome
from suite.lazy import pd
from suite.spec import RunSpec, seed
from suite.training.numerics import apply

Clock = Callable[[], float]


def loop(spec: RunSpec, context: Context) -> Outcome:
    """Time, count, choose; then measure every batch size and compare. See the module's docstring."""
    apply(context.execution)
    settings, trainer = spec.settings, on_digits(spec, context.device)
    batches, seeds = list(settings["batches"]), list(settings["seeds"])
    alone = context.device == "cpu" and context.execution["threads"] == 1
    clock = time.thread_time if alone else time.perf_counter
    counted = {
        batch: [trainer.count(s, batch, settings["threshold"], settings["growth"], settings["limit"]) for s in seeds]
        for batch in batches
    }
    timed, rows = [], []
    for repeat in range(settings["repeats"]):  # timing and training in turns: slow spells fall on both
        timed += timings(trainer, batches, settings["rounds"], clock, repeat)
        rows += trainings(trainer, counted, seeds, clock, repeat)
    each = pd.DataFrame(timed, columns=["repeat", "round", "batch", "seconds"])
    seconds = {batch: float(each.loc[each["batch"] == batch, "seconds"].median()) for batch in batches}
    limit = float(settings["limit"])
    method = [Updates(batch, tuple(counted[batch]), limit) for batch in settings["converge"]]
    choice = choose(seconds, method, blocks=True)
    table = pd.DataFrame(
        {
            "batch": batches,
            "update_seconds": [seconds[b] for b in batches],
            "censored": [sum(n is None for n in counted[b]) for b in batches],
            "predicted_seconds": [choice.predicted[b] for b in batches],
            "predicted_updates": [choice.law.predict(b) for b in batches],
        }
    )
    results: dict[str, Any] = {
        "chosen": choice.batch,
        "closed_form": choice.closed_form,
        "clock": "thread" if alone else "wall",
        "knee_misfit": choice.knee.misfit,
        "floor": choice.law.floor,
        "sensitivity": choice.law.sensitivity,
    }
    runs = pd.DataFrame(rows, columns=["batch", "seed", "repeat", "updates", "seconds", "early", "late"])
    return Outcome("finished", results, {"batches": table, "runs": runs, "timings": each})


def on_digits(spec: RunSpec, device: str) -> Trainer:
    """Trainings of the network on standardised digits, each from weights of its own number."""
    digits, hidden = load_images("digits", "train", size=8), spec.settings["hidden"]
    pixels = digits.inputs.float().flatten(1)
    data = ((pixels - pixels.mean()) / pixels.std()).to(device), digits.targets.to(device)

    def make_model(number: int) -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(seed(spec.seed, "weights", number))
            model = nn.Sequential(nn.Linear(64, hidden), nn.Tanh(), nn.Linear(hidden, digits.classes))
        return model.to(device)

    return Trainer(make_model, F.cross_entropy, data, spec.settings["rate"], spec.settings["share"])


def timings(
    trainer: Trainer, batches: list[int], rounds: int, clock: Clock, repeat: int
) -> list[tuple[int, int, int, float]]:
    """Rows (repeat, round, batch, seconds per update) from fresh weights; a round visits all batch sizes."""
    trainer.begin(0)
    position = dict.fromkeys(batches, 0)

    def update(batch: int) -> None:
        trainer.state = trainer.advance(trainer.state, position[batch], position[batch] + 1, batch)
        position[batch] += 1

    taken = time_updates(update, batches, rounds=rounds, synchronise=trainer.synchronise, clock=clock)
    return [(repeat, number, batch, taken[batch][number]) for number in range(rounds) for batch in batches]


def trainings(
    trainer: Trainer, counted: dict[int, list[float | None]], seeds: list[int], clock: Clock, repeat: int
) -> list[tuple[float, ...]]:
    """Rows of whole trainings to the threshold: batch, seed, repeat, updates, seconds, early, late.

    ``early`` and ``late`` are seconds per update of the first and the last fifth. Batch sizes take turns.
    """
    rows: list[tuple[float, ...]] = []
    for place, number in enumerate(seeds):
        for batch, found in counted.items():
            updates = found[place]
            if updates is None:
                continue
            trainer.begin(number)
            trainer.advance(trainer.state, 0, 2, batch)  # warm up; the state is not kept
            marks = [int(updates) * i // 5 for i in range(6)]
            spent = []
            for first, last in pairwise(marks):
                trainer.synchronise()
                began = clock()
                trainer.state = trainer.advance(trainer.state, first, last, batch)
                trainer.synchronise()
                spent.append(clock() - began)
            early, late = spent[0] / (marks[1] - marks[0]), spent[-1] / (marks[-1] - marks[-2])
            rows.append((batch, number, repeat, updates, sum(spent), early, late))
    return rows
