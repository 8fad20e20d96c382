"""Table 4: error and minutes per epoch of four configurations on ImageNet; section 4.2's set-up of ImageNet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.rudra import rows
from paper_figures.rudra.groups import imagenet_times_group, left_out_group
from paper_figures.rudra.readings import left_out, minutes_by_row, simulated
from paper_figures.rudra.settings import IMAGENET_BYTES, imagenet_training, in_epochs
from paper_figures.rudra.simulations import CALIBRATED4, TABLE4, imagenet_left_out, imagenet_messages
from suite.claims.measured import exact, point
from suite.data.catalogue import DATASETS
from suite.models.table import counts
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    groups = {**imagenet_times_group(), "adv": (imagenet_messages("adv", 1, 4, 54),)}
    return {**groups, **left_out_group(profile, imagenet_left_out())}


def measure_arithmetic(evidence: Evidence) -> Quantities:
    hours = printed_value("rudra/table4/baseline-hours")
    names = ("base-hardsync-time", "base-softsync-time", "adv-softsync-time", "adv-star-softsync-time")
    yield "speedups", exact([60 * hours / printed_value(f"rudra/table4/{name}") for name in names])
    parameters = counts("caffe_alexnet").parameters
    note = "the network of Krizhevsky et al. (2012), which the text cites"
    yield "imagenet-model-parameters", exact(parameters, note=note)
    yield "imagenet-model-size", exact(4 * parameters / 1e6, note=note)
    yield "imagenet-model-size-parameters", exact(IMAGENET_BYTES / 4 / 1e6)
    data = DATASETS["imagenet"]
    yield "imagenet-model-images", exact([data.sizes["train"], data.sizes["validation"], data.classes])
    reference = imagenet_training((0, 256, 1), 30, 0)
    yield "imagenet-model-schedule", exact(in_epochs(reference.settings, data.sizes["train"]))


def measure_times(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    minutes = minutes_by_row(run)
    for name, row in TABLE4.items():
        fitted = name in CALIBRATED4
        value = minutes[row] / 60 if name == "baseline-hours" else minutes[row]
        yield name, point(value, runs=[run.id], note="calibration row" if fitted else "held out", proxy=fitted)
    adv = evidence.run("adv")
    yield "adv-staleness-one", simulated(adv.results["mean"], adv)


def measure_left_out(evidence: Evidence) -> Quantities:
    """The four times that calibrate four constants, each predicted from the three others."""
    found = left_out(evidence)
    for name in CALIBRATED4:
        yield f"{name.removesuffix('-time')}-left-out", found[TABLE4[name]]


def frame(evidence: Evidence) -> pd.DataFrame:
    """Minutes per epoch. Columns: row, source (of those of :mod:`rows`), value, low, high."""
    import pandas as pd

    minutes, others = minutes_by_row(evidence.run("times")), rows.left_out_if_stored(evidence)
    found: list[dict[str, Any]] = []
    for name, row in TABLE4.items():
        system, n, mu, learners = row
        unit = 60 if name == "baseline-hours" else 1  # minutes of what is printed
        base = {"row": f"Rudra-{system} ({n}, {mu}, {learners})"}
        found.append(base | {"source": "printed", "value": unit * printed_value(f"rudra/table4/{name}")})
        source = rows.FITTED if name in CALIBRATED4 else rows.HELD_OUT
        found.append(base | {"source": source, "value": minutes[row]})
        if row in others:
            found.append(base | rows.told(others[row]))
    return pd.DataFrame(found)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Times alone: no error of ImageNet is trained here."""
    table = frame(evidence)
    axes = figure.subplots()
    rows.dots(axes, table, list(dict.fromkeys(table["row"])))
    rows.logarithmic(axes)
    axes.set(xlabel="minutes per epoch", ylabel="(n, mu, lambda)")
    axes.legend(loc="center right")


ARTIFACTS = (
    Artifact(
        "rudra/table4",
        "Error and time of four configurations on ImageNet",
        runs,
        (measure_arithmetic, measure_times, measure_left_out),
        draw,
        alt="Printed and predicted minutes per epoch of six ImageNet configurations; calibration rows are crosses.",
        size=(7.0, 3.2),
        frame=frame,
    ),
)
