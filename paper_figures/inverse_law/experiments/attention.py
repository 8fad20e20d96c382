"""The experiment ``inverse_law/attention``: weights and scores of the attention of the translation network."""

from __future__ import annotations

import math
from typing import Any

import torch

from suite.experiment import Context
from suite.models import build, initialise
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.numerics import apply


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
