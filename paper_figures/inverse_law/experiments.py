"""Short experiments that need torch: network sizes, gradient noise, word batches, attention."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from suite.data.order import WithReplacement
from suite.data.text import load_pairs
from suite.data.word_batches import word_batches
from suite.experiment import Context
from suite.models import build, initialise
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.numerics import apply


def networks(spec: RunSpec, context: Context) -> Outcome:
    """Parameters and weight layers of every network named in ``networks``: [{name, classes}, ...]."""
    results: dict[str, Any] = {}
    for number, entry in enumerate(spec.settings["networks"], 1):
        module = build(entry["name"], classes=entry["classes"])
        layers = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
        results[f"parameters_{number}"] = sum(p.numel() for p in module.parameters())
        results[f"layers_{number}"] = len(layers)
        results[f"outputs_{number}"] = layers[-1].weight.shape[0]
    return Outcome("finished", results)


def gradient_noise(spec: RunSpec, context: Context) -> Outcome:
    """Variance, summed over parameters, of the mini-batch gradient at a point reached after ``warm`` updates.

    Settings as of the sweep, with ``batches`` and ``draws``. Batches are drawn with replacement; each variance
    has ``draws`` gradients behind it, on batches of its own.
    """
    import pandas as pd

    from paper_figures.inverse_law.sweep import Trainer

    apply(context.execution)
    settings = spec.settings
    trainer = Trainer(spec, context)
    state = trainer.advance(trainer.start(), 0, settings["warm"])
    point = trainer.algorithm.model(None, state, trainer.collective)[None]
    rows = []
    for batch in settings["batches"]:
        order = WithReplacement(len(trainer.problem.targets), batch, seed(spec.seed, "noise", batch))
        mean, total = torch.zeros(trainer.problem.d, dtype=torch.float64), 0.0
        for number in range(settings["draws"]):
            examples = order.indices(torch.tensor([number]))[0]
            gradient = trainer.gradients(point, trainer.buffers, [trainer.problem.fetch(examples)])[1][0]
            step = gradient.double().cpu() - mean  # Welford's sums
            mean += step / (number + 1)
            total += float(step.square().sum()) * number / (number + 1)
        rows.append((batch, total / (settings["draws"] - 1)))
    return Outcome("finished", {}, {"variance": pd.DataFrame(rows, columns=["batch", "variance"])})


def overshoot(spec: RunSpec, context: Context) -> Outcome:
    """How far word batches exceed their size, in last sentences: 0 is an exact fit, 1 a sentence too many.

    ``worst`` is over all full batches of all ``words``; ``short`` counts full batches below their size.
    """
    pairs = load_pairs(spec.settings["corpus"], "train", root=context.data)
    lengths = [len(english.split()) for _, english in pairs]
    worst, short, sizes = -math.inf, 0, []
    for words in spec.settings["words"]:
        batches = word_batches(lengths, words, seed(spec.seed, "order"))
        for batch in batches[:-1]:
            counts = [lengths[i] for i in batch.tolist()]
            worst = max(worst, (sum(counts) - words) / counts[-1])
            short += sum(counts) < words
        sizes.append(len(batches))
    return Outcome("finished", {"worst": worst, "short": short, "batches": sizes})


def attention(spec: RunSpec, context: Context) -> Outcome:
    """Attention of the translation network on ragged random sentences, in float64."""
    apply(context.execution)
    settings = spec.settings
    network: Any = build("cgru", vocabulary=settings["vocabulary"], embedding=24, hidden=32)
    initialise(network, seed(spec.seed, "weights"))
    network = network.double()
    generator = torch.Generator().manual_seed(seed(spec.seed, "sentences"))
    lengths = torch.randint(1, settings["longest"] + 1, (settings["sentences"],), generator=generator)
    mask = torch.arange(settings["longest"]) < lengths[:, None]
    source = torch.randint(4, settings["vocabulary"], mask.shape, generator=generator) * mask
    with torch.no_grad():
        encoded = network.encode(source, mask)
        state = encoded.start
        sums, least, on_padding, scores = [], math.inf, 0.0, []
        for word in range(settings["steps"]):
            step = network.step(encoded, torch.full((len(source),), 4 + word), state)
            state = step.state
            sums.append(step.attention.sum(1))
            least = min(least, float(step.attention.min()))
            on_padding = max(on_padding, float(step.attention[~mask].abs().max()))
            keys = encoded.keys[:, :1]  # one encoder state
            scores.append(network.score(torch.tanh(network.query(state)[:, None] + keys)).numel() / len(source))
    together = torch.cat(sums)
    return Outcome(
        "finished",
        {
            "sum_low": float(together.min()),
            "sum_high": float(together.max()),
            "least": least,
            "on_padding": on_padding,
            "scores_per_state": scores,
        },
    )
