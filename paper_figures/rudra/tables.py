"""Tables 2, 3 and 4: errors by training, times of the paper's machine by calibrated cost models."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

from paper_figures.rudra.machine import CIFAR_BYTES, EPOCHS, IMAGENET_BYTES, TRAINING_IMAGES
from paper_figures.rudra.protocols import simulated
from paper_figures.rudra.readings import error_steps, final_error, label, times, times_group, training_groups
from paper_figures.rudra.settings import at_profile, collect, imagenet_training, training
from paper_figures.rudra.simulations import (
    BASELINE,
    CALIBRATED,
    CALIBRATED4,
    TABLE2,
    TABLE3,
    TABLE4,
    imagenet_messages,
    imagenet_times,
    printed,
)
from suite.claims.measured import Measured, exact, point
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUPS = (128, 256, 512, 1024)


def group_of(configuration: tuple[int, int, int]) -> int:
    """The paper's group: the power of two nearest to mu lambda."""
    _, batch, learners = configuration
    return min(GROUPS, key=lambda g: abs(g - batch * learners) / g)


def members(group: int) -> list[int]:
    """Row numbers, from 1, of a group of Table 2."""
    return [at for at, row in enumerate(TABLE2, 1) if group_of(row) == group]


# --- Table 2


def table2_runs(profile: str) -> Groups:
    return {**times_group(), **training_groups(profile, TABLE2)}


def table2_errors(evidence: Evidence) -> Quantities:
    for at, row in enumerate(TABLE2, 1):
        if label(row) in evidence.groups and evidence.profile == "paper":
            yield f"r{at:02d}-test-error", final_error(evidence, label(row))


def table2_groups(evidence: Evidence) -> Quantities:
    found = {row: final_error(evidence, label(row)) for row in TABLE2}
    means = {g: [found[TABLE2[at - 1]].values[0] for at in members(g)] for g in GROUPS}
    ids = [run_id for value in found.values() for run_id in value.runs]
    ends = [end for g in GROUPS for end in (min(means[g]), max(means[g]))][1:-1]
    ordered = ends
    steps = [b - a for a, b in pairwise(ordered)]
    yield "error-monotone-in-product", point(steps, kind="measured", n=3, runs=ids)
    yield "group-128-range", point(means[128], kind="measured", n=3, runs=ids)


def table2_pairs(evidence: Evidence) -> Quantities:
    found = [error_steps(evidence, [label((1, mu, 30)), label((30, mu, 30))]) for mu in (4, 32)]
    yield "staleness-irrelevant", _joined(found)
    yield "principle", error_steps(evidence, [label((1, 4, 30)), label((1, 32, 30))])


def _joined(parts: list[Measured]) -> Measured:
    return Measured(
        tuple(v for p in parts for v in p.values),
        tuple(v for p in parts for v in p.low),
        tuple(v for p in parts for v in p.high),
        parts[0].kind,
        parts[0].n,
        tuple(run for p in parts for run in p.runs),
        parts[0].note,
    )


def table2_times(evidence: Evidence) -> Quantities:
    predicted = times(evidence)
    for at, row in enumerate(TABLE2, 1):
        yield f"r{at:02d}-training-time", predicted.predicted(row)
    fastest, falls = [], []
    for group in GROUPS:
        rows = [TABLE2[at - 1] for at in members(group)]
        ours = [predicted[row] for row in rows if row[0] == 1]
        fastest.append(min(ours) < min(predicted[row] for row in rows if row[0] != 1))
        for a, b in combinations(rows, 2):
            if a[2] != b[2]:
                falls.append((predicted[a] - predicted[b]) * (a[2] - b[2]) < 0)
    yield "one-softsync-fastest", predicted.simulated(sum(fastest) / len(fastest))
    yield "time-falls-with-lambda", predicted.simulated(sum(falls) / len(falls))


