"""Figure 1: throughput of each approach relative to no communication.

The printed bars are lost; what is left to test are the sentences about them. In the cost model of both machines the
order of the approaches follows from the equations. It is therefore drawn, and decided only where it was measured and
could have come out otherwise: panel (a)'s sentences over a link between two workers that compute, the other panels'
on hosts that sleep and really exchange (:mod:`paper_figures.matex_agd.exchanges`). A sentence that is not of one
panel alone stands with the first that it concerns; accuracy at the end of training, with panel (b).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise

from paper_figures.matex_agd import exchanges, settings
from paper_figures.matex_agd.exchanges import CASES
from paper_figures.matex_agd.settings import REMEDIED, TRAINED
from paper_figures.matex_agd.table1 import CLASSES, accuracies
from suite.claims.intervals import Interval, at_least, least, log_interval, mean_interval, most
from suite.papers.figure import Artifact, Axes, Figure, Frame, Groups, Missing, Quantity, np, pd, printed_value, sns
from suite.report.style import MARKERS

CHANGES = {
    "": "Caffe's rate and momentum",
    "plain": "no momentum, ten times the rate",
    "slower": "a third of the rate",
    "constant": "the rate never drops",
    "longer": "a schedule four times as long",
}
NAMES = {exchanges.ALEXNET: "AlexNet", exchanges.GOOGLENET: "GoogLeNet"}
BESIDE = {
    "a": ". Beside them LeNet's, measured over a link of three speeds",
    "b": ". Beside them, where trained, accuracies at the end, by delay",
}
TRAINED_ON = {"paper": "AlexNet, ImageNet", "reduced": "narrow AlexNet, CIFAR-100"}
WHOLE = {"paper": ("ImageNet", 45), "reduced": ("cifar100", settings.WHOLE_CHECKPOINTS)}  # data and checkpoints


def runs(letter: str, profile: str) -> Groups:
    """The layers of a panel's cost model, its hosts, and what else it is measured by.

    (a) has the link. (b) has the trainings, and the hosts of all, as it speaks of the trends of all. (d) has the
    seconds of computing, which take some minutes of one core and are no part of ``smoke``.
    """
    found = {"layers": (exchanges.LAYERS,), **exchanges.host_runs("abcd" if letter == "b" else letter, profile)}
    if letter == "a":
        found |= exchanges.link_runs(profile)
    if letter == "b":
        found |= {**settings.whole_training(profile), **settings.lenet(profile), **settings.lenet_rates(profile)}
    if letter == "d" and profile != "smoke":
        found["compute"] = (settings.COMPUTE,)
    return found


def panel(letter: str) -> Artifact:
    name, machine = CASES[letter]
    what = f"{NAMES[name]} on the {machine.name}"
    beside = BESIDE.get(letter, "")
    return Artifact(
        f"matex_agd/fig1{letter}",
        f"{what}: throughput against no communication",
        partial(runs, letter),
        alt=f"Bars of the rate of each approach relative to no communication by number of devices; {what}{beside}",
        size=(10.4, 4.2) if letter in "ab" else (6.4, 4.0),
    )


ARTIFACTS = A, B, C, D = tuple(panel(letter) for letter in CASES)

# ---------------------------------------------------------------- the sentences on all approaches

SENTENCES: dict[str, tuple[Callable[..., Interval], str]] = {
    "agd-best": (
        partial(exchanges.least_lead, (("SGD",), exchanges.LAYER_WISE)),
        "log of the rate of AGD 1-3 comm over SGD and layer-wise, the nearer",
    ),
    "layerwise-below-agd": (
        partial(exchanges.least_lead, (exchanges.LAYER_WISE,)),
        "log of the rate of AGD 1-3 comm over layer-wise, both orders",
    ),
    "no-comm-best": (exchanges.highest, "largest rate over no comm of all methods"),
}
for letter, each in zip(CASES, ARTIFACTS, strict=True):
    group, where = f"hosts {letter}", "of 2, 4 and 8 hosts those on which it holds least"
    if letter == "a":
        group, where = "link", "LeNet, two workers, at the speed of three where it holds least"
    for name, (value, text) in SENTENCES.items():
        each.quantities[name] = Quantity(partial(value, letter=letter), (group,), note=f"{text}: {where}")

EVERY = tuple(f"hosts {letter}" for letter in CASES)
B.quantities["same-trend"] = Quantity(exchanges.same_trend, EVERY, note="share of 2 networks on 2, 4 and 8 hosts")


@A.quantity("sgd-at-the-fastest-link", ["link"], note="LeNet, two workers")
def synchronous(frame: Frame) -> Interval:
    """SGD's rate over no communication at the fastest of the links, where ``no-comm-best`` is AGD's."""
    tables = exchanges.timed(frame, "a")
    return exchanges.ratio(tables[max(tables)], "SGD")


@A.quantity("lead-by-link", ["link"], note="LeNet, two workers, slowest link first")
def leads(frame: Frame) -> list[Interval]:
    """Log of the rate of AGD over that of synchronous SGD, by link."""
    return [exchanges.lead(table, ("SGD",)) for _, table in sorted(exchanges.timed(frame, "a").items())]


# ---------------------------------------------------------------- modelled

LAYER = ("layers",)
A.quantities["speedup"] = Quantity(exchanges.speedup, LAYER, note="best AGD over SGD, any panel")
A.quantities["efficiency"] = Quantity(
    exchanges.efficiency,
    LAYER,
    note="rate on 8 devices over 8 x that on one, if a device is as efficient on an eighth of the batch",
    shown=True,
)
C.quantities["strong-scaling-limit"] = Quantity(
    exchanges.strong_scaling, LAYER, note="smallest gain in rate from doubling the nodes, 1 to 32, AGD 3 comm"
)

# ---------------------------------------------------------------- seconds of computing, and whole trainings


@D.quantity("compute-ratio", ["compute"], note="forward and backward, batches of 32 and 256, networks in turns")
def compute_ratio(frame: Frame) -> Interval:
    """Seconds per image of GoogLeNet over those of AlexNet, each with its effective batch on one device."""
    seconds = frame.table("compute", "compute").pivot(index="repeat", columns="network", values="seconds")
    return log_interval((seconds[exchanges.GOOGLENET] / seconds[exchanges.ALEXNET]).tolist())


def whole(frame: Frame, row: str) -> pd.DataFrame:
    """Accuracy of a row by seed and checkpoint."""
    return accuracies(frame, row, WHOLE[frame.profile][1])


def ends(frame: Frame, row: str) -> pd.Series:
    """Accuracy at the end in %, by seed."""
    return 100 * whole(frame, row).iloc[:, -1]


def lowest_of(serial: pd.Series, rows: Iterable[pd.Series]) -> Interval:
    """By how much the row that ends lowest ends above serial, paired by seed."""
    return least([mean_interval((row - serial).dropna().tolist()) for row in rows])


def learned(serial: pd.Series, data: str) -> pd.Series:
    """Accuracies in % of serial training. Raises Missing where they are a guess's: a delay has nothing to lose."""
    if serial.mean() < 100 / CLASSES[data] + 1:
        raise Missing(f"lacks serial training on {data} that ends a point above a guess")
    return serial


