"""The paper's machine as numbers: who shares a node, and the constants of the cost models.

The constants are the outcome of the experiments ``rudra/cifar-times`` and ``rudra/imagenet-times``, which calibrate
them on a few stated rows of the paper's tables and predict the others; a test repeats the calibration and compares.
They stand here rounded because specifications of runs must hold plain values that do not depend on other runs.
"""

from __future__ import annotations

from typing import Any

NODES = {1: 1, 2: 1, 4: 2, 10: 4, 18: 4, 30: 8}  # footnote 4: learners to machines
JITTER = 0.05  # relative standard deviation of a gradient's time; assumed, the paper gives none
CIFAR_BYTES = 4 * 89_578
EPOCHS, TRAINING_IMAGES = 140, 50_000

# Seconds of one gradient of b examples by a learner with s learners on its machine:
# (per_call + per_example b) (1 + crowding (s - 1)).
CIFAR_SECONDS = {"per_call": 0.0041, "per_example": 0.00303, "crowding": 0.245, "jitter": JITTER}
CIFAR_UPDATE_SECONDS = 0.00118
INTERCONNECT = 9.6e10  # bytes per second in one direction: half of the printed 192 GB/s, which counts both
LATENCY = 1e-6  # seconds of an empty message; assumed
MEMORY = [LATENCY, 5.12e10]  # copies within a machine: a tenth of the printed 512 GB/s; assumed


def cifar_server(learners: int, jitter: float = JITTER) -> dict[str, Any]:
    """Settings of Rudra-base under the CIFAR-10 network."""
    return {
        "architecture": "base",
        "seconds": {**CIFAR_SECONDS, "jitter": jitter},
        "machines": NODES[learners],
        "model_bytes": CIFAR_BYTES,
        "network": [LATENCY, INTERCONNECT],
        "memory": MEMORY,
        "update_seconds": CIFAR_UPDATE_SECONDS,
    }


IMAGENET_BYTES = 289_000_000
LEARNERS_PER_NODE = 8  # 32 cores and learners of four threads
# Constants of the ImageNet model: seconds of one gradient as above, without crowding, because all its rows fill
# their machines alike, and the rate at which a server takes in or hands out a model, contention included.
IMAGENET_SECONDS = {"per_call": 0.6, "per_example": 0.184}
IMAGENET_BANDWIDTH = 3.9e9
IMAGENET_MEMORY = 3.8e9  # the same for a server and the learners on its machine


def imagenet_server(
    architecture: str, per_call: float, per_example: float, bandwidth: float, memory: float
) -> dict[str, Any]:
    """Settings of one of the three systems under the 289 MB network; its learners fill their machines."""
    settings: dict[str, Any] = {
        "architecture": architecture,
        "seconds": {"per_call": per_call, "per_example": per_example, "crowding": 0.0, "jitter": JITTER},
        "machines": 1,
        "model_bytes": IMAGENET_BYTES,
        "network": [LATENCY, bandwidth],
        "memory": [LATENCY, memory],
        "update_seconds": 0.0,
    }
    if architecture != "base":
        settings["tree"] = {"per_leaf": LEARNERS_PER_NODE, "fan_out": 8}
    return settings
