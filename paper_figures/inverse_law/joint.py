"""The runs of ``collapse`` and its predictions: networks at rates on which no constant was fitted, on fresh seeds.

The constants stand in ``published/predictions/inverse_law.toml``, written before the runs: both laws fitted to
searches of Fig. 1 that were stored then, as ``tests/inverse_law/test_collapse.py`` does again.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from paper_figures.inverse_law.law import crossings, searches
from paper_figures.inverse_law.settings import BY_NAME, Row, curve_specs, sweep_spec
from suite.batch_size.joint_choice import Counts, JointLaw
from suite.papers.artifact import Frame, Groups, Missing

PREDICTIONS = Path(__file__).parents[1] / "published" / "predictions" / "inverse_law.toml"


@dataclass(frozen=True)
class Network:
    """A network whose updates are predicted at ``rates`` and ``sizes``, from the stored curves named by ``known``."""

    name: str
    title: str
    known: tuple[str, ...]
    rates: tuple[float, ...]
    sizes: tuple[int, ...]
    seeds: range

    def row(self, rate: float) -> Row:
        """The network's first stored curve, at another rate."""
        return replace(BY_NAME[self.known[0]], rate=rate)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Losses in nats, highest first."""
        return BY_NAME[self.known[0]].thresholds("reduced")

    def group(self, rate: float, batch: int) -> str:
        return f"{self.name}/{rate:g}/{batch}"


FRESH = 10  # the first seed that no search of Fig. 1 has
NETWORKS = (
    Network("mnist_medium", "MNIST, medium LeNet", ("mnist_medium-lr0p01", "mnist_medium-lr0p05"),
            (0.02, 0.035, 0.07), (1, 2, 4, 8, 16, 64), range(FRESH, FRESH + 20)),
    Network("mnist_small", "MNIST, small LeNet", ("mnist_small-lr0p01",),
            (0.03, 0.1), (1, 2, 4, 16, 64), range(FRESH, FRESH + 5)),
    Network("mnist_large", "MNIST, large LeNet", ("mnist_large-lr0p01",),
            (0.03, 0.1), (1, 2, 4, 16, 64), range(FRESH, FRESH + 5)),
    Network("cifar10", "CIFAR-10, LeNet", ("cifar10_small-lr0p05",),
            (0.02, 0.08), (2, 4, 8, 16, 64), range(FRESH, FRESH + 5)),
    Network("cifar100", "CIFAR-100, LeNet", ("cifar100_small-lr0p05",),
            (0.02, 0.08), (2, 4, 8, 16, 64), range(FRESH, FRESH + 8)),
)  # fmt: skip


def collapse_runs(profile: str) -> Groups:
    """A group of searches per network, rate and batch size, at reduced alone."""
    if profile != "reduced":
        return {}
    return {
        network.group(rate, batch): tuple(
            sweep_spec(network.row(rate), batch, seed, profile) for seed in network.seeds
        )
        for network in NETWORKS
        for rate in network.rates
        for batch in network.sizes
    }


def known_runs(profile: str = "reduced") -> Groups:
    """The searches of Fig. 1 on which the constants were fitted, a group per curve."""
    if profile != "reduced":
        return {}
    return {f"known {name}": curve_specs(BY_NAME[name], profile) for network in NETWORKS for name in network.known}


def known_counts(frame: Frame, network: Network, threshold: float) -> Counts:
    """Updates to a threshold by rate, from the stored curves of a network. Raises Missing where one is not whole."""
    if lacking := [name for name in network.known if not frame.whole(f"known {name}")]:
        raise Missing(f"lacks the curves {', '.join(lacking)}")
    return {
        BY_NAME[name].rate or 0.0: crossings(searches(frame, [f"known {name}"]), threshold) for name in network.known
    }


@dataclass(frozen=True)
class Prediction:
    """What was foretold of a network and threshold: the joint law, and the printed law scaled to every rate."""

    law: JointLaw
    floor: float  # N_inf x rate
    sensitivity: float  # alpha

    def first_order(self, batch: float, rate: float) -> float:
        """Updates by the printed law, N_inf inverse to the rate and alpha the same at all rates."""
        return self.floor / rate + self.sensitivity / batch


@cache
def predictions() -> Mapping[str, Mapping[float, Prediction]]:
    """By network and threshold, as written before the runs."""
    table: Mapping[str, Any] = tomllib.loads(PREDICTIONS.read_text(encoding="utf-8"))["networks"]
    return {
        name: {float(loss): Prediction(JointLaw(*row["joint"]), *row["law"]) for loss, row in rows.items()}
        for name, rows in table.items()
    }
