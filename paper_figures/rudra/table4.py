"""Table 4: error and minutes per epoch of four configurations on ImageNet; section 4.2's set-up of ImageNet."""

from __future__ import annotations

from paper_figures.rudra.groups import imagenet_times_group, left_out_group
from paper_figures.rudra.readings import final_error, left_out, minutes_by_row, simulated
from paper_figures.rudra.settings import IMAGENET_BYTES, imagenet_training, in_epochs
from paper_figures.rudra.simulations import CALIBRATED4, TABLE4, imagenet_left_out, imagenet_messages
from suite.claims.measured import exact, point
from suite.data.catalogue import DATASETS
from suite.models.table import counts
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.printed import printed_value


def runs(profile: str) -> Groups:
    groups = {**imagenet_times_group(), "adv": (imagenet_messages("adv", 1, 4, 54),)}
    groups |= left_out_group(profile, imagenet_left_out())
    if profile == "paper":
        groups["base-hardsync"] = (imagenet_training((0, 16, 18), 30, 0),)
        groups["baseline"] = (imagenet_training((0, 256, 1), 30, 0),)
    return groups


def measure_arithmetic(evidence: Evidence) -> Quantities:
    hours = printed_value("rudra/table4/baseline-hours")
    rows = ("base-hardsync-time", "base-softsync-time", "adv-softsync-time", "adv-star-softsync-time")
    yield "speedups", exact([60 * hours / printed_value(f"rudra/table4/{name}") for name in rows])
    parameters = counts("caffe_alexnet").parameters
    note = "the network of Krizhevsky et al. (2012), which the text cites"
    yield "imagenet-model-parameters", exact(parameters, note=note)
    yield "imagenet-model-size", exact(4 * parameters / 1e6, note=note)
    yield "imagenet-model-size-parameters", exact(IMAGENET_BYTES / 4 / 1e6)
    data = DATASETS["imagenet"]
    yield "imagenet-model-images", exact([data.sizes["train"], data.sizes["validation"], data.classes])
    hardsync = imagenet_training((0, 16, 18), 30, 0)
    yield "imagenet-model-schedule", exact(in_epochs(hardsync.settings, data.sizes["train"]))


def measure_times(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    minutes = minutes_by_row(run)
    for name, row in TABLE4.items():
        fitted = name in CALIBRATED4
        value = minutes[row] / 60 if name == "baseline-hours" else minutes[row]
        kind, note = ("proxy", "calibration row") if fitted else ("simulated", "held out")
        yield name, point(value, kind=kind, runs=[run.id], note=note)
    adv = evidence.run("adv")
    yield "adv-staleness-one", simulated(adv.results["mean"], adv)


def measure_errors(evidence: Evidence) -> Quantities:
    if evidence.profile == "paper":
        yield "base-hardsync-top1", final_error(evidence, "base-hardsync")
        yield "baseline-top1", final_error(evidence, "baseline")


def measure_left_out(evidence: Evidence) -> Quantities:
    """The four times that calibrate four constants, each predicted from the three others."""
    found = left_out(evidence)
    for name in CALIBRATED4:
        yield f"{name.removesuffix('-time')}-left-out", found[TABLE4[name]]


ARTIFACTS = (
    Artifact(
        "rudra/table4",
        "Error and time of four configurations on ImageNet",
        runs,
        (measure_arithmetic, measure_times, measure_errors, measure_left_out),
    ),
)