def table2_arithmetic(evidence: Evidence) -> Quantities:
    spread, products = [], []
    for group in GROUPS:
        errors = [printed(f"table2/r{at:02d}-test-error")[0] for at in members(group)]
        spread.append(max(errors) - min(errors))
        sizes = [TABLE2[at - 1][1] * TABLE2[at - 1][2] for at in members(group)]
        products += [min(sizes), max(sizes)]
    yield "group-ranges", exact(spread)
    yield "products", exact(products)
    smallest_batch = 1
    yield "learner-limit", exact(BASELINE[1] * BASELINE[2] // smallest_batch)


def draw_times(evidence: Evidence, figure: Figure) -> None:
    """Predicted against printed time, calibration rows apart, and the error of each row."""
    predicted = times(evidence)
    rows = [(f"table2/r{at:02d}-training-time", row) for at, row in enumerate(TABLE2, 1)]
    rows += [(f"table3/r{at:02d}-training-time", row) for at, row in enumerate(TABLE3, 1) if row[0] == 0]
    rows += [("table3/baseline-time", BASELINE)]
    axes = figure.subplots()
    for at, (claim, row) in enumerate(rows):
        theirs = printed(claim)[0]
        off = 100 * (predicted[row] / theirs - 1)
        fitted = row in CALIBRATED
        axes.barh(at, off, color="0.7" if fitted else "C0")
        side = "left" if off >= 0 else "right"
        axes.text(off, at, f" {predicted[row]:.0f} / {theirs:.0f} s ", va="center", ha=side, fontsize=6)
    axes.axvspan(-20, 20, color="0.5", alpha=0.12)
    axes.set_yticks(range(len(rows)), [label(row) for _, row in rows], fontsize=7)
    axes.set(xlabel="predicted over printed time, error in % (grey: calibrated on)", xlim=(-45, 55))
    axes.invert_yaxis()


# --- Table 3


def table3_runs(profile: str) -> Groups:
    groups = {**times_group(), **training_groups(profile, [*TABLE3, BASELINE])}
    if profile == "paper":
        groups["without drops"] = at_profile(BASELINE, profile, drops=False)
    return groups


def table3_errors(evidence: Evidence) -> Quantities:
    if evidence.profile == "paper":
        for at, row in enumerate(TABLE3, 1):
            yield f"r{at:02d}-test-error", final_error(evidence, label(row))
        yield "baseline-error", final_error(evidence, label(BASELINE))
        yield "cifar10-model-schedule-essential", error_steps(evidence, [label(BASELINE), "without drops"])


def table3_times(evidence: Evidence) -> Quantities:
    predicted = times(evidence)
    for at, row in enumerate(TABLE3, 1):
        yield f"r{at:02d}-training-time", predicted.predicted(row)
    yield "baseline-time", predicted.predicted(BASELINE)
    one = predicted[1, 8, 30]
    yield "one-softsync-lowest-runtime", predicted.simulated([predicted[30, 8, 30] - one, predicted[0, 8, 30] - one])


def table3_arithmetic(evidence: Evidence) -> Quantities:
    from suite.data.catalogue import DATASETS
    from suite.models.table import counts

    seconds = [printed(f"table3/r{at:02d}-training-time")[0] for at in range(1, 6)]
    baseline = printed("table3/baseline-time")[0]
    yield "sorted-by-time", exact([b - a for a, b in pairwise(seconds)])
    repeated = [
        _same(f"table3/r{at:02d}", f"table2/r{TABLE2.index(row) + 1:02d}")
        for at, row in enumerate(TABLE3, 1)
        if row in TABLE2
    ]
    yield "consistent-with-table2", exact(sum(repeated))
    yield "speedups", exact([baseline / s for s in seconds])
    parameters = counts("caffe_cifar_full").parameters
    yield "cifar10-model-parameters", exact(parameters)
    assert 4 * parameters == CIFAR_BYTES
    yield "cifar10-model-size", exact(CIFAR_BYTES / 1024)
    yield "cifar10-model-lr-schedule", exact(_schedule(training(BASELINE, EPOCHS, 0).settings, TRAINING_IMAGES))
    data = DATASETS["cifar10"]
    train, test = data.sizes["train"], data.sizes["test"]
    yield "cifar10-model-split", exact([train + test, train, test, (train + test) / data.classes])


def _same(a: str, b: str) -> bool:
    return all(printed(f"{a}-{what}") == printed(f"{b}-{what}") for what in ("test-error", "training-time"))


def _schedule(settings: Any, images: int) -> list[float]:
    """Rate, epochs of the drops to a tenth, and all epochs, as a specification's updates have it."""
    each = settings["batch"] * collect(settings["algorithm"]["n"], settings["workers"]) / images
    assert [factor for _, factor in settings["drops"]] == [0.1, 0.01]
    return [settings["rate"], *(at * each for at, _ in settings["drops"]), settings["updates"] * each]


# --- Table 4


def table4_runs(profile: str) -> Groups:
    groups: dict[str, Any] = {"times": (imagenet_times(),), "adv": (imagenet_messages("adv", 1, 4, 54),)}
    if profile == "paper":
        groups["base-hardsync"] = (imagenet_training((0, 16, 18), 30, 0),)
        groups["baseline"] = (imagenet_training((0, 256, 1), 30, 0),)
    return groups


def table4_errors(evidence: Evidence) -> Quantities:
    if evidence.profile == "paper":
        yield "base-hardsync-top1", final_error(evidence, "base-hardsync")
        yield "baseline-top1", final_error(evidence, "baseline")


def table4_times(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    minutes = {tuple(row): value for row, value in zip(run.results["rows"], run.results["predicted"], strict=True)}
    for name, row in TABLE4.items():
        fitted = name in CALIBRATED4
        value = minutes[row] / 60 if name == "baseline-hours" else minutes[row]
        kind, note = ("proxy", "calibration row") if fitted else ("simulated", "held out")
        yield name, point(value, kind=kind, runs=[run.id], note=note)
    adv = evidence.run("adv")
    yield "adv-staleness-one", simulated(adv.results["mean"], adv)


def table4_arithmetic(evidence: Evidence) -> Quantities:
    from suite.data.catalogue import DATASETS
    from suite.models.table import counts

    hours = printed("table4/baseline-hours")[0]
    rows = ("base-hardsync-time", "base-softsync-time", "adv-softsync-time", "adv-star-softsync-time")
    yield "speedups", exact([60 * hours / printed(f"table4/{name}")[0] for name in rows])
    parameters = counts("caffe_alexnet").parameters
    note = "the network of Krizhevsky et al. (2012), which the text cites"
    yield "imagenet-model-parameters", exact(parameters, note=note)
    yield "imagenet-model-size", exact(4 * parameters / 1e6, note=note)
    yield "imagenet-model-size-parameters", exact(IMAGENET_BYTES / 4 / 1e6)
    data = DATASETS["imagenet"]
    yield "imagenet-model-images", exact([data.sizes["train"], data.sizes["validation"], data.classes])
    hardsync = imagenet_training((0, 16, 18), 30, 0)
    yield "imagenet-model-schedule", exact(_schedule(hardsync.settings, data.sizes["train"]))


TABLE_ARTIFACTS = (
    Artifact(
        "rudra/table2",
        "Error and time of configurations of about equal mu lambda",
        table2_runs,
        (table2_arithmetic, table2_times, table2_errors, table2_pairs, table2_groups),
        draw_times,
        alt="Error of the predicted time of every row of Tables 2 and 3, calibration rows in grey.",
        size=(7.0, 6.5),
    ),
    Artifact(
        "rudra/table3",
        "The five best configurations",
        table3_runs,
        (table3_arithmetic, table3_times, table3_errors),
        draw_times,
        alt="Error of the predicted time of every row of Tables 2 and 3, calibration rows in grey.",
        size=(7.0, 6.5),
    ),
    Artifact(
        "rudra/table4",
        "Error and time of four configurations on ImageNet",
        table4_runs,
        (table4_arithmetic, table4_times, table4_errors),
    ),
)
