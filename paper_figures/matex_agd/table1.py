"""Table 1: AlexNet's top-1 accuracy on ImageNet after every 1000 batches, serial, synchronous and delayed.

The rows are trained on ImageNet at ``paper`` and on smaller data, as a stand-in, elsewhere. Its rows *serial* and
*SGD*, which exact arithmetic makes equal, are printed 21% apart. Three things can set them apart: float32 adds in
another order, the workers' own parts of the data make other batches, and each row is a single run. The last panel
shows each of them, and the printed gap, as the logarithm of the ratio of two rows' accuracies, which does not depend
on how many classes or examples there are.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations, pairwise
from typing import Any

from paper_figures.matex_agd import settings
from paper_figures.matex_agd.settings import CHECKPOINTS
from suite.claims.intervals import LEVEL, Interval, least, log_interval, mean_interval, quantile
from suite.papers.figure import Artifact, Axes, Figure, Frame, Groups, Missing, Quantity, np, pd, printed_value, sns
from suite.report.style import GRID, INK, LINES, MARKERS, PALETTE

ROWS = ("serial", "sgd", "agd1", "agd2")  # best first
BATCHES = (1000, 2000, 3000, 4000, 5000)
DATA = {"smoke": "digits", "reduced": "cifar100", "paper": "ImageNet"}  # of Table 1, by profile
QUICK = "cifar10"  # of the first stand-in
NAMES = {
    "digits": "LeNet, embedded digits",
    "cifar100": "narrow AlexNet, CIFAR-100",
    "cifar10": "Caffe-Quick, CIFAR-10",
    "ImageNet": "ImageNet",
}
CLASSES = {"digits": 10, "mnist": 10, "cifar10": 10, "cifar100": 100, "ImageNet": 1000}


def to_the_end(profile: str) -> Groups:
    """Fig. 1(b)'s trainings of stand-ins, drawn beside."""
    if profile != "reduced":
        return {}
    whole, lenet = settings.whole_training(profile), settings.lenet(profile)
    names = {f"end {row}": whole[row] for row in settings.LABELS}
    return names | {f"lenet {row}": lenet[f"lenet {row}"] for row in settings.TRAINED}


PANEL = Artifact(
    "matex_agd/table1",
    "AlexNet accuracy after every 1000 batches on the DGX-1",
    lambda profile: {**settings.table1(profile), **settings.quick(profile), "gap": (settings.GAP,)},
    beside=to_the_end,
    size=(10.4, 6.6),
)


def printed_table() -> dict[str, list[float]]:
    """Table 1 as printed: accuracy by row, at the five checkpoints."""
    return {row: [printed_value(f"matex_agd/table1/{row}-b{batch}") for batch in BATCHES] for row in ROWS}


# ---------------------------------------------------------------- accuracies and their spread


def accuracies(frame: Frame, row: str, checkpoints: int = CHECKPOINTS, data: str = "") -> pd.DataFrame:
    """Top-1 accuracy by seed (rows) and checkpoint (columns); a run that diverged stays at chance from there on.

    ``data`` is the set that the row learns from, by default the profile's own.
    """
    chance = 1 / CLASSES[data or DATA[frame.profile]]
    seen = {}
    for run, each in zip(frame.runs_of(row), frame.results(row), strict=True):
        table = run.curve("evaluations")
        accuracy = (1 - table["test_error"][table["update"] > 0]).fillna(chance).tolist()[:checkpoints]
        seen[each["seed"]] = accuracy + [chance] * (checkpoints - len(accuracy))
    columns = pd.RangeIndex(1, checkpoints + 1, name="checkpoint")
    return pd.DataFrame.from_dict(seen, orient="index", columns=columns).rename_axis("seed")


def arms(frame: Frame) -> pd.DataFrame:
    """Accuracy by arm of ``matex_agd/serial_gap`` and seed (rows), and by checkpoint (columns). Raises Missing."""
    table = frame.run("gap").curve("gap").query("update > 0")
    if table.empty:
        raise Missing("no checkpoint of matex_agd/serial_gap")
    seen = table.pivot(index=["arm", "seed"], columns="update", values="accuracy")
    return seen.set_axis(range(1, seen.shape[1] + 1), axis=1)


def spread_of_one_seed(frame: Frame) -> tuple[pd.Series, int]:
    """Half the width, at each checkpoint, of what one seed says of the mean: as a share of its accuracy.

    Table 1 prints one run a row, and the paper does not say how far seeds lie apart. The spread is that of the
    serial arm of ``matex_agd/serial_gap`` early in training: Student t times the deviation of log accuracy. Beside it
    stand the degrees of freedom of this t.
    """
    logs = np.log(arms(frame).loc["serial"])  # [seeds, checkpoints]
    freedom = len(logs) - 1
    return quantile(freedom, LEVEL) * logs.std(), freedom


def level(frame: Frame, row: str, place: int, data: str = "") -> Interval:
    """Accuracy of a row at a checkpoint, over its seeds."""
    seen = accuracies(frame, row, data=data)[place].tolist()
    if len(seen) > 1:
        return mean_interval(seen)
    (value,) = seen
    spread, freedom = spread_of_one_seed(frame)
    half = value * spread[place]
    return Interval(value, value - half, value + half, 1, freedom)


