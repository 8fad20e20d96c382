"""Fig. 8: the share of an iteration that synchronisation takes on four GPUs, against batch size.

The paper shows it falling as the batch grows, from 23% for LeNet and 45% for AlexNet at batch 500 to 10% and 16% at
3000, and low for Caffe-Quick throughout. Here four hosts sleep for what a gradient takes and really exchange along a
tree. One constant, how much slower the paper's card is than the one that was timed, is fitted to AlexNet's 45%. Where
no hosts ran, the lines are gradients timed on one device with a modelled link, which decide nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from paper_figures.isgd import readings, settings
from paper_figures.isgd.settings import NETWORKS
from suite.claims.estimate import exact, over_seeds
from suite.claims.intervals import least, mean_interval
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.papers.published import printed_value
from suite.runs.store import Run

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


def on_hosts(evidence: Evidence, kind: str) -> tuple[pd.DataFrame, str]:
    """Synchronisation's share (%) of an update on four hosts, by repetition (rows) and batch, and the run's id.

    Raises Missing, with the reason, where there was no such run.
    """
    if f"four {kind}" not in evidence.groups:
        raise Missing(f"no four hosts at {evidence.profile}")
    run = evidence.run(f"four {kind}")
    if run.results["skipped"]:
        raise Missing(f"the hosts could not be made: {run.results['skipped']}")
    table = run.curve("occupancy")
    share = 100 * table["communicated"] / (table["communicated"] + table["computed"])
    return table.assign(share=share).pivot(index="repeat", columns="batch", values="share"), run.id


def measure_share(evidence: Evidence) -> Quantities:
    """The share falls with the batch and grows with the weights per unit of compute, on four hosts."""
    tables = {kind: on_hosts(evidence, kind) for kind in NETWORKS}
    ids = [run for _, run in tables.values()]
    share = {kind: table for kind, (table, _) in tables.items()}
    note = f"four hosts, {len(share['mnist'])} repetitions; compute of a card scaled once, to AlexNet's share at 500"
    fall = {kind: table[min(table)] - table[max(table)] for kind, table in share.items()}
    conditions = (fall["mnist"], fall["imagenet"], fall["imagenet"] - fall["mnist"])
    yield "falls", over_seeds(least([mean_interval(list(each)) for each in conditions]), ids, note)
    low = [mean_interval(list(share["cifar"][batch])) for batch in share["cifar"]]
    yield "caffe-quick-low", over_seeds(max(low, key=lambda i: i.high), ids, note)
    steps = (share["mnist"] - share["cifar"], share["imagenet"] - share["mnist"])
    least_steps = [least([mean_interval(list(step[batch])) for batch in step]) for step in steps]
    yield "order", over_seeds(least_steps, ids, note)


def _edited(evidence: Evidence, kind: str, batch: int, **seconds: float) -> Evidence:
    """One network's hosts took other seconds at one batch."""

    def edit(run: Run) -> Run:
        table = run.curve("occupancy")
        mine = (table["batch"] == batch) * 1.0
        return forged(
            run, occupancy=table.assign(**{n: table[n] * (1 - mine) + s * mine for n, s in seconds.items()})
        )

    return edited(evidence, edit, f"four {kind}")


@counterfeit("isgd/fig8/falls", "isgd/fig8/order")
def alexnet_has_nothing_to_send(evidence: Evidence) -> Evidence:
    """At the smallest batch AlexNet synchronises in no time."""
    return _edited(evidence, "imagenet", 500, communicated=0.0)


@counterfeit("isgd/fig8/caffe-quick-low")
def caffe_quick_computes_in_no_time(evidence: Evidence) -> Evidence:
    return _edited(evidence, "cifar", 500, computed=0.0)


def measure_prediction(_: Evidence) -> Quantities:
    """Shares at batch 3000 that Eq. 19 predicts from those at 500: t_comp grows sixfold, C2 stays."""
    predicted = []
    for network in ("lenet", "alexnet"):
        communication = printed_value(f"isgd/fig8/{network}-b500")
        computation = 100 - communication
        predicted.append(100 * communication / (communication + computation * 3000 / 500))
    yield "eq19-prediction", exact(predicted)


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per network and batch size: synchronisation's share (%), source "modelled" (its quarter was timed).

    Rows of source "hosts" hold one repetition each on four hosts, where they ran.
    """
    import pandas as pd

    tables = []
    for kind, name in NAMES.items():
        if kind in evidence.groups:
            batches, share = shares(evidence, kind)
            timed = batches >= 4 * batches.min()
            rows = {"batch": batches[timed], "share": 100 * share[timed], "network": name, "source": "modelled"}
            tables.append(pd.DataFrame(rows))
        with contextlib.suppress(Missing):
            table = on_hosts(evidence, kind)[0].melt(value_name="share")
            tables.append(table.assign(network=name, source="hosts"))
    return pd.concat(tables, ignore_index=True)


def _ends(seen: Iterable[float]) -> tuple[float, float]:
    """Student's t interval (95%), as the claims have."""
    interval = mean_interval(list(seen))
    return interval.low, interval.high


def draw(evidence: Evidence, figure: Figure) -> None:
    """Ours as lines, on hosts where they ran; the four printed shares as open markers in their network's colour."""
    import seaborn as sns

    axes = figure.subplots()
    table = frame(evidence)
    order = list(NAMES.values())
    source = "hosts" if "hosts" in set(table["source"]) else "modelled"
    table = table[table["source"] == source]
    looks: dict[str, Any] = {"hue": "network", "style": "network", "hue_order": order, "markers": True}
    sns.lineplot(table, x="batch", y="share", **looks, errorbar=_ends, ax=axes)
    for place, name in enumerate(order):
        if name != "Caffe-Quick":
            printed = [printed_value(f"isgd/fig8/{name.lower()}-b{batch}") for batch in (500, 3000)]
            label = f"printed, {name}"
            axes.plot(
                [500, 3000], printed, "s", markerfacecolor="none", color=f"C{place}", linestyle="none", label=label
            )
    axes.set(xscale="log", ylim=(0, None), xlabel="batch size (images)", ylabel="synchronisation (% of an iteration)")
    titles = {
        "hosts": "modelled compute, real exchange: four hosts, reduction and broadcast tree",
        "modelled": "modelled: computation timed on one device, link modelled",
    }
    axes.set_title(titles[source])
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))


def runs(profile: str) -> settings.Groups:
    """Times of gradients, and four hosts."""
    return {**settings.latencies(profile), **settings.occupancies(profile)}


ARTIFACTS = (
    Artifact(
        "isgd/fig8",
        "Share of iteration time spent on synchronisation against batch size on four devices",
        runs,
        (measure_share, measure_prediction),
        draw,
        "The share falls with batch size for all three networks; the printed points are open markers.",
        (8.0, 4.0),
        frame,
    ),
)
