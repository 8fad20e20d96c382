"""Numbers the paper prints, read from the published claims: the one place they are written down."""

from __future__ import annotations

from suite.claims.measured import exact, point
from suite.papers.artifact import Evidence, Quantities

ROWS = ("serial", "sgd", "agd1", "agd2")
BATCHES = (1000, 2000, 3000, 4000, 5000)


def printed(claim: str) -> tuple[float, ...]:
    """Printed values of a claim, e.g. ``printed("fig1a/speedup")``."""
    from suite.papers.verdicts import published

    return next(c.printed for c in published("matex_agd") if c.id == f"matex_agd/{claim}")


def table1() -> dict[str, list[float]]:
    """Table 1 as printed: accuracy by row, at the five checkpoints."""
    return {row: [printed(f"table1/{row}-b{batch}")[0] for batch in BATCHES] for row in ROWS}


def arithmetic_of_table1(evidence: Evidence) -> Quantities:
    """What follows from the twenty printed numbers alone."""
    table = table1()
    values = [value for row in table.values() for value in row]
    yield (
        "grid",
        exact(float(smallest_set(values)), note="smallest number of images of which all 20 are whole counts"),
    )
    chance = 1 / 1000
    deviation = (chance * (1 - chance) / 50_000) ** 0.5
    note = f"1/classes; one standard deviation over 50,000 images is {deviation:.5f}"
    yield "agd2-chance", exact(chance, note=note)
    last = [table[row][-1] / table["serial"][-1] for row in ("agd1", "agd2")]
    yield "agd1-over-serial-5000", exact(last)


def smallest_set(shares: list[float], limit: int = 200_000) -> int:
    """The smallest N for which every share times N is whole, to the five digits printed."""
    scaled = [round(share * 10**5) for share in shares]
    return next(n for n in range(1, limit) if all(value * n % 10**5 == 0 for value in scaled))


def sizes(evidence: Evidence) -> Quantities:
    """Batches, devices and data as the declared runs, the machine and the data set's catalogue have them."""
    from paper_figures.matex_agd import settings
    from suite.cost_models.machines import DGX1
    from suite.data.catalogue import DATASETS

    devices = max(DGX1.devices)
    yield "dgx-devices", exact(devices, note="eight P100 in a DGX-1")
    alexnet = [
        s.settings["batch"] * s.settings["workers"] for specs in settings.table1("paper").values() for s in specs
    ]
    batch = sum(alexnet) / len(alexnet)
    yield (
        "alexnet-batch",
        exact([batch, batch / devices], note="batch of the runs at the paper profile, over the devices"),
    )
    batch = settings.EFFECTIVE_BATCH["caffe_googlenet"]
    yield "googlenet-batch", exact([batch, devices, batch / devices], note="batch of the simulated runs")
    images = DATASETS["imagenet"]
    gigabytes = images.sizes["train"] * 3 * 256 * 256 / 1e9
    yield (
        "dataset",
        point(
            [images.sizes["train"], images.sizes["validation"], images.classes, gigabytes],
            kind="exact",
            note="250 GB is what 256 x 256 pixels as bytes take",
        ),
    )
