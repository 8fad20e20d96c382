"""Every layer of every network, with its initialisers and multipliers, is what ``tests/networks.txt`` says.

It shows a change of a network that nobody meant; counts and shapes are held against the papers in ``test_models.py``.
A change that is meant is written into it by ``sgd-suite refresh``, for which this file prints it as a script.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from suite.models.initialisers import ParameterSpec
from suite.models.registry import CLASSIFIERS, construct

FILE = Path(__file__).with_name("networks.txt")
# What a layer computes, in its attributes; those that it has are told, but for the usual values.
TOLD = {
    "in_channels": None, "out_channels": None, "in_features": None, "out_features": None, "num_features": None,
    "kernel_size": None, "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "groups": 1, "ceil_mode": None,
    "count_include_pad": None, "p": None, "eps": None, "momentum": None, "affine": True, "size": None, "alpha": None,
    "beta": None, "k": None, "missing": None,
    "num_embeddings": None, "embedding_dim": None, "normalized_shape": None,
}  # fmt: skip


NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in CLASSIFIERS}


def words(title: str) -> Iterator[str]:
    """A line per layer: its name, what it computes, and the rule of each parameter."""
    name, options = NETWORKS[title]
    for key, layer in construct(name, **options).named_modules():
        if next(layer.children(), None) is None:
            told = [f"{k}={v}" for k, usual in TOLD.items() if (v := shown(layer, k)) not in ("", shown_as(usual))]
            rules = [f"{parameter}: {ruled(rule)}" for parameter, rule in getattr(layer, "specs", {}).items()]
            yield " ".join([key, type(layer).__name__, *told, *rules])


def shown(layer: nn.Module, name: str) -> str:
    return shown_as(getattr(layer, name)) if hasattr(layer, name) else ""


def shown_as(value: object) -> str:
    """A number to six digits, a square's side once."""
    if isinstance(value, tuple) and len(set(value)) == 1:
        value = value[0]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def ruled(rule: ParameterSpec) -> str:
    factors = (rule.lr_multiplier, rule.decay_multiplier)
    return repr(rule.initialiser) + ("" if factors == (1, 1) else " rate x{:g} decay x{:g}".format(*factors))


@pytest.mark.parametrize("title", NETWORKS)
def test_a_network_s_layers(title: str) -> None:
    known = {part.partition("\n")[0]: part for part in FILE.read_text(encoding="utf-8").strip().split("\n\n")}
    written = [line.strip() for line in known.get(title, "").splitlines()[1:]]
    assert written == list(words(title)), "sgd-suite refresh writes them down anew"


if __name__ == "__main__":
    parts = ["\n".join([title, *(f"    {line}" for line in words(title))]) for title in NETWORKS]
    print("\n\n".join(parts))
