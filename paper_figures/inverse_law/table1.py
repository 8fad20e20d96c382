"""Table 1: data set, network, parameters, layers, learning rates and batch sizes of each image experiment.

The networks are built and counted; rates, batch sizes, seeds and test grid are read from the specifications of the
``paper`` profile.
"""

from __future__ import annotations

from paper_figures.inverse_law.settings import ROWS, curve_specs
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.spec import RunSpec

TABLE = tuple(next(row for row in ROWS if row.table == number) for number in range(1, 12))
NETWORKS = RunSpec(
    "inverse_law/networks", {"networks": [{"name": row.model, "classes": row.classes} for row in TABLE]}
)


def runs(profile: str) -> Groups:
    """One run that builds every network, the same at every profile."""
    return {"networks": (NETWORKS,)}


def measure_networks(evidence: Evidence) -> Quantities:
    """Parameters and weight layers of the networks as built."""
    run = evidence.run("networks")
    for number in range(1, len(TABLE) + 1):
        yield f"r{number:02}-parameters", exact(run.results[f"parameters_{number}"], runs=[run.id])
        yield f"r{number:02}-layers", exact(run.results[f"layers_{number}"], runs=[run.id])


def measure_settings(evidence: Evidence) -> Quantities:
    """What the runs of the ``paper`` profile are specified with."""
    for number in range(1, len(TABLE) + 1):
        rows = [row for row in ROWS if row.table == number]
        specs = [spec for row in rows for spec in curve_specs(row, "paper")]
        rates = sorted({s.settings["rate"] for s in specs if s.settings["descent"]["rule"] == "torch"})
        batches = {s.settings["batch"] for s in specs}
        yield f"r{number:02}-learning-rate", exact(rates)
        yield f"r{number:02}-batch-range", exact([min(batches), max(batches)])
    mnist, cifar10, cifar100 = (
        [s for row in ROWS if row.data == data for s in curve_specs(row, "paper")]
        for data in ("mnist", "cifar10", "cifar100")
    )
    yield "runs-averaged-mnist", exact(len({s.seed for s in mnist}))
    yield "cv-fraction", exact(100 * mnist[0].settings["share"])
    yield "record-interval", exact([group[0].settings["every"] for group in (mnist, cifar10, cifar100)])


ARTIFACTS = (
    Artifact(
        "inverse_law/table1",
        "Image recognition: data, network, size, learning rate, batch sizes",
        runs,
        (measure_networks, measure_settings),
    ),
)
