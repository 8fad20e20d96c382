"""The experiment ``matex_agd/layers``: what each layer of AlexNet and GoogLeNet computes and has to send."""

from __future__ import annotations

from typing import Any

import pandas as pd
from torch import nn

from suite.experiment import Context, Outcome, RunSpec
from suite.models.network import calls
from suite.models.registry import construct

NETWORKS = ("caffe_alexnet", "caffe_googlenet")
BATCH = 2


def measure(name: str) -> pd.DataFrame:
    """One row per layer with parameters, in the order of execution, from a forward pass on the meta device.

    Columns: layer, flops (2 x multiply-adds per example, forward), weights, biases (numbers in each tensor).
    """
    network: Any = construct(name)
    rows = [
        {
            "layer": called,
            "flops": 2 * output.numel() // BATCH * layer.weight[0].numel(),
            "weights": layer.weight.numel(),
            "biases": 0 if layer.bias is None else layer.bias.numel(),
        }
        for called, layer, _, output in calls(network, BATCH)
        if isinstance(layer, nn.Conv2d | nn.Linear)
    ]
    table = pd.DataFrame(rows)
    counted = int(table.weights.sum() + table.biases.sum())
    assert counted == sum(p.numel() for p in network.parameters()), name
    return table


def layers(spec: RunSpec, context: Context) -> Outcome:
    """Layer tables of both networks and their totals."""
    curves = {name: measure(name) for name in NETWORKS}
    results: dict[str, Any] = {}
    for name, table in curves.items():
        results |= {
            f"{name} parameters": int(table.weights.sum() + table.biases.sum()),
            f"{name} tensors": int((table.weights > 0).sum() + (table.biases > 0).sum()),
            f"{name} forward multiply-adds": int(table.flops.sum()) // 2,
        }
    main = construct("caffe_googlenet", aux=False)
    results["caffe_googlenet without auxiliary heads"] = sum(p.numel() for p in main.parameters())
    return Outcome("finished", results, curves)