def nearest(frame: Frame, worse: str, better: str) -> Interval:
    """By how much one row lies above another, paired by seed, at the checkpoint where it is least."""
    low, high = accuracies(frame, worse), accuracies(frame, better)
    above = high - low
    if len(above) > 1:
        return least([mean_interval(above[place].tolist()) for place in above])
    spread, freedom = spread_of_one_seed(frame)
    width = np.hypot(low, high) * spread  # one seed [1, checkpoints]
    value, low, high = (float(each.min(axis=None)) for each in (above, above - width, above + width))
    return Interval(value, low, high, 1, freedom)


def kept(frame: Frame, row: str) -> Interval:
    """Share of synchronous accuracy that a row has at the last checkpoint, paired by seed."""
    return log_interval((accuracies(frame, row) / accuracies(frame, "sgd"))[CHECKPOINTS].tolist())


def steps(frame: Frame, rows: tuple[str, ...]) -> list[Interval]:
    """The nearest that each row comes to the next better one."""
    return [nearest(frame, worse, better) for worse, better in pairwise(rows)]


def note(text: str, frame: Frame) -> str:
    return f"{DATA[frame.profile]}{text}"


for row in (*ROWS, "agd3"):
    for place, batch in enumerate(BATCHES, 1):
        PANEL.quantities[f"{row}-b{batch}"] = Quantity(
            partial(level, row=row, place=place),
            (row,),
            beside=("gap",),
            note=partial(note, f" at checkpoint {place} of {CHECKPOINTS}"),
        )
    name = f"quick {row}"
    PANEL.quantities[f"quick-{row}"] = Quantity(
        partial(level, row=name, place=CHECKPOINTS, data=QUICK),
        (name,),
        note=f"{NAMES[QUICK]}, at the last checkpoint",
    )
for row in ("agd1", "agd2"):
    text = f", {settings.LABELS[row]} over SGD at the last checkpoint"
    PANEL.quantities[f"kept-{row}"] = Quantity(partial(kept, row=row), ("sgd", row), note=partial(note, text))
for name, some, text in (
    ("order", ROWS[::-1], "each row over the next where they are nearest"),
    ("tradeoff", ROWS[:0:-1], "AGD 1 over AGD 2 and SGD over AGD 1 where they are nearest, of five checkpoints"),
):
    PANEL.quantities[name] = Quantity(
        partial(steps, rows=some), some, beside=("gap",), note=partial(note, f", {text}")
    )


@PANEL.quantity("rises", ROWS, note=partial(note, ""))
def rises(frame: Frame) -> float:
    """Share of checkpoints at which a run is above the one before."""
    return float((pd.concat([accuracies(frame, row) for row in ROWS]).diff(axis=1).iloc[:, 1:] > 0).mean(axis=None))


# ---------------------------------------------------------------- drawing


@PANEL.table
def table(frame: Frame) -> pd.DataFrame:
    """Accuracies printed and ours: source ("printed" or the data set), row, batches, seed, checkpoint, accuracy.

    Rows whose runs are not stored are left out. Raises Missing where none is.
    """
    found = [
        {"source": "printed", "row": row, "batches": batch, "seed": 0, "checkpoint": place, "accuracy": value}
        for row, values in printed_table().items()
        for place, (batch, value) in enumerate(zip(BATCHES, values, strict=True), start=1)
    ]
    parts = [pd.DataFrame(found)]
    for title, (data, checkpoints, groups) in ours(frame.profile).items():
        for group in filter(frame.results, groups):
            long = accuracies(frame, group, checkpoints, data).stack().rename("accuracy").reset_index()
            every = groups[group][0].settings["evaluate"]["every"]
            row = group.rpartition(" ")[2]
            parts.append(long.assign(source=title, row=row, batches=every * long["checkpoint"]))
    if not parts[1:]:
        frame.needed(settings.LABELS)
    return pd.concat(parts, ignore_index=True).assign(row=lambda rows: rows["row"].map(settings.LABELS))


def ours(profile: str) -> dict[str, tuple[str, int, Groups]]:
    """What is drawn of ours, by panel: the data set, how many checkpoints, and the groups of runs."""
    data = DATA[profile]
    found: dict[str, tuple[str, int, Groups]] = {NAMES[data]: (data, CHECKPOINTS, settings.table1(profile))}
    if profile == "reduced":
        end = to_the_end(profile)
        whole, lenet = ({name: end[name] for name in end if name.startswith(kind)} for kind in ("end", "lenet"))
        found |= {
            "narrow AlexNet to the end": (data, settings.WHOLE_CHECKPOINTS, whole),
            NAMES[QUICK]: (QUICK, CHECKPOINTS, settings.quick(profile)),
            "LeNet, MNIST, to the end": ("mnist", CHECKPOINTS, lenet),
        }
    return found


