"""A question of ours: is the inverse law the first order of one curve for all learning rates, with a pole?

Counted as updates x rate, the time to a loss would depend on rate / M alone,

    N(M, eta) = (t0 - tau ln(1 - kappa eta / M)) / eta,

and where kappa eta / M is 1 and more the loss would never be reached. The constants are in
``published/predictions/inverse_law.toml``, written before the runs that are judged here: other rates, fresh seeds.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from paper_figures.inverse_law.collapse_plots import draw_networks
from paper_figures.inverse_law.collapse_runs import (
    NETWORKS,
    Network,
    Prediction,
    collapse_runs,
    known_counts,
    predictions,
)
from paper_figures.inverse_law.equivalence import Misfits, largest
from paper_figures.inverse_law.readings import crossings
from paper_figures.inverse_law.settings import LIMIT
from suite.batch_size.law import Updates
from suite.claims.estimate import over_seeds
from suite.claims.intervals import Interval, jackknife_variance
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.runs.store import Run

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

ARRIVES, FAILS = 0.8, 1.1  # kappa rate / M below which a batch is foretold to arrive, above which not to
NEAR, POLE = 0.25, 0.7  # kappa rate / M between which the misfit tells the laws apart: beyond, seeds scatter too much


class Point(NamedTuple):
    """One combination of threshold, rate and batch size with its updates by seed."""

    threshold: float
    rate: float
    updates: Updates
    foretold: Prediction

    @property
    def load(self) -> float:
        """kappa rate / M by the constants fixed before."""
        return self.foretold.law.load(self.updates.batch, self.rate)

    @property
    def arrives(self) -> bool:
        """Whether the threshold is foretold to be reached within the limit."""
        return self.load < ARRIVES and self.foretold.law.predict(self.updates.batch, self.rate) <= LIMIT

    @property
    def decided(self) -> bool:
        """Whether the constants say clearly enough that this combination arrives, or that it does not."""
        return not ARRIVES <= self.load <= FAILS


def points(
    evidence: Evidence, network: Network, foretold: Mapping[float, Prediction]
) -> tuple[list[Point], list[Run]]:
    """All combinations of a network, and the runs behind them. Raises Missing where one is not stored."""
    found, behind = [], list[Run]()
    for rate in network.rates:
        for batch in network.sizes:
            runs = evidence.runs(network.group(rate, batch))
            behind += runs
            for threshold in network.thresholds:
                (updates,) = crossings(runs, threshold)
                found.append(Point(threshold, rate, updates, foretold[threshold]))
    return found, behind


def measure_network(network: Network, foretold: Mapping[float, Prediction]) -> Callable[[Evidence], Quantities]:
    """A measure of one network against what was foretold of it."""

    def measure(evidence: Evidence) -> Quantities:
        found, runs = points(evidence, network, foretold)
        ids = [run.id for run in runs]
        arrived = [p for p in found if p.arrives and not p.updates.censored]
        far, near = [p for p in arrived if p.load <= NEAR], [p for p in arrived if NEAR < p.load < POLE]
        off, first = log_misfits(near)
        yield f"far-{network.name}", over_seeds(largest([_misfits(far)]), ids, f"{len(far)} points")
        yield f"rms-{network.name}", over_seeds(jackknife(off, rms), ids, f"{len(near)} points")
        yield f"beyond-first-order-{network.name}", over_seeds(better(off, first), ids, f"{len(near)} points")
        share, note = share_foretold(found)
        yield f"arrivals-{network.name}", over_seeds(share, ids, note)

    return measure


def _misfits(arrived: Sequence[Point]) -> Misfits:
    """Misfits of the joint law, whose constants were fixed before; they scatter between points about alike."""
    import numpy as np

    off, _ = log_misfits(arrived)
    seeds = off.shape[1]
    own = off.var(1, ddof=1) / seeds
    return Misfits(off.mean(1), np.sqrt(np.maximum(own, own.mean())), (seeds - 1) * len(off), seeds)


def log_misfits(arrived: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    """log(seen / foretold) [P, S] by the joint law, and by the printed law scaled to every rate."""
    import numpy as np

    if not arrived:
        raise Missing("a combination that arrived as foretold")
    logs = np.log(np.array([p.updates.seen for p in arrived], dtype=float))  # [P, S]
    joint = [math.log(p.foretold.law.predict(p.updates.batch, p.rate)) for p in arrived]
    first = [math.log(p.foretold.first_order(p.updates.batch, p.rate)) for p in arrived]
    return logs - np.array(joint)[:, None], logs - np.array(first)[:, None]


def rms(misfits: np.ndarray) -> float:
    """Root mean square, over points, of the mean misfit over seeds; ``misfits`` is [P, S]."""
    import numpy as np

    return float(np.sqrt((misfits.mean(1) ** 2).mean()))


def jackknife(misfits: np.ndarray, statistic: Callable[[Any], float]) -> Interval:
    """A statistic of [..., P, S] with Student's t on the jackknife that leaves out one seed at a time."""
    import numpy as np
    from scipy import stats

    seeds = misfits.shape[-1]
    whole = statistic(misfits)
    if seeds < 2:
        return Interval(whole, -math.inf, math.inf, seeds)
    parts = np.array([statistic(np.delete(misfits, j, -1)) for j in range(seeds)])
    half = float(stats.t.ppf(0.975, seeds - 1)) * math.sqrt(jackknife_variance(parts))
    return Interval(whole, whole - half, whole + half, seeds)


