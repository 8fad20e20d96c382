"""Small systems in virtual time for the tests of this folder."""

from __future__ import annotations

from suite.parameter_server.simulation import Base, simulation

COSTS = {
    "seconds": {"per_call": 0.004, "per_example": 0.003, "crowding": 0.2, "jitter": 0.05},
    "machines": 3,
    "model_bytes": 400_000,
    "network": [1e-6, 1e10],
    "memory": [1e-6, 5e10],
    "update_seconds": 1e-4,
}


def system(architecture: str, learners: int, n: int, batch: int = 16, **changes: object) -> Base:
    tree = {} if architecture == "base" else {"tree": {"per_leaf": 4, "fan_out": 2}}
    return simulation({"architecture": architecture, **COSTS, **tree, **changes}, learners, n, batch, 0)


def messages_at(system: Base) -> list[float]:
    """The seconds of each message that the root will have been handed."""
    seen, serve = list[float](), system.port.serve
    system.port.serve = lambda seconds: seen.append(seconds) or serve(seconds)  # type: ignore[method-assign]
    return seen
