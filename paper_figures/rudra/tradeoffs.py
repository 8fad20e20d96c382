"""Figs. 5 to 9: modulation of the rate, trade-off curves, speed-ups, ImageNet over time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from paper_figures.rudra.protocols import counted, modulation_runs, simulated
from paper_figures.rudra.readings import (
    error_steps,
    errors,
    final_error,
    label,
    runs_of,
    sampling,
    times,
    times_group,
    training_groups,
)
from paper_figures.rudra.settings import BATCHES, LEARNERS, Configuration
from paper_figures.rudra.simulations import clock, identities, messages, throughput
from suite.claims.measured import exact, interval, point
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = (2, 4, 10, 18, 30)  # more than one learner


def splitting(protocol: str, learners: int) -> int:
    """n of one of the three protocols of Fig. 8."""
    return {"hardsync": 0, "1-softsync": 1, "lambda-softsync": learners}[protocol]


PROTOCOLS = ("hardsync", "lambda-softsync", "1-softsync")


def grid(protocol: str) -> list[Configuration]:
    """The 36 configurations of a protocol."""
    return [(splitting(protocol, k), mu, k) for k in LEARNERS for mu in BATCHES]


# --- Fig. 5


def fig5(evidence: Evidence) -> Quantities:
    failed = errors(evidence, "alpha0")
    ids = [run.id for run in runs_of(evidence, "alpha0")]
    spread = [sampling(error) for error in failed]
    worst = max(range(len(failed)), key=lambda at: abs(failed[at] - 90))
    yield "n30-diverges", point(failed[worst], kind="measured", spread=spread[worst], n=len(failed), runs=ids)
    yield "n30-lower", error_steps(evidence, ["alpha0/30", "alpha0"])
    if evidence.profile == "paper":
        yield "n4-lower", error_steps(evidence, ["alpha0/4", "alpha0 of 4-softsync"])


def fig5_arithmetic(evidence: Evidence) -> Quantities:
    from suite.data.catalogue import DATASETS

    yield "chance-level", exact(100 * (1 - 1 / DATASETS["cifar10"].classes))


def draw_fig5(evidence: Evidence, figure: Figure) -> None:
    if not evidence.groups:
        raise Missing(f"nothing is trained at profile {evidence.profile}")
    axes = figure.subplots()
    for group in evidence.groups:
        for run in evidence.runs(group):
            table = run.curve("evaluations")
            name = f"30-softsync, {group}" if group in ("alpha0", "alpha0/30") else group
            axes.plot(table["epoch"], 100 * table["test_error"], marker="o", markersize=3, label=name)
    axes.set(xlabel="epoch", ylabel="test error (%)", ylim=(0, 100))
    axes.legend()


# --- Figs. 6 and 7


def grid_runs(protocol: str, profile: str) -> Groups:
    groups = {**times_group(), **training_groups(profile, grid(protocol))}
    if protocol == "lambda-softsync":
        groups |= training_groups(profile, [(0, 128, 30)])
        groups["mu 4"] = tuple(messages(k, 4, k, 30_000) for k in MANY)
        groups["alike"] = tuple(clock(k, k, gradients=30_000) for k in MANY)
        groups["identities"] = (identities(),)
    if protocol == "1-softsync":
        groups["zero jitter"] = tuple(clock(1, k, jitter=0.0, gradients=30_000) for k in LEARNERS)
        groups["pulls"] = (messages(1, 4), messages(30, 4))
        groups |= training_groups(profile, [(30, 4, 30), (30, 128, 30), (2, 4, 2), (2, 128, 2)])
    if protocol == "hardsync":
        groups["throughput"] = (throughput(),)
    return groups


def fig6_runs(profile: str) -> Groups:
    return grid_runs("hardsync", profile)


def fig7a_runs(profile: str) -> Groups:
    return grid_runs("lambda-softsync", profile)


def fig7b_runs(profile: str) -> Groups:
    return grid_runs("1-softsync", profile)


def fig6_errors(evidence: Evidence) -> Quantities:
    yield "restore-by-small-mu", error_steps(evidence, [label((0, 4, 30)), label((0, 128, 30))])
    if evidence.profile == "paper":
        yield "baseline-line", final_error(evidence, label((0, 128, 1)))
        yield "small-mu-lower-error", final_error(evidence, label((0, 4, 1)))
        yield "error-rises-with-lambda", error_steps(evidence, [label((0, 128, k)) for k in LEARNERS])


def fig6_times(evidence: Evidence) -> Quantities:
    predicted = times(evidence)
    seconds = [predicted[0, 128, k] for k in reversed(LEARNERS)]
    steps = [b - a for a, b in itertools.pairwise(seconds)]
    yield "time-monotone-in-lambda", predicted.simulated(steps)


def fig6_throughput(evidence: Evidence) -> Quantities:
    from math import log

    from suite.claims.intervals import log_interval, mean_interval

    run = evidence.run("throughput")
    longer = log_interval(run.results["training_ratios"])
    yield (
        "small-mu-longer",
        interval(longer.mean, longer.low, longer.high, kind="measured", n=longer.n, runs=[run.id]),
    )
    gain = mean_interval([log(ratio) for ratio in run.results["product_ratios"]])
    yield "gemm-throughput", interval(gain.mean, gain.low, gain.high, kind="measured", n=gain.n, runs=[run.id])


def fig6_grid(evidence: Evidence) -> Quantities:
    planned = training_groups("paper", grid("hardsync"))
    yield "grid", exact(len({spec.id for specs in planned.values() for spec in specs if spec.seed == 0}))


def fig7a_errors(evidence: Evidence) -> Quantities:
    yield "degradation-larger", error_steps(evidence, [label((0, 128, 30)), label((30, 128, 30))])
    yield "mitigated-by-small-mu", error_steps(evidence, [label((30, 4, 30)), label((30, 128, 30))])
    if evidence.profile == "paper":
        found = [final_error(evidence, label((k, 4, k))) for k in LEARNERS]
        worst = max(found, key=lambda value: value.values[0])
        yield "mu4-immune", worst


def fig7a_protocol(evidence: Evidence) -> Quantities:
    mu4, alike, same = evidence.runs("mu 4"), evidence.runs("alike"), evidence.run("identities")
    yield "mu4-staleness", simulated([mu4[0].results["mean"], mu4[-1].results["mean"]], mu4[0], mu4[-1])
    yield "lambda1-is-hardsync", exact(same.results["one_learner_softsync"], runs=[same.id])
    largest = max(run.results["largest"] / k for k, run in zip(MANY, alike, strict=True))
    yield "max-2lambda", simulated(largest, *alike)


def fig7a_times(evidence: Evidence) -> Quantities:
    predicted = times(evidence)
    yield "time-jump", predicted.simulated(predicted[30, 4, 30] - predicted[30, 128, 30])


def fig7b_protocol(evidence: Evidence) -> Quantities:
    runs = evidence.runs("zero jitter")
    yield "staleness-one", counted([run.results["mean"] for run in runs], *runs)
    one, many = evidence.runs("pulls")
    moved = [run.results["pulls"] / run.results["pushes"] for run in (one, many)]
    yield "fewer-pulls", simulated(moved[1] - moved[0], one, many)


def fig7b_times(evidence: Evidence) -> Quantities:
    predicted = times(evidence)
    yield "no-slowdown", predicted.simulated(predicted[18, 4, 18] - predicted[1, 4, 18])


def fig7b_errors(evidence: Evidence) -> Quantities:
    if evidence.profile == "paper":
        corners = [(mu, k) for mu in (4, 128) for k in (2, 30)]
        found = [error_steps(evidence, [label((k, mu, k)), label((1, mu, k))]) for mu, k in corners]
        yield (
            "like-lambda-softsync",
            interval(
                [f.values[0] for f in found],
                [f.low[0] for f in found],
                [f.high[0] for f in found],
                kind="measured",
                n=found[0].n,
                runs=[run for f in found for run in f.runs],
            ),
        )


def draw_tradeoff(protocol: str, evidence: Evidence, figure: Figure) -> None:
    """Error against virtual time where there are errors; contours of time over the grid beside it.

    Raises Missing where the profile trains, but none of its runs is stored.
    """
    configurations = [c for c in [*grid(protocol), (0, 128, 30)] if label(c) in evidence.groups]
    left, right = figure.subplots(1, 2)
    predicted = times(evidence)
    for mu in BATCHES:
        points = [(k, predicted[splitting(protocol, k), mu, k]) for k in LEARNERS]
        right.plot(*zip(*points, strict=True), marker="o", markersize=3, label=f"mu = {mu}")
    right.set(xscale="log", yscale="log", xlabel="learners", ylabel="predicted seconds, 140 epochs")
    right.legend(fontsize=7)
    shown = 0
    for configuration in dict.fromkeys(configurations):
        try:
            runs = runs_of(evidence, label(configuration))
        except Missing:
            continue
        shown += 1
        for run in runs:
            left.scatter(run.results["virtual_seconds"], 100 * run.results["test_error"], s=16)
            where = (run.results["virtual_seconds"], 100 * run.results["test_error"])
            note = f"{label(configuration)}, {run.results['epoch']:.0f} epochs"
            left.annotate(note, where, fontsize=6, xytext=(3, 3), textcoords="offset points")
    left.set(xlabel="virtual seconds of the run", ylabel="test error (%)")
    if shown:
        left.set_xscale("log")
    elif configurations:
        raise Missing(f"none of the {len(configurations)} configurations is trained at profile {evidence.profile}")
    else:
        left.text(0.5, 0.5, "no training at this profile", ha="center", transform=left.transAxes)


def draw_fig6(evidence: Evidence, figure: Figure) -> None:
    draw_tradeoff("hardsync", evidence, figure)


def draw_fig7a(evidence: Evidence, figure: Figure) -> None:
    draw_tradeoff("lambda-softsync", evidence, figure)


def draw_fig7b(evidence: Evidence, figure: Figure) -> None:
    draw_tradeoff("1-softsync", evidence, figure)


TRADEOFF_ARTIFACTS = (
    Artifact(
        "rudra/fig5",
        "Test error with and without dividing the rate by staleness",
        modulation_runs,
        (fig5_arithmetic, fig5),
        draw_fig5,
        alt="Test error against epochs of 30-softsync: at alpha0 it stays at 90%, at alpha0/30 it falls.",
    ),
    Artifact(
        "rudra/fig6",
        "Error against time under hardsync",
        fig6_runs,
        (fig6_grid, fig6_times, fig6_throughput, fig6_errors),
        draw_fig6,
        alt="Left: test error against virtual time; right: predicted time against learners for each mu.",
        size=(9.0, 4.0),
    ),
    Artifact(
        "rudra/fig7a",
        "Error against time under lambda-softsync",
        fig7a_runs,
        (fig7a_protocol, fig7a_times, fig7a_errors),
        draw_fig7a,
        alt="Left: test error against virtual time; right: predicted time against learners for each mu.",
        size=(9.0, 4.0),
    ),
    Artifact(
        "rudra/fig7b",
        "Error against time under 1-softsync",
        fig7b_runs,
        (fig7b_protocol, fig7b_times, fig7b_errors),
        draw_fig7b,
        alt="Left: test error against virtual time; right: predicted time against learners for each mu.",
        size=(9.0, 4.0),
    ),
)
