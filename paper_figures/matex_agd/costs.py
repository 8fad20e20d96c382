"""The cost model's cases of Fig. 1: the stored layers of both networks on each of the paper's two machines.

The constants of a machine are ranges (``suite/cost_models/machines.py``), so whatever is modelled is an interval over
the corners of its ranges.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from paper_figures.matex_agd.settings import EFFECTIVE_BATCH
from suite.claims.intervals import Interval
from suite.cost_models.machines import DGX1, SANDY_BRIDGE, LayerCost, Machine, Setting, exchange, network
from suite.cost_models.overlap import delayed, rates
from suite.lazy import np
from suite.papers.panel import Frame
from suite.spec import RunSpec

ALEXNET, GOOGLENET = "caffe_alexnet", "caffe_googlenet"
LAYERS = RunSpec("matex_agd/layers")
SHARED = (2, 4, 8)  # device counts at which there is something to communicate
DELAYED = ("AGD 1 comm", "AGD 2 comm", "AGD 3 comm")
CASES: dict[str, tuple[str, Machine]] = {  # network and machine of each panel of Fig. 1
    "a": (ALEXNET, SANDY_BRIDGE),
    "b": (ALEXNET, DGX1),
    "c": (GOOGLENET, SANDY_BRIDGE),
    "d": (GOOGLENET, DGX1),
}


def layer_costs(frame: Frame, name: str) -> tuple[LayerCost, ...]:
    """Layers of a network from the stored table, first to last."""
    table = frame.table(name, "layers")
    columns = zip(table["flops"].tolist(), table["weights"].tolist(), table["biases"].tolist(), strict=True)
    return tuple(LayerCost(float(flops), tuple(n for n in tensors if n)) for flops, *tensors in columns)


def settings_of(machine: Machine) -> tuple[Setting, ...]:
    """The centre of a machine's ranges, and then all 16 corners."""
    return machine.centre(), *machine.corners()


def relative(frame: Frame, letter: str) -> dict[int, list[dict[str, float]]]:
    """By number of devices: rates relative to no communication, at each of the machine's settings."""
    return _relative(letter, layer_costs(frame, CASES[letter][0]))


@cache
def _relative(letter: str, layers: tuple[LayerCost, ...]) -> dict[int, list[dict[str, float]]]:
    name, machine = CASES[letter]
    share = {devices: EFFECTIVE_BATCH[name] / devices for devices in machine.devices}
    return {
        devices: [rates(network(layers, batch, s), exchange(s, devices)) for s in settings_of(machine)]
        for devices, batch in share.items()
    }


def best_delayed(frame: Frame, letter: str, devices: int, over: str) -> np.ndarray:
    """The best delayed rate over that of another approach, at each setting."""
    return np.array([max(seen[n] for n in DELAYED) / seen[over] for seen in relative(frame, letter)[devices]])


def speedup(frame: Frame) -> Interval:
    """The largest speed-up over the panels and numbers of devices, of the machine on which it is larger."""
    found = []
    for letters in ("ac", "bd"):  # of one machine: its settings are common
        rows = [best_delayed(frame, letter, devices, "SGD") for letter in letters for devices in SHARED]
        found.append(np.max(rows, axis=0))  # [settings]
    return Interval(max(r[0] for r in found), max(r.min() for r in found), max(r.max() for r in found), 1)


def efficiency(frame: Frame) -> Interval:
    """Per cent: the largest rate on eight devices over eight times that on one, of the four panels."""
    devices, found = max(SHARED), []
    for letter, (name, machine) in CASES.items():
        layers, batch = layer_costs(frame, name), EFFECTIVE_BATCH[name]
        seconds = lambda share, layers=layers, batch=batch: network(layers, batch / share[1], share[0]).compute
        ideal = np.array([seconds((s, 1)) / (devices * seconds((s, devices))) for s in settings_of(machine)])
        found.append(100 * ideal * best_delayed(frame, letter, devices, "no comm"))
    top = np.max(found, axis=0)  # [settings]
    return Interval(top[0], top.min(), top.max(), 1)


def strong_scaling(frame: Frame) -> Interval:
    """The smallest gain in rate from doubling the nodes, 1 to 32: GoogLeNet's batch of 32 on the CPU cluster."""
    layers, gains = layer_costs(frame, GOOGLENET), []
    for setting in settings_of(SANDY_BRIDGE):
        nodes = (1, 2, 4, 8, 16, 32)
        seconds = [delayed(network(layers, 32 / n, setting), exchange(setting, n), 3) for n in nodes]
        gains.append(min(before / after for before, after in pairwise(seconds)))
    return Interval(gains[0], min(gains), max(gains), 1)