def serial_ends(frame: Frame) -> pd.Series:
    return learned(ends(frame, "serial"), WHOLE[frame.profile][0])


def enough(frame: Frame) -> float:
    """The accuracy that counts as converged: a point less than printed; on a stand-in, than serial training's end."""
    end = printed_value("matex_agd/fig1b/alexnet-54") if frame.profile == "paper" else serial_ends(frame).mean()
    return float(end) / 100 - 0.01


def noted(text: str, frame: Frame) -> str:
    """A note with the data, the accuracy to be reached in %, and the updates of a training."""
    updates = settings.whole_training(frame.profile)["serial"][0].settings["updates"]
    return text.format(what=WHOLE[frame.profile][0], enough=100 * enough(frame), updates=updates)


@B.quantity(
    "final-accuracy-kept",
    TRAINED,
    note=partial(noted, "{what}, AGD 1-3 less serial at the end, the lowest, points"),
)
def kept(frame: Frame) -> Interval:
    """By how much the delay that ends lowest ends above serial, in points, paired by seed."""
    return lowest_of(serial_ends(frame), (ends(frame, row) for row in TRAINED[1:]))


def kept_by_lenet(frame: Frame, kind: str) -> Interval:
    """The same of the first stand-in."""
    serial, *delayed = (100 * accuracies(frame, f"{kind} {row}", data="mnist").iloc[:, -1] for row in TRAINED)
    return lowest_of(learned(serial, "mnist"), delayed)


for name, kind, text in (
    ("lenet-kept", "lenet", "the same of LeNet on MNIST at Caffe's defaults"),
    ("lenet-plain-kept", "lenet plain", "the same of LeNet without momentum, at ten times the rate"),
):
    groups = tuple(f"{kind} {row}" for row in TRAINED)
    B.quantities[name] = Quantity(partial(kept_by_lenet, kind=kind), groups, note=text)


def loss(frame: Frame, prompt: str, delayed: str) -> pd.Series:
    """By how many points a training without a delay ends above one with a delay of three, by seed."""
    return ends(frame, prompt) - ends(frame, delayed)


def relief(frame: Frame, serial: str, delayed: str) -> pd.Series:
    """By how many points less a delay of three costs than at Caffe's defaults, paired by seed."""
    return (loss(frame, "serial", "agd3") - loss(frame, serial, delayed)).dropna()


