"""The cost model's cases: the layers of both networks as stored, and their exchange over any link.

The panels of Fig. 1 start from the layers; the bounds on what the paper's algorithms can hide go over the links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from paper_figures.matex_agd.settings import EFFECTIVE_BATCH
from suite.cost_models.machines import DGX1, SANDY_BRIDGE, LayerCost, Machine, exchange, network
from suite.cost_models.overlap import AllReduce, NetworkTimes, Order, delayed, layer_wise, rates, synchronous
from suite.papers.artifact import Evidence
from suite.spec import RunSpec

ALEXNET, GOOGLENET = "caffe_alexnet", "caffe_googlenet"
LAYERS = RunSpec("matex_agd/layers")


def layer_runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """The layers of both networks, at every profile."""
    return {"layers": (LAYERS,)}


def layer_costs(evidence: Evidence, name: str) -> tuple[LayerCost, ...]:
    """Layers of a network from the stored table, first to last."""
    table = evidence.run("layers").curve(name)
    columns = zip(table["flops"].tolist(), table["weights"].tolist(), table["biases"].tolist(), strict=True)
    return tuple(LayerCost(float(flops), tuple(n for n in tensors if n)) for flops, *tensors in columns)


@dataclass(frozen=True)
class Case:
    """One network on one link, for statements that hold on any."""

    network: NetworkTimes
    cost: AllReduce

    def hidden_by_layers(self, order: Order) -> float:
        """Seconds that layer-wise exchange saves over synchronous; its copies and calls count against it."""
        return synchronous(self.network, self.cost) - layer_wise(self.network, self.cost, order)

    @property
    def delayed(self) -> dict[int, float]:
        """Seconds of an iteration by delay."""
        return {delay: delayed(self.network, self.cost, delay) for delay in (1, 2, 3)}


def link_grid(evidence: Evidence) -> Iterator[Case]:
    """Both networks on 8 devices of the DGX-1, over 30 links from far too slow to far too fast."""
    for name in (ALEXNET, GOOGLENET):
        made = network(layer_costs(evidence, name), EFFECTIVE_BATCH[name] / 8, DGX1.centre())
        for alpha in (0.0, 1e-6, 1e-5, 1e-4, 1e-3):
            for beta in (1e8, 1e9, 4e9, 1.6e10, 6.4e10, 1e12):
                yield Case(made, AllReduce(alpha, beta, 8))


@dataclass(frozen=True)
class OverlapPanel:
    """One panel of Fig. 1: a network by its name, on a machine."""

    name: str
    machine: Machine

    def relative(self, evidence: Evidence) -> list[tuple[int, list[dict[str, float]]]]:
        """For each device count: rates relative to no communication, at the centre and then at all corners."""
        return _relative(self, layer_costs(evidence, self.name))


@cache
def _relative(panel: OverlapPanel, layers: tuple[LayerCost, ...]) -> list[tuple[int, list[dict[str, float]]]]:
    settings = (panel.machine.centre(), *panel.machine.corners())
    return [
        (
            devices,
            [
                rates(network(layers, EFFECTIVE_BATCH[panel.name] / devices, setting), exchange(setting, devices))
                for setting in settings
            ],
        )
        for devices in panel.machine.devices
    ]


PANELS = {
    "a": OverlapPanel(ALEXNET, SANDY_BRIDGE),
    "b": OverlapPanel(ALEXNET, DGX1),
    "c": OverlapPanel(GOOGLENET, SANDY_BRIDGE),
    "d": OverlapPanel(GOOGLENET, DGX1),
}
