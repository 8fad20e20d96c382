"""Table 1: the four networks with their numbers of operators, and the sizes of models and data sets."""

from __future__ import annotations

import math
from functools import partial

from paper_figures.crossbow import settings
from paper_figures.crossbow.readings import result
from suite.data.catalogue import DATASETS
from suite.papers.figure import Artifact, Figure, Frame, Quantity, pd, printed_value, sns
from suite.report.style import PALETTE, PRINTED

MIB, GIB, PAGE, FLOAT = 2**20, 2**30, 4096, 4  # bytes
IMAGENET_IMAGES, IMAGENET_SHAPE = 1_431_167, (3, 256, 256)  # training, validation and test; as ISGD's paper counts
ROWS = {  # in print -> network, and the rows of the drawing
    "lenet": ("crossbow_lenet", "LeNet\nMNIST"),
    "resnet-32": ("crossbow_resnet32", "ResNet-32\nCIFAR-10"),
    "vgg-16": ("crossbow_vgg16", "VGG-16\nCIFAR-100"),
    "resnet-50": ("crossbow_resnet50", "ResNet-50\nILSVRC 2012"),
}
COLUMNS = {"input-mb": "Input size (MiB)", "ops": "# Ops", "model-mb": "Model size (MiB)"}

PANEL = Artifact(
    "crossbow/table1", "Benchmark models and data sets", lambda profile: {"sizes": (settings.SIZES,)}, size=(9.0, 3.6)
)


def input_mib(row: str, frame: Frame) -> float:
    """Size of a data set as float32: MNIST's training images in whole pages, all images of the others."""
    if row == "resnet-50":
        return IMAGENET_IMAGES * math.prod(IMAGENET_SHAPE) * FLOAT / MIB
    info = DATASETS[{"lenet": "mnist", "resnet-32": "cifar10", "vgg-16": "cifar100"}[row]]
    assert info.shape is not None
    each = math.prod(info.shape) * FLOAT
    if row == "lenet":
        return math.ceil(info.sizes["train"] * each / PAGE) * PAGE / MIB
    return sum(info.sizes.values()) * each / MIB


def model_mib(network: str, frame: Frame) -> float:
    return float(frame.one("sizes")[f"{network}_parameters"]) * FLOAT / MIB


for row, (network, _) in ROWS.items():
    PANEL.quantities[f"{row}-input-mb"] = Quantity(partial(input_mib, row))
    PANEL.quantities[f"{row}-ops"] = result("sizes", f"{network}_operators")
    PANEL.quantities[f"{row}-model-mb"] = Quantity(partial(model_mib, network), ("sizes",))

BATCH = settings.SIZES.settings["batch"]
BUFFERS = f"outputs of forward and gradient operators at batch {BATCH}, each in its own buffer"


@PANEL.quantity("resnet50-text", ["sizes"], note=BUFFERS, shown=True)
def resnet50(frame: Frame) -> list[float]:
    """Size in MiB, operators, and GiB of all outputs."""
    found = frame.one("sizes")
    outputs = found["crossbow_resnet50_bytes"] / GIB
    return [model_mib("crossbow_resnet50", frame), found["crossbow_resnet50_operators"], outputs]


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """A row per network and column of the table: printed value and ours."""
    rows = []
    for row, (_, name) in ROWS.items():
        for column, title in COLUMNS.items():
            (ours,) = PANEL.quantities[f"{row}-{column}"].of(frame).values
            printed = printed_value(f"crossbow/table1/{row}-{column}")
            rows.append({"network": name, "column": title, "printed": printed, "ours": ours})
    return pd.DataFrame(rows)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Input size, operators and model size of the four networks, ours on the printed values."""
    rows = table(frame)
    panels = figure.subplots(1, len(COLUMNS), sharey=True)
    for axes, title in zip(panels, COLUMNS.values(), strict=True):
        part = rows[rows["column"] == title]
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