for name, rows in {
    "momentum-costs": ("plain serial", "plain agd3"),
    "rate-costs": ("serial", "slower agd3"),
    "schedule-costs": ("constant serial", "constant agd3"),
    "longer-costs": ("longer serial", "longer agd3"),
}.items():
    read = tuple(dict.fromkeys(("serial", "agd3", *rows)))
    B.quantities[name] = Quantity(partial(relief, serial=rows[0], delayed=rows[1]), read, note="points, at the end")


B.quantities["delay-loses"] = Quantity(
    partial(loss, prompt="sgd", delayed="agd3"), ("sgd", "agd3"), note="points, at the end"
)
B.quantities["longer-loses"] = Quantity(
    partial(loss, prompt="longer serial", delayed="longer agd3"),
    ("longer serial", "longer agd3"),
    note="points, at the end of 46 epochs",
)


def largest_rates(frame: Frame, row: str) -> pd.Series:
    """Log of the largest rate of the grid at which LeNet names half of the images in the end, by seed.

    Raises Missing where that is the grid's largest, or none.
    """
    runs = frame.runs_of(f"rates {row}")
    about = {"seed": [run.spec.seed for run in runs], "rate": [run.spec.settings["rate"] for run in runs]}
    trains = pd.Series([run.curve("evaluations")["test_error"].iloc[-1] < 0.5 for run in runs])
    largest = pd.DataFrame(about)[trains].groupby("seed")["rate"].max()
    if len(largest) < len(set(about["seed"])) or largest.max() == max(about["rate"]):
        raise Missing(f"lacks a grid of rates that holds the largest of {row}")
    return np.log(largest)


def rate_steps(frame: Frame) -> list[Interval]:
    """Log of the largest rate of each delay over that of the next longer one, paired by seed, the longest first."""
    rates = [largest_rates(frame, row) for row in reversed(TRAINED)]
    return [mean_interval((shorter - longer).tolist()) for longer, shorter in pairwise(rates)]


def rates_kept(frame: Frame, kind: str = "") -> list[pd.Series]:
    """Log of the largest rate of each delay over that of serial training, by seed."""
    serial, *delayed = (largest_rates(frame, f"{kind}{row}") for row in TRAINED)
    return [each - serial for each in delayed]


def momentum_cuts(frame: Frame) -> Interval:
    """By how much more of the rate is kept without momentum, as a log, paired by seed: of the delays the least."""
    pairs = zip(rates_kept(frame, "plain "), rates_kept(frame), strict=True)
    return least([mean_interval((plain - heavy).tolist()) for plain, heavy in pairs])


def in_shares(frame: Frame, kind: str) -> list[Interval]:
    return [log_interval(np.exp(each).tolist()) for each in rates_kept(frame, kind)]


RATES, PLAIN = (tuple(f"rates {kind}{row}" for row in TRAINED) for kind in ("", "plain "))
LENET = "LeNet on MNIST, 600 updates"
KEPT = "LeNet's largest rate by delay over that of serial training"
B.quantities |= {
    "largest-rates": Quantity(rate_steps, RATES, note=f"{LENET}; delays 2 to 3, 1 to 2, none to 1"),
    "momentum-cuts": Quantity(
        momentum_cuts, (*RATES, *PLAIN), note=f"{LENET}; of three delays the one where it is least"
    ),
    "rate-kept": Quantity(partial(in_shares, kind=""), RATES, note=KEPT),
    "plain-rate-kept": Quantity(partial(in_shares, kind="plain "), PLAIN, note=f"{KEPT}, without momentum"),
}


for row in (*settings.LABELS, *map(" ".join, REMEDIED)):
    B.quantities[f"end-{row.replace(' ', '-')}"] = Quantity(
        partial(ends, row=row),
        (row,),
        note=lambda frame: f"{WHOLE[frame.profile][0]}, accuracy at the end, %",
    )


@B.quantity(
    "alexnet-54",
    TRAINED,
    note=partial(noted, "{what}, the row at the end that lies furthest from the printed accuracy, %"),
)
def furthest(frame: Frame) -> Interval:
    """Accuracy in % at the end of the row that lies furthest from the printed one.

    The interval lies near enough where those of all rows do, and too far as soon as one does.
    """
    wanted = printed_value("matex_agd/fig1b/alexnet-54")
    seen = [mean_interval((ends(frame, row) - wanted).tolist()) for row in TRAINED]
    far = most([Interval(abs(i.mean), max(i.low, -i.high), max(i.high, -i.low), i.n, i.freedom) for i in seen])
    if max((i.mean for i in seen), key=abs) < 0:
        return Interval(wanted - far.mean, wanted - far.high, wanted - far.low, far.n, far.freedom)
    return replace(far, mean=wanted + far.mean, low=wanted + far.low, high=wanted + far.high)


