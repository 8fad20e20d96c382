"""Fig. 8: the share of an iteration that synchronisation takes on four GPUs, against batch size.

The paper shows it falling as the batch grows, from 23% for LeNet and 45% for AlexNet at batch 500 to 10% and 16% at
3000, and low for Caffe-Quick throughout. Here gradients are timed on one device like the four, and the link between
them is modelled, so every share is a *proxy*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.isgd import readings, settings
from paper_figures.isgd.settings import NETWORKS
from suite.claims.measured import exact, point
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NAMES = {"imagenet": "AlexNet", "cifar": "Caffe-Quick", "mnist": "LeNet"}  # in the order of the paper's legend
LINK = {"latency": 2e-5, "bandwidth": 6e9}  # PCIe 3.0 between two cards of 2016: about 6 GB/s per direction


def shares(evidence: Evidence, kind: str) -> tuple[Any, Any]:
    """Batch sizes, and synchronisation's share of an iteration on four devices joined by the modelled link."""
    import numpy as np

    from suite.clock import Link
    from suite.models.table import counts

    timed = readings.latency(evidence, kind)
    communication = Link(**LINK).tree_allreduce(4 * counts(NETWORKS[kind]).parameters, 4)
    quarter = np.interp(timed.batches / 4, timed.batches, timed.seconds)
    return timed.batches, communication / (communication + quarter)


def measure_share(evidence: Evidence) -> Quantities:
    """The share falls with the batch and grows with the weights per unit of compute."""
    ids = [evidence.run(kind).id for kind in NETWORKS]
    curves = {kind: shares(evidence, kind)[1] for kind in NETWORKS}
    if len(curves["imagenet"]) < 2:
        raise Missing("two batch sizes of AlexNet")
    note = f"compute measured here, link modelled ({LINK['bandwidth'] / 1e9:.0f} GB/s, tree)"
    fall = {kind: float(curve[0] - curve[-1]) for kind, curve in curves.items()}
    least = min(fall["mnist"], fall["imagenet"], fall["imagenet"] - fall["mnist"])
    yield "falls", point(100 * least, proxy=True, runs=ids, note=note)
    yield "caffe-quick-low", point(100 * float(curves["cifar"].max()), proxy=True, runs=ids, note=note)
    last = min(len(curve) for curve in curves.values()) - 1
    steps = (curves["mnist"][last] - curves["cifar"][last], curves["imagenet"][last] - curves["mnist"][last])
    yield "order", point([100 * float(s) for s in steps], proxy=True, runs=ids, note=note)


def measure_prediction(_: Evidence) -> Quantities:
    """Shares at batch 3000 that Eq. 19 predicts from those at 500: t_comp grows sixfold, C2 stays."""
    predicted = []
    for network in ("lenet", "alexnet"):
        communication = printed_value(f"isgd/fig8/{network}-b500")
        computation = 100 - communication
        predicted.append(100 * communication / (communication + computation * 3000 / 500))
    yield "eq19-prediction", exact(predicted)


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per network and batch size whose quarter was timed: synchronisation's share (%)."""
    import pandas as pd

    tables = []
    for kind, name in NAMES.items():
        if kind in evidence.groups:
            batches, share = shares(evidence, kind)
            timed = batches >= 4 * batches.min()
            rows = {"batch": batches[timed], "share": 100 * share[timed], "network": name}
            tables.append(pd.DataFrame(rows))
    return pd.concat(tables, ignore_index=True)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Ours as lines, the four printed shares as open markers in the colour of their network."""
    import seaborn as sns

    axes = figure.subplots()
    table = frame(evidence)
    order = list(NAMES.values())
    sns.lineplot(table, x="batch", y="share", hue="network", style="network", hue_order=order, markers=True, ax=axes)
    for place, name in enumerate(order):
        if name != "Caffe-Quick":
            printed = [printed_value(f"isgd/fig8/{name.lower()}-b{batch}") for batch in (500, 3000)]
            label = f"printed, {name}"
            axes.plot(
                [500, 3000], printed, "s", markerfacecolor="none", color=f"C{place}", linestyle="none", label=label
            )
    axes.set(xscale="log", ylim=(0, None), xlabel="batch size (images)", ylabel="synchronisation (% of an iteration)")
    axes.set_title("simulated: computation timed on one device, link modelled")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


ARTIFACTS = (
    Artifact(
        "isgd/fig8",
        "Share of iteration time spent on synchronisation against batch size on four devices",
        settings.latencies,
        (measure_share, measure_prediction),
        draw,
        "The share falls with batch size for all three networks; the printed points are open markers.",
        (8.0, 4.0),
        frame,
    ),
)
