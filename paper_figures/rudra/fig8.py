"""Fig. 8: speed-up against learners at (a) mu = 128 and (b) mu = 4, predicted by the calibrated cost model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import cifar_times_group, label, training_groups
from paper_figures.rudra.readings import CifarTimes, error_steps
from paper_figures.rudra.settings import LEARNERS, MANY, PROTOCOLS, splitting
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return {**cifar_times_group(), **training_groups(profile, [(0, 128, 30), (30, 128, 30)])}


def speedups(times: CifarTimes, mu: int) -> dict[str, list[float]]:
    """Predicted speed-up over one learner with the same mu, by protocol, for LEARNERS."""
    alone = times[0, mu, 1]
    return {p: [alone / times[splitting(p, k), mu, k] for k in LEARNERS] for p in PROTOCOLS}


def measure_a_arithmetic(evidence: Evidence) -> Quantities:
    baseline = printed_value("rudra/table3/baseline-time")
    rows = (13, 12, 18, 22, 23)  # of Table 2: (1, 128, 2), (2, 128, 2), (4, 128, 4), (1, 128, 10), (10, 128, 10)
    yield (
        "table-speedups",
        exact([baseline / printed_value(f"rudra/table2/r{at:02d}-training-time") for at in rows]),
    )


def measure_a_times(evidence: Evidence) -> Quantities:
    times = CifarTimes(evidence)
    yield "softsyncs-similar", times.simulated([times[k, 128, k] / times[1, 128, k] for k in MANY])
    gains = speedups(times, 128)
    steps = [min(gains[p][at] for p in PROTOCOLS[1:]) - gains["hardsync"][at] for at in (-2, -1)]
    yield "hardsync-worst", times.simulated(min(steps))


def measure_a_errors(evidence: Evidence) -> Quantities:
    yield "hardsync-lower-error", error_steps(evidence, [label((0, 128, 30)), label((30, 128, 30))])


def measure_b(evidence: Evidence) -> Quantities:
    times = CifarTimes(evidence)
    gains = speedups(times, 4)
    at_18 = LEARNERS.index(18)
    yield "one-softsync-best", times.simulated(gains["1-softsync"][at_18] - gains["lambda-softsync"][at_18])
    hard, asynchronous, one = (gains[p][-1] for p in PROTOCOLS)
    yield "hardsync-worst", times.simulated([asynchronous - hard, one - asynchronous])
    seconds = [times[n, 4, 30] for n in (1, 30, 0)]
    yield "time-ratio-at-30", times.simulated([seconds[1] - seconds[0], seconds[2] - seconds[1]])


def _draw(mu: int, evidence: Evidence, figure: Figure) -> None:
    axes: Axes = figure.subplots()
    for protocol, values in speedups(CifarTimes(evidence), mu).items():
        axes.plot(LEARNERS, values, marker="o", markersize=4, label=protocol)
    axes.plot(LEARNERS, LEARNERS, color="0.6", linewidth=0.8, linestyle="--", label="linear")
    axes.set(xlabel="learners", ylabel=f"speed-up over (0, {mu}, 1), predicted")
    axes.legend()


def draw_a(evidence: Evidence, figure: Figure) -> None:
    _draw(128, evidence, figure)


def draw_b(evidence: Evidence, figure: Figure) -> None:
    _draw(4, evidence, figure)


ARTIFACTS = (
    Artifact(
        "rudra/fig8a",
        "Speed-up against learners at mu = 128",
        runs,
        (measure_a_arithmetic, measure_a_times, measure_a_errors),
        draw_a,
        alt="Predicted speed-ups of three protocols at mu = 128; hardsync is lowest.",
    ),
    Artifact(
        "rudra/fig8b",
        "Speed-up against learners at mu = 4",
        runs,
        (measure_b,),
        draw_b,
        alt="Predicted speed-ups of three protocols at mu = 4; 1-softsync is highest.",
    ),
)
