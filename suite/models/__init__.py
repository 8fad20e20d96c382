"""Every network the five papers use, with exactly the parameters they print.

Importing this package, :func:`suite.models.table.networks` and :func:`suite.models.table.counts` do not import torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from suite.models.network import Network

__all__ = ["build", "classifier", "initialise"]


def build(name: str, **options: Any) -> nn.Module:
    """A network by name, in float32 on the CPU, in training mode.

    Every parameter is NaN until :func:`initialise` or the caller sets it, so a forgotten initialisation
    shows in the first loss; building reads no random numbers. Options are the keyword arguments of the
    network's own function: ``classes`` for all classifiers, ``input_size`` where a network can take other
    sizes, ``aux`` for GoogLeNet, and so on. ``cgru``, the translation network, needs ``vocabulary``,
    ``embedding`` and ``hidden``; it stands in no table because inverse_law states none of the three.

    :func:`suite.models.network.parameter_specs` gives the multipliers of rate and decay of each parameter.

    Raises:
        ValueError: unknown name, unknown or missing option, a size below 1, or an input too small.
    """
    import torch

    from suite.models.initialisers import reset_buffers
    from suite.models.registry import construct

    module = construct(name, **options).to_empty(device="cpu")
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(float("nan"))
    reset_buffers(module)
    return module


def classifier(name: str, **options: Any) -> Network:
    """A classifier of the registry; as :func:`build`. Raises ValueError for the name of a translator too."""
    from suite.models import network

    module = build(name, **options)
    if not isinstance(module, network.Network):
        raise ValueError(f"{name} is no classifier")
    return module


def initialise(module: nn.Module, seed: int) -> None:
    """Draw the parameters of a built network: by the suite's rules, or as the constructor of an own one does.

    See :func:`suite.models.initialisers.initialise`.
    """
    from suite.models import initialisers, network

    if isinstance(module, network.Own):
        module.draw(seed)
    else:
        initialisers.initialise(module, seed)
