"""Settings of a training that several papers share, as plain values."""

from __future__ import annotations

from typing import Any


def caffe(network: str, decay: float, rate: float, *, multipliers: bool = True, **more: Any) -> dict[str, Any]:
    """Settings of a training by Caffe's solver at momentum 0.9, with ``more`` of them beside.

    Caffe's own examples have ``multipliers`` of rate and decay for each parameter.
    """
    descent: dict[str, Any] = {"rule": "caffe", "momentum": 0.9, "decay": decay}
    if multipliers:
        descent["multipliers"] = True
    return {"model": {"name": network}, "descent": descent, "rate": rate, **more}


def narrow_alexnet(rate: float, **more: Any) -> dict[str, Any]:
    """The stand-in for AlexNet on ImageNet: an eighth as wide, on CIFAR-100 enlarged, with AlexNet's decay."""
    data = {"name": "cifar100", "transform": "mean-image", "enlarge": 67}
    return caffe("narrow_alexnet", 0.0005, rate, data=data, **more)
