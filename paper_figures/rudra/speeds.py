"""Figs. 8 and 9: speed-ups and ImageNet over time, predicted by the calibrated cost models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.protocols import simulated
from paper_figures.rudra.readings import error_steps, label, times, times_group, training_groups
from paper_figures.rudra.settings import LEARNERS
from paper_figures.rudra.simulations import TABLE4, imagenet_times, printed
from paper_figures.rudra.tradeoffs import MANY, PROTOCOLS, splitting
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def fig8_runs(profile: str) -> Groups:
    return {**times_group(), **training_groups(profile, [(0, 128, 30), (30, 128, 30)])}


def speedups(evidence: Evidence, mu: int) -> dict[str, list[float]]:
    """Predicted speed-up over one learner with the same mu, by protocol, for LEARNERS."""
    predicted = times(evidence)
    alone = predicted[0, mu, 1]
    return {p: [alone / predicted[splitting(p, k), mu, k] for k in LEARNERS] for p in PROTOCOLS}


def fig8a(evidence: Evidence) -> Quantities:
    predicted = times(evidence)
    yield "softsyncs-similar", predicted.simulated([predicted[k, 128, k] / predicted[1, 128, k] for k in MANY])
    gains = speedups(evidence, 128)
    steps = [min(gains[p][at] for p in PROTOCOLS[1:]) - gains["hardsync"][at] for at in (-2, -1)]
    yield "hardsync-worst", predicted.simulated(min(steps))


def fig8a_errors(evidence: Evidence) -> Quantities:
    yield "hardsync-lower-error", error_steps(evidence, [label((0, 128, 30)), label((30, 128, 30))])


def fig8a_arithmetic(evidence: Evidence) -> Quantities:
    baseline = printed("table3/baseline-time")[0]
    rows = (13, 12, 18, 22, 23)  # of Table 2: (1, 128, 2), (2, 128, 2), (4, 128, 4), (1, 128, 10), (10, 128, 10)
    yield "table-speedups", exact([baseline / printed(f"table2/r{at:02d}-training-time")[0] for at in rows])


def fig8b(evidence: Evidence) -> Quantities:
    predicted = times(evidence)
    gains = speedups(evidence, 4)
    at_18 = LEARNERS.index(18)
    yield "one-softsync-best", predicted.simulated(gains["1-softsync"][at_18] - gains["lambda-softsync"][at_18])
    hard, asynchronous, one = (gains[p][-1] for p in PROTOCOLS)
    yield "hardsync-worst", predicted.simulated([asynchronous - hard, one - asynchronous])
    seconds = [predicted[n, 4, 30] for n in (1, 30, 0)]
    yield "time-ratio-at-30", predicted.simulated([seconds[1] - seconds[0], seconds[2] - seconds[1]])


def draw_speedups(mu: int, evidence: Evidence, figure: Figure) -> None:
    axes: Axes = figure.subplots()
    for protocol, values in speedups(evidence, mu).items():
        axes.plot(LEARNERS, values, marker="o", markersize=4, label=protocol)
    axes.plot(LEARNERS, LEARNERS, color="0.6", linewidth=0.8, linestyle="--", label="linear")
    axes.set(xlabel="learners", ylabel=f"speed-up over (0, {mu}, 1), predicted")
    axes.legend()


def draw_fig8a(evidence: Evidence, figure: Figure) -> None:
    draw_speedups(128, evidence, figure)


def draw_fig8b(evidence: Evidence, figure: Figure) -> None:
    draw_speedups(4, evidence, figure)


# --- Fig. 9


def fig9_runs(profile: str) -> Groups:
    return {"times": (imagenet_times(),)}


def fig9(evidence: Evidence) -> Quantities:
    run = evidence.run("times")
    minutes = {tuple(row): value for row, value in zip(run.results["rows"], run.results["predicted"], strict=True)}
    at_54 = [minutes[system, 1, 8, 54] for system in ("adv*", "adv", "base")]
    steps = [at_54[1] - at_54[0], at_54[2] - at_54[1], minutes["base", 0, 16, 18] - minutes["base", 1, 16, 18]]
    yield "speed-order", simulated(steps, run)


def draw_fig9(evidence: Evidence, figure: Figure) -> None:
    """Predicted time per epoch of the four configurations beside the printed one; the errors need ImageNet."""
    run = evidence.run("times")
    minutes = {tuple(row): value for row, value in zip(run.results["rows"], run.results["predicted"], strict=True)}
    names = [name for name in TABLE4 if name.endswith("sync-time")]
    axes = figure.subplots()
    for at, name in enumerate(names):
        axes.barh(at - 0.2, printed(f"table4/{name}")[0], 0.4, color="0.7", label="paper" if at == 0 else None)
        axes.barh(at + 0.2, minutes[TABLE4[name]], 0.4, color="C0", label="model" if at == 0 else None)
    axes.set_yticks(range(len(names)), [name.removesuffix("-time").replace("-star", "*") for name in names])
    axes.set(xlabel="minutes per epoch")
    axes.legend()


SPEED_ARTIFACTS = (
    Artifact(
        "rudra/fig8a",
        "Speed-up against learners at mu = 128",
        fig8_runs,
        (fig8a_arithmetic, fig8a, fig8a_errors),
        draw_fig8a,
        alt="Predicted speed-ups of three protocols at mu = 128; hardsync is lowest.",
    ),
    Artifact(
        "rudra/fig8b",
        "Speed-up against learners at mu = 4",
        fig8_runs,
        (fig8b,),
        draw_fig8b,
        alt="Predicted speed-ups of three protocols at mu = 4; 1-softsync is highest.",
    ),
    Artifact(
        "rudra/fig9",
        "ImageNet error against time",
        fig9_runs,
        (fig9,),
        draw_fig9,
        alt="Printed and predicted minutes per epoch of the four ImageNet configurations.",
    ),
)