def converged(frame: Frame) -> float:
    """Share of delayed runs that reach what their network should."""
    asked = enough(frame)
    reached = [at_least(best, asked) for row in TRAINED[1:] for best in whole(frame, row).max(axis=1)]
    return sum(reached) / len(reached)


for name, text in (
    ("same-iterations", "share of AGD runs at {enough:.3g}% on {what} within {updates} updates"),
    ("no-warm-start", "the same runs, at the full rate from the start"),
):
    B.quantities[name] = Quantity(converged, TRAINED, note=partial(noted, text))

# ---------------------------------------------------------------- drawing


def table(letter: str, frame: Frame) -> pd.DataFrame:
    """Modelled rates over no comm: approach, devices, rate (at the centre of the ranges), low and high (corners).

    Those on hosts (source "hosts") follow, and for panel (a) those over the link (source "link"), where they were
    measured.
    """
    rows = []
    for devices, corners in exchanges.relative(frame, letter).items():
        for approach in exchanges.APPROACHES:
            rates = [seen[approach] for seen in corners]
            ends = {"rate": rates[0], "low": min(rates), "high": max(rates)}
            rows.append({"approach": approach, "devices": devices, "source": "cost model", **ends})
    tables = [pd.DataFrame(rows)]
    with contextlib.suppress(Missing):
        tables.append(exchanges.hosts_table(frame, letter))
    with contextlib.suppress(Missing):
        if letter == "a":
            tables.append(exchanges.link_table(frame, "computing").drop(columns="workload").assign(devices=2))
    return pd.concat(tables, ignore_index=True)


def draw(letter: str, frame: Frame, figure: Figure) -> None:
    """The paper's bars, in its order, with the layer-wise approaches that its text speaks of behind a rule."""
    rows, (name, machine) = table(letter, frame), CASES[letter]
    modelled, on_hosts, over_link = (rows[rows["source"] == source] for source in ("cost model", "hosts", "link"))
    trained = ends_table(frame) if letter == "b" else pd.DataFrame()
    wide = len(over_link) or len(trained)
    left, *right = figure.subplots(1, 2, width_ratios=(1.25, 1)) if wide else [figure.subplots()]
    if len(on_hosts):
        exchanges.draw_bars(on_hosts, left, modelled[modelled["devices"] > 1])
        joined = f" of {exchanges.STAGES} joined sums" if name == exchanges.GOOGLENET else ""
        what = f"modelled compute, real exchange{joined}"
    else:
        exchanges.draw_bars(modelled, left)
        what = "cost model"
    left.set_title(f"{what}: {NAMES[name]}, {machine.name}, batch {settings.EFFECTIVE_BATCH[name]}", pad=20)
    for axes in right if len(over_link) else ():
        exchanges.draw_link(over_link, exchanges.APPROACHES[1:], axes)
        axes.set_title("measured stand-in: LeNet, two workers over a link", pad=20)
    for axes in right if len(trained) else ():
        draw_ends(trained, axes)
        axes.set_title(f"{'stand-in: ' * (frame.profile != 'paper')}{TRAINED_ON[frame.profile]}", pad=20)


def ends_table(frame: Frame) -> pd.DataFrame:
    """Accuracy at the end of whole trainings, %: row of Table 1, what was changed, seed, accuracy.

    Raises Missing where none of the paper's own is stored, so that its stand-in is drawn.
    """
    if frame.profile not in WHOLE:
        return pd.DataFrame()
    found = []
    for remedy, row in (*(("", row) for row in settings.LABELS), *REMEDIED):
        if frame.results(group := f"{remedy} {row}".strip()):
            seen = ends(frame, group).rename("accuracy").reset_index()
            found.append(seen.assign(row=settings.LABELS[row].removesuffix(", 1 device"), trained=CHANGES[remedy]))
    if not found and frame.profile == "paper":
        raise Missing("no training of AlexNet on ImageNet to its end")
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def draw_ends(table: pd.DataFrame, axes: Axes) -> None:
    """Accuracy at the end by row: mean and range over seeds, at the rates and momenta that were tried."""
    names = list(table["trained"].unique())
    rows = table.assign(row=table["row"].str.replace(", ", "\n"))
    sns.pointplot(
        rows, x="row", y="accuracy", hue="trained", dodge=0.3 * (len(names) > 1), linestyle="none", ax=axes,
        markers=list(MARKERS[: len(names)]), errorbar=("pi", 100), err_kws={"linestyle": "-"}, markersize=7,
    )  # fmt: skip
    axes.set(xlabel="", ylabel="top-1 accuracy at the end (%)")
    axes.set_ylim(0, 1.35 * table["accuracy"].max())  # room for the legend
    axes.legend(title="mean and range over seeds", loc="upper right")


for letter, each in zip(CASES, ARTIFACTS, strict=True):
    each.drawing(partial(draw, letter))
    each.table(partial(table, letter))
