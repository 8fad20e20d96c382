"""Table 1: the four networks with their numbers of operators, and the sizes of models and data sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from paper_figures.crossbow import settings
from suite.claims.estimate import exact, point
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed_value
from suite.report.style import PALETTE, PRINTED

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MIB, GIB, PAGE, FLOAT = 2**20, 2**30, 4096, 4  # bytes
IMAGENET_IMAGES, IMAGENET_SHAPE = 1_431_167, (3, 256, 256)  # training, validation and test; as ISGD's paper counts
PASCAL_PROCESSORS, CORES_PER_PROCESSOR, PASCAL_GIGABYTES = 28, 128, 12  # NVIDIA's Titan X of 2016 (GP102)
CLAIM_OF = {
    "crossbow_lenet": "lenet",
    "crossbow_resnet32": "resnet-32",
    "crossbow_vgg16": "vgg-16",
    "crossbow_resnet50": "resnet-50",
}


def runs(profile: str) -> settings.Groups:
    return {"sizes": (settings.SIZES,)}


def measure_inputs(_: Evidence) -> Quantities:
    """Sizes of the data sets as float32, in MiB."""
    mnist = DATASETS["mnist"]
    assert mnist.shape is not None
    size = mnist.sizes["train"] * math.prod(mnist.shape) * FLOAT
    pages = -(-size // PAGE) * PAGE
    yield "lenet-input-mb", exact(pages / MIB, note=f"training images in whole pages; without, {size / MIB:.4f}")
    for claim, name in (("resnet-32", "cifar10"), ("vgg-16", "cifar100")):
        info = DATASETS[name]
        assert info.shape is not None
        everything = sum(info.sizes.values()) * math.prod(info.shape) * FLOAT
        yield f"{claim}-input-mb", exact(everything / MIB, note="training and test images")
    imagenet = IMAGENET_IMAGES * math.prod(IMAGENET_SHAPE) * FLOAT
    yield "resnet-50-input-mb", exact(imagenet / MIB, note="training, validation and test images")
    cores = PASCAL_PROCESSORS * CORES_PER_PROCESSOR
    gpus = settings.RESNET50["gpus"]
    yield "hardware-gpus", exact((gpus, cores, PASCAL_GIGABYTES), note="cores as NVIDIA lists them for this card")


def measure_networks(evidence: Evidence) -> Quantities:
    """Parameters and operators of the networks that the run built."""
    run = evidence.run("sizes")
    for network, claim in CLAIM_OF.items():
        yield f"{claim}-model-mb", exact(run.results[f"{network}_parameters"] * FLOAT / MIB, runs=[run.id])
        yield f"{claim}-ops", exact(run.results[f"{network}_operators"], runs=[run.id])
    parameters, operators, outputs = (
        run.results[f"crossbow_resnet50_{what}"] for what in ("parameters", "operators", "bytes")
    )
    batch = run.spec.settings["batch"]
    note = f"outputs of forward and gradient operators at batch {batch}, each in its own buffer"
    text = (parameters * FLOAT / MIB, operators, outputs / GIB)
    yield "resnet50-text", point(text, proxy=True, runs=[run.id], note=note)


COLUMNS = {"input-mb": "Input size (MiB)", "ops": "# Ops", "model-mb": "Model size (MiB)"}
NAMES = {"lenet": "LeNet\nMNIST", "resnet-32": "ResNet-32\nCIFAR-10", "vgg-16": "VGG-16\nCIFAR-100"}
NAMES |= {"resnet-50": "ResNet-50\nILSVRC 2012"}


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per network and column of the table: printed value and ours."""
    import pandas as pd

    found = dict((*measure_inputs(evidence), *measure_networks(evidence)))
    rows = [
        (NAMES[network], title, printed_value(f"crossbow/table1/{network}-{column}"), found[f"{network}-{column}"])
        for network in NAMES
        for column, title in COLUMNS.items()
    ]
    table = pd.DataFrame(rows, columns=["network", "column", "printed", "ours"])
    return table.assign(ours=[measured.values[0] for measured in table["ours"]])


def draw(evidence: Evidence, figure: Figure) -> None:
    """The table's columns as panels, its rows in the paper's order; values are written beside their marks."""
    import seaborn as sns

    table = frame(evidence)
    panels = figure.subplots(1, len(COLUMNS), sharey=True)
    for axes, title in zip(panels, COLUMNS.values(), strict=True):
        part = table[table["column"] == title]
        sns.stripplot(part, x="ours", y="network", jitter=False, size=5, color=PALETTE[0], legend=False, ax=axes)
        axes.plot(part["printed"], range(len(part)), "D", markersize=9, label="printed", **PRINTED)
        for place, (ours, printed) in enumerate(zip(part["ours"], part["printed"], strict=True)):
            digits = 0 if title == COLUMNS["ops"] else 2
            said = f"{printed:,.{digits}f} | {ours:,.{digits}f}"
            axes.annotate(said, (printed, place), (0, 9), textcoords="offset points", ha="center", size=7)
        axes.set(xscale="log", xlabel=f"{title}\nprinted | ours", ylabel="")
        axes.margins(x=0.35)
        axes.set_ylim(len(part) - 0.5, -0.6)
    panels[0].plot([], [], "o", color=PALETTE[0], linestyle="none", label="ours")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, ncols=2, loc="outside upper left")


ARTIFACTS = (
    Artifact(
        "crossbow/table1",
        "Benchmark models and data sets",
        runs,
        (measure_inputs, measure_networks),
        draw,
        "Input size, operators and model size of the four networks, ours on the printed values.",
        (9.0, 3.6),
        frame,
    ),
)
