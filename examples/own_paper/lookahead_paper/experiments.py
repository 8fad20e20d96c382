"""What computes the runs. Imported when one begins: torch belongs here and in ``algorithm.py`` alone."""

from __future__ import annotations

import pandas as pd
import torch

from lookahead_paper.algorithm import Lookahead
from reference_impls.contract import GradientRef, Turn
from suite.communication.collectives import Local
from suite.experiment import Context
from suite.runs.store import Outcome
from suite.spec import RunSpec, seed
from suite.training.numerics import apply
from suite.training.optimizers import TorchSGD


def quadratic(spec: RunSpec, context: Context) -> Outcome:
    """Variance of the slow weights on the noisy quadratic (x - c)^2 / 2, c normal: the paper's model, curvature 1.

    Settings: ``rate``, ``k``, ``alpha``, ``rounds`` of k steps, and ``coordinates``, each an experiment of its own.
    The variance is the mean over the second half of the rounds.
    """
    apply(context.execution)
    s = spec.settings
    draw = torch.Generator().manual_seed(seed(spec.seed, "noise"))
    algorithm = Lookahead(TorchSGD(0.0, 0.0), Local(1), s["k"], s["alpha"])
    lr = torch.tensor(s["rate"], dtype=torch.float64)
    state = algorithm.init(torch.zeros(s["coordinates"], dtype=torch.float64))
    variances = []
    for t in range(s["rounds"] * s["k"]):
        turn = Turn(t, (GradientRef(0, t, t),))
        apart = algorithm.points(state, turn).parameters - torch.randn(
            1, s["coordinates"], generator=draw, dtype=torch.float64
        )
        state = algorithm.update(state, turn, (apart**2).mean(1) / 2, apart, lr)
        if (t + 1) % s["k"] == 0:
            variances.append(algorithm.model(state).square().mean().item())
    settled = variances[len(variances) // 2 :]
    curve = pd.DataFrame({"update": range(s["k"], len(variances) * s["k"] + 1, s["k"]), "variance": variances})
    return Outcome("finished", {"variance": sum(settled) / len(settled)}, {"variance": curve})
