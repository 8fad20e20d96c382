"""Fig. 8: the share of an iteration that synchronisation takes on four GPUs, against batch size.

The paper shows it falling as the batch grows, from 23% for LeNet and 45% for AlexNet at batch 500 to 10% and 16% at
3000, and low for Caffe-Quick throughout. Here four hosts sleep for what a gradient takes and really exchange along a
tree. One constant, how much slower the paper's card is than the one that was timed, is fitted to AlexNet's 45%. Where
no hosts ran, the lines are gradients timed on one device with a modelled link, which decide nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from paper_figures.isgd import settings
from paper_figures.isgd.fig7 import medians
from paper_figures.isgd.settings import NETWORKS
from suite.claims.intervals import Interval, least, mean_interval
from suite.papers.figure import Artifact, Figure, Frame, Missing, np, pd, printed_value, sns
from suite.report.style import plain_numbers

NAMES = {"imagenet": "AlexNet", "cifar": "Caffe-Quick", "mnist": "LeNet"}  # in the order of the paper's legend
LINK = {"latency": 2e-5, "bandwidth": 6e9}  # PCIe 3.0 between two cards of 2016: about 6 GB/s per direction
HOSTS = {kind: f"four {kind}" for kind in NETWORKS}
TITLES = {
    "hosts": "modelled compute, real exchange: four hosts, reduction and broadcast tree",
    "modelled": "modelled: computation timed on one device, link modelled",
}


PANEL = Artifact(
    "isgd/fig8",
    "Share of iteration time spent on synchronisation against batch size on four devices",
    lambda profile: {**settings.latencies(profile), **settings.occupancies(profile)},
    size=(8.0, 4.0),
)


def on_hosts(frame: Frame, kind: str) -> pd.DataFrame:
    """Synchronisation's share (%) of an update on four hosts, by repetition (rows) and batch.

    Raises Missing, with the reason, where the hosts could not be made.
    """
    frame.refuse_skipped(HOSTS[kind])
    rows = frame.table("occupancy", HOSTS[kind])
    share = 100 * rows["communicated"] / (rows["communicated"] + rows["computed"])
    return rows.assign(share=share).pivot(index="repeat", columns="batch", values="share")


def told(frame: Frame) -> str:
    repeats = len(on_hosts(frame, "mnist"))
    return f"four hosts, {repeats} repetitions; compute of a card scaled once, to AlexNet's share at 500"


@PANEL.quantity(
    "falls", HOSTS.values(), note=lambda frame: f"the least of LeNet's fall and AlexNet's beyond it; {told(frame)}"
)
def falls(frame: Frame) -> Interval:
    """The fall from the smallest to the largest batch of LeNet and of AlexNet, and AlexNet's beyond LeNet's."""
    shares = {kind: on_hosts(frame, kind) for kind in ("mnist", "imagenet")}
    lenet, alexnet = (table[min(table)] - table[max(table)] for table in shares.values())
    return least([mean_interval(list(each)) for each in (lenet, alexnet, alexnet - lenet)])


def intervals(shares: pd.DataFrame) -> dict[int, Interval]:
    """By batch, over the repetitions."""
    return {batch: mean_interval(list(shares[batch])) for batch in shares}


def share(kind: str, batch: int, frame: Frame) -> Interval:
    """Synchronisation's share (%) of a network at a batch size."""
    return intervals(on_hosts(frame, kind))[batch]


@PANEL.quantity("caffe-quick-low", HOSTS.values(), note=told)
def largest(frame: Frame) -> Interval:
    """Caffe-Quick's largest share over the batches."""
    return max(intervals(on_hosts(frame, "cifar")).values(), key=lambda found: found.high)


@PANEL.quantity("order", HOSTS.values(), note=told)
def order(frame: Frame) -> list[Interval]:
    """Steps of the share from Caffe-Quick to LeNet to AlexNet, the least over the batches."""
    quick, lenet, alexnet = (on_hosts(frame, kind) for kind in ("cifar", "mnist", "imagenet"))
    return [least([*intervals(step).values()]) for step in (lenet - quick, alexnet - lenet)]


for name, kind, batch in (("lenet", "mnist", 500), ("lenet", "mnist", 3000), ("alexnet", "imagenet", 3000)):
    PANEL.quantity(f"{name}-b{batch}", HOSTS.values(), shown=True, note=told)(partial(share, kind, batch))


def modelled(frame: Frame, kind: str) -> pd.DataFrame:
    """Synchronisation's share (%) on four devices joined by the modelled link, from a quarter of the batch on."""
    from suite.cost_models import AllReduce
    from suite.models.table import counts

    seconds = medians(frame, kind)
    batches = seconds.index.to_numpy()
    tree = AllReduce(LINK["latency"], LINK["bandwidth"], 4, "tree")
    communication = tree.seconds(4 * counts(NETWORKS[kind]).parameters)
    share = 100 * communication / (communication + np.interp(batches / 4, batches, seconds))
    return pd.DataFrame({"batch": batches, "share": share})[batches >= 4 * batches.min()]


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """A row per network and batch size: synchronisation's share (%), source "modelled" (its quarter was timed).

    Rows of source "hosts" hold one repetition each on four hosts, where they ran.
    """
    tables = []
    for kind, name in NAMES.items():
        if len(frame[kind]):
            tables.append(modelled(frame, kind).assign(network=name, source="modelled"))
        if len(hosts := frame[HOSTS[kind]]) and not hosts["skipped"].iloc[0]:
            rows = on_hosts(frame, kind).melt(value_name="share")
            tables.append(rows.assign(network=name, source="hosts"))
    if not tables:
        raise Missing(f"no network is timed at {frame.profile}")
    return pd.concat(tables, ignore_index=True)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """The share falls with batch size for all three networks; the printed points are open markers."""
    axes, rows = figure.subplots(), table(frame)
    source = "hosts" if "hosts" in set(rows["source"]) else "modelled"
    looks: dict[str, Any] = {"hue": "network", "style": "network", "hue_order": list(NAMES.values()), "markers": True}
    seen, ends = rows[rows["source"] == source], lambda shares: mean_interval(list(shares)).ends
    sns.lineplot(seen, x="batch", y="share", **looks, errorbar=ends, ax=axes)
    open_marks: dict[str, Any] = {"marker": "s", "markerfacecolor": "none", "linestyle": "none"}
    for place, name in enumerate(NAMES.values()):
        if name != "Caffe-Quick":
            printed = [printed_value(f"isgd/fig8/{name.lower()}-b{batch}") for batch in (500, 3000)]
            fitted = " (500: fitted)" if source == "hosts" and name == "AlexNet" else ""
            axes.plot([500, 3000], printed, color=f"C{place}", label=f"printed, {name}{fitted}", **open_marks)
    axes.set(xscale="log", ylim=(0, None), xlabel="batch size (images)", ylabel="synchronisation (% of an iteration)")
    plain_numbers(axes.xaxis)
    axes.set_title(TITLES[source])
    axes.legend(title="ours: mean, 95%", loc="upper left", bbox_to_anchor=(1, 1))
