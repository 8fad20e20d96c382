"""The experiment ``matex_agd/compute``: how long GoogLeNet and AlexNet compute on an image, without communication.

Settings: ``model`` and ``beside``, two networks; ``batches``, the images of each at once; ``repeats``. The networks
take turns, so that slow drifts hit both alike. On a processor its own seconds are counted, not those of a clock on
the wall, which other programs would lengthen; on a card, those from start to end.
"""

from __future__ import annotations

import time
from functools import partial

from suite.experiment import Context, Outcome, RunSpec
from suite.runner.autotune import alternating, by_repeat
from suite.training.build import RandomPictures
from suite.training.numerics import apply


def compute(spec: RunSpec, context: Context) -> Outcome:
    """Times forward and backward passes in training mode. One of each to warm up is left out.

    Returns the table ``compute`` (network, repeat, seconds per image).
    """
    apply(context.execution)
    s = spec.settings
    batches, steps = dict(zip((s["model"], s["beside"]), s["batches"], strict=True)), {}
    for name, batch in batches.items():
        last = context.execution["channels_last"]
        problem = RandomPictures(name, spec.seed, batch, context.device, channels_last=last)
        steps[name] = partial(problem.differentiate, batch)
    clock = time.perf_counter if context.device == "cuda" else time.process_time
    seconds = alternating(steps, s["repeats"], clock, report=context.report)
    table = by_repeat(seconds, "network")
    table["seconds"] /= table["network"].map(batches)  # of an image
    return Outcome("finished", {}, {"compute": table})