def better(joint: np.ndarray, first: np.ndarray) -> Interval:
    """The printed law's root mean square misfit less the joint law's; above 0 the joint law foretells better."""
    import numpy as np

    def difference(both: np.ndarray) -> float:
        return rms(both[1]) - rms(both[0])

    return jackknife(np.stack([joint, first]), difference)


def share_foretold(found: Sequence[Point]) -> tuple[Interval, str]:
    """The share of combinations near the pole whose arrival, or failure to arrive, was foretold; mean over seeds.

    Combinations count whose load lies above NEAR and outside ARRIVES to FAILS. The note names those foretold wrongly.
    """
    import numpy as np

    near = [p for p in found if p.load > NEAR and p.decided]
    if not near:
        raise Missing("a combination near the pole")
    right = np.array([[(n is not None) == p.arrives for n in p.updates.seen] for p in near])  # [P, S]
    share = jackknife(right, lambda part: float(part.mean()))
    wrong = [
        f"loss {p.threshold:g} rate {p.rate:g} M = {p.updates.batch} ({p.load:.2f})"
        for p, each in zip(near, right, strict=True)
        if not each.all()
    ]
    note = f"{len(near)} combinations, {sum(p.arrives for p in near)} foretold to arrive"
    held = Interval(share.mean, max(share.low, 0.0), min(share.high, 1.0), share.n)
    return held, note + (f"; otherwise: {', '.join(wrong)}" if wrong else "")


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per network, threshold, rate, batch size and run; ``updates`` is NaN beyond the limit.

    ``source`` is "fresh", or "fitted to" for the searches from which the constants come.
    """
    import pandas as pd

    rows, foretold = list[tuple[Any, ...]](), predictions()
    for network in NETWORKS:
        with contextlib.suppress(Missing):
            for p in points(evidence, network, foretold[network.name])[0]:
                rows += _rows(network, "fresh", p.threshold, p.rate, p.updates, p.load)
        for threshold, known in foretold[network.name].items():
            with contextlib.suppress(Missing):
                for rate, curve in known_counts(evidence, network, threshold).items():
                    for updates in curve:
                        load = known.law.load(updates.batch, rate)
                        rows += _rows(network, "fitted to", threshold, rate, updates, load)
    columns = ["network", "source", "threshold", "rate", "batch", "run", "updates", "load"]
    return pd.DataFrame(rows, columns=columns)


def _rows(
    network: Network, source: str, threshold: float, rate: float, updates: Updates, load: float
) -> list[tuple[Any, ...]]:
    """A row per run of a combination."""
    return [
        (network.name, source, threshold, rate, updates.batch, at, math.nan if n is None else n, load)
        for at, n in enumerate(updates.seen)
    ]


def _following(evidence: Evidence, updates: Callable[[Prediction, Network, int, float], float]) -> Evidence:
    """Every fresh run's updates as ``updates`` says from prediction, network, batch size and rate, 5% about it."""
    for network in NETWORKS:
        foretold = predictions()[network.name]

        def told(run: Run, network: Network = network, foretold: Mapping[float, Prediction] = foretold) -> Run:
            s, draw = run.spec.settings, random.Random(run.id)
            laws = [updates(foretold[t], network, s["batch"], s["rate"]) for t in network.thresholds]
            return forged(run, {"crossed_training": [law * math.exp(draw.gauss(0, 0.05)) for law in laws]})

        groups = [network.group(rate, batch) for rate in network.rates for batch in network.sizes]
        evidence = edited(evidence, told, *groups)
    return evidence


@counterfeit(
    "inverse_law/collapse/beyond-first-order-mnist_medium",
    *(f"inverse_law/collapse/arrivals-{network.name}" for network in NETWORKS),
)
def printed_law_at_all_rates(evidence: Evidence) -> Evidence:
    """Updates follow the printed law with N_inf inverse to the rate: every batch arrives."""
    return _following(evidence, lambda foretold, _, batch, rate: foretold.first_order(batch, rate))


@counterfeit(*(f"inverse_law/collapse/{name}-{n.name}" for name in ("far", "rms") for n in NETWORKS))
def rate_without_effect(evidence: Evidence) -> Evidence:
    """As many updates at every rate as at the last one that the constants come from."""
    return _following(evidence, lambda foretold, network, batch, _: foretold.first_order(batch, network.last_rate))


def draw_collapse(evidence: Evidence, figure: Figure) -> None:
    draw_networks(evidence, figure)


ARTIFACTS = (
    Artifact(
        "inverse_law/collapse",
        "Updates x rate against rate / M: one curve for all learning rates, foretold",
        collapse_runs,
        tuple(measure_network(network, predictions()[network.name]) for network in NETWORKS),
        draw=draw_collapse,
        frame=frame,
        alt="One panel per network: updates times learning rate against learning rate over batch size; the curve "
        "foretold for each loss with its pole, the runs that arrived and, hollow at the top, those that did not.",
        size=(10.0, 7.0),
    ),
)
