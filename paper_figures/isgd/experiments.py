"""ISGD's small deterministic experiments: what they are, what they cost, and the runs that use them.

Nothing here imports torch; the bodies stand in the modules that ``load`` names.
"""

from __future__ import annotations

from typing import Any

from paper_figures.isgd import settings, stated
from suite.experiment import Body, Experiment
from suite.spec import RunSpec

SEEDS = 3
MARGINS = (3.0, 2.0, 1.0)
TRACED_UPDATES = 400  # eight to nine epochs of 45 batches

# The suite's settings for ISGD on the embedded digits, at the size they come in.
SMALL: dict[str, Any] = {
    **settings.DIGITS,
    "data": {"name": "digits", "transform": "scale", "size": 8},
    "model": {"name": "digits_lenet", "input_size": 8, "kernel": 3},
    "order": settings.FIXED_CYCLE,
}


def _traced(seed: int, updates: int = TRACED_UPDATES, **changes: Any) -> RunSpec:
    algorithm = settings.isgd(SMALL["rate"], **changes)
    return RunSpec("isgd/trace", {**SMALL, "algorithm": algorithm, "updates": updates}, seed)


def traces(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """ISGD at three margins; and with ``stop`` too large to matter, to see how long a chase would last."""
    groups = {f"margin {margin:g}": tuple(_traced(s, margin=margin) for s in range(SEEDS)) for margin in MARGINS}
    return groups | {"endless": tuple(_traced(s, margin=2.0, stop=100) for s in range(SEEDS))}


def paper_margin(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """ISGD at the margin of three deviations."""
    return {"margin 3": traces(profile)["margin 3"]}


def beside_sgd(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """ISGD and SGD side by side: under a limit that no loss reaches, and under one that many exceed."""
    common = {**SMALL, "updates": 200}
    unreached, tight = (settings.isgd(SMALL["rate"], margin=margin) for margin in (1e6, 1.0))
    return {
        "unreached limit": (RunSpec("isgd/beside-sgd", {**common, "algorithm": unreached}),),
        "tight limit": (RunSpec("isgd/beside-sgd", {**common, "algorithm": tight}),),
    }


def parallel(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """One batch over 2, 4 and 8 workers, summed along a tree, in float64."""
    algorithm = settings.isgd(SMALL["rate"], margin=0.0)
    common = {**SMALL, "algorithm": algorithm, "precision": "float64", "updates": 150, "workers": [1, 2, 4, 8]}
    return {"parallel": (RunSpec("isgd/parallel", common),)}


def parts(figure: str) -> RunSpec:
    """How the harness cuts the batches of a figure's configurations."""
    return RunSpec(
        "isgd/parts", {"examples": stated.EXAMPLES[figure], "configurations": stated.CONFIGURATIONS[figure]}
    )


def subproblem(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Eq. 11 and 12 and five small steps of Algorithm 2 on undertrained batches, in float64."""
    algorithm = settings.isgd(SMALL["rate"], margin=1.0)
    common = {**SMALL, "algorithm": algorithm, "precision": "float64", "updates": 320}
    return {"subproblem": (RunSpec("isgd/subproblem", {**common, "zeta": 1e-3, "steps": 5, "cases": 4}),)}


def operations(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    return {"operations": (RunSpec("isgd/operations", {"batches": [10, 10_000]}),)}


def sampling(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Fixed cycles over sizes that divide the data set and sizes that do not."""
    sizes = [[1437, 32], [1437, 479], [1000, 10], [60_000, 64], [50_000, 100]]
    return {"sampling": (RunSpec("isgd/sampling", {"sizes": sizes, "epochs": 3}),)}


def rates(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """The learning rate in use while the mean loss falls past the thresholds and rises again."""
    falling = [3.0, 2.5, 2.1, 2.05, 2.0, 1.95, 1.9, 1.5, 1.25, 1.2, 1.15, 1.1, 0.5]
    levels = [*falling, 1.3, 1.6, 2.2, 3.0]
    lowered = {"thresholds": stated.RATE_THRESHOLDS, "factors": stated.RATE_FACTORS}
    constant: dict[str, Any] = {"thresholds": [], "factors": [1.0]}
    return {
        name: (
            RunSpec("isgd/rates", {"rate": rate, "levels": levels, **(lowered if name == "ImageNet" else constant)}),
        )
        for name, rate in stated.RATES.items()
    }


def partition(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Batch gradients over partitions of 1,400 digits, in float64."""
    data = {**SMALL["data"], "subset": 1400}
    common = {**SMALL, "data": data, "precision": "float64", "algorithm": {"name": "sgd"}}
    return {"partition": (RunSpec("isgd/partition", {**common, "batches": [35, 100, 700]}),)}


def _trace() -> Body:
    from paper_figures.isgd.tracing import trace

    return trace


def _beside_sgd() -> Body:
    from paper_figures.isgd.tracing import beside_sgd

    return beside_sgd


def _parallel() -> Body:
    from paper_figures.isgd.parallel import parallel

    return parallel


def _parts() -> Body:
    from paper_figures.isgd.parallel import parts

    return parts


def _subproblem() -> Body:
    from paper_figures.isgd.subproblem import subproblem

    return subproblem


def _operations() -> Body:
    from paper_figures.isgd.mechanics import operations

    return operations


def _sampling() -> Body:
    from paper_figures.isgd.mechanics import sampling

    return sampling


def _rates() -> Body:
    from paper_figures.isgd.mechanics import rates

    return rates


def _partition() -> Body:
    from paper_figures.isgd.mechanics import partition

    return partition


EXPERIMENTS = {
    "isgd/trace": Experiment(_trace, lambda spec: 0.7),
    "isgd/beside-sgd": Experiment(_beside_sgd, lambda spec: 0.6),
    "isgd/parallel": Experiment(_parallel, lambda spec: 3.0),
    "isgd/parts": Experiment(_parts, lambda spec: 0.1),
    "isgd/subproblem": Experiment(_subproblem, lambda spec: 0.7),
    "isgd/operations": Experiment(_operations, lambda spec: 0.1),
    "isgd/sampling": Experiment(_sampling, lambda spec: 0.1),
    "isgd/rates": Experiment(_rates, lambda spec: 0.1),
    "isgd/partition": Experiment(_partition, lambda spec: 0.4),
}