def apart(frame: Frame) -> pd.DataFrame:
    """Log ratios of accuracies that should be equal: pair, unit, checkpoint, log ratio."""
    seen, printed = np.log(arms(frame)), np.log(pd.DataFrame(printed_table(), index=range(1, CHECKPOINTS + 1)))
    serial = seen.loc["serial"]
    pairs = [sign * (serial.loc[a] - serial.loc[b]) for a, b in combinations(serial.index, 2) for sign in (1, -1)]
    ours = {
        name: seen.loc[arm] - serial
        for name, arm in (("own parts of the data", "partitioned"), ("same batches", "split"))
    }
    curves = {
        "serial, other seed / serial": pairs,
        **{f"{name} / serial": [gap.loc[seed] for seed in gap.index] for name, gap in ours.items()},
        "printed: SGD / serial": [printed["sgd"] - printed["serial"]],
    }
    found = [
        pd.DataFrame({"pair": pair, "unit": unit, "checkpoint": line.index, "log ratio": line.to_numpy()})
        for pair, lines in curves.items()
        for unit, line in enumerate(lines)
    ]
    return pd.concat(found, ignore_index=True)


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Accuracy over batches, printed and on stand-ins, early and to the end, for serial, synchronous and delayed
    training; and how far rounding, the workers' own parts of the data and another seed set two runs apart, beside
    the printed gap.
    """
    of = dict(tuple(table(frame).groupby("source", sort=False)))
    printed, on_imagenet = of.pop("printed"), of.pop(NAMES["ImageNet"], None)
    grid = figure.subplots(2, max(1, math.ceil((2 + len(of)) / 2)), squeeze=False).flat
    left, *middle, right = grid[: 2 + len(of)]
    for unused in grid[2 + len(of) :]:
        unused.remove()
    draw_rows(left, printed, printed=True)
    left.set_title("as printed: AlexNet, ImageNet")
    for axes, (title, rows) in zip(middle, of.items(), strict=True):
        draw_rows(axes, rows, printed=False)
        axes.set_title(f"{title}, {seeds_of(rows)}")
    if on_imagenet is not None:
        for line in left.lines:
            line.set_label("_printed")
        draw_rows(left, on_imagenet, printed=False)
        left.set_title(f"AlexNet, ImageNet, {seeds_of(on_imagenet)}; open: printed")
    draw_apart(frame, right)


def seeds_of(rows: pd.DataFrame) -> str:
    seeds = int(rows["seed"].max()) + 1
    return f"{seeds} seed{'s' * (seeds > 1)}"


def draw_rows(axes: Axes, table: pd.DataFrame, *, printed: bool) -> None:
    """Accuracy over batches by row in the table's order: printed with open markers, ours with every seed."""
    names = list(settings.LABELS.values())
    order = [name for name in names if name in set(table["row"])]
    colours = dict(zip(names, PALETTE, strict=False))
    if printed:
        for name in order:
            rows, place = table[table["row"] == name], names.index(name)
            axes.plot(
                rows["batches"], rows["accuracy"], color=colours[name], marker=MARKERS[place], linestyle=LINES[place],
                markerfacecolor="none", linewidth=0.8, label=name,
            )  # fmt: skip
    else:
        looks: dict[str, Any] = {"hue": "row", "hue_order": order, "palette": colours, "style": "row"}
        dashes = dict(zip(names, ("", (4, 1.5), (4, 1.5, 1, 1.5), (1, 1), (5, 1, 1, 1)), strict=True))
        markers = dict(zip(names, MARKERS, strict=False))
        sns.lineplot(
            table, x="batches", y="accuracy", **looks, style_order=order, dashes=dashes, markers=markers,
            units="seed", estimator=None, linewidth=1, ax=axes,
        )  # fmt: skip
    axes.set(xlabel="batches", ylabel="top-1 accuracy")
    axes.set_ylim(0, 1.4 * table["accuracy"].max())  # room for the legend
    axes.set_yticks([tick for tick in axes.get_yticks() if tick <= 1])
    axes.legend(title="", loc="upper left", ncols=2, columnspacing=1)


def draw_apart(frame: Frame, axes: Axes) -> None:
    """What sets synchronous and serial rows apart: log ratio of accuracies at the five checkpoints."""
    long = apart(frame)
    names = list(dict.fromkeys(long["pair"]))
    sns.lineplot(
        long, x="checkpoint", y="log ratio", hue="pair", size="pair", units="unit", estimator=None, linestyle="-",
        palette=dict(zip(names, (GRID, PALETTE[2], PALETTE[1], INK), strict=True)),
        sizes=dict(zip(names, (0.4, 1.0, 1.8, 1.8), strict=True)), ax=axes,
    )  # fmt: skip
    printed = long[long["pair"] == names[-1]]
    axes.plot(printed["checkpoint"], printed["log ratio"], "o", color=INK, markerfacecolor="none")
    axes.set_title(f"stand-in: {NAMES['digits']}, {settings.GAP.settings['seeds']} seeds")
    axes.set(xlabel="checkpoint", ylabel="log ratio of accuracies")
    axes.set_xticks(range(1, CHECKPOINTS + 1))
    axes.set_ylim(bottom=2.2 * axes.get_ylim()[0])  # room for the legend
    axes.legend(title="", loc="lower left")
