"""Fig. 8: speed-up against learners at (a) mu = 128 and (b) mu = 4, predicted by the calibrated cost model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from paper_figures.rudra.groups import cifar_times_group, label, training_groups
from paper_figures.rudra.readings import CifarTimes, error_steps
from paper_figures.rudra.rows import FITTED, HELD_OUT, PRINTED, printed_seconds
from paper_figures.rudra.settings import LEARNERS, MANY, PROTOCOLS, splitting
from paper_figures.rudra.simulations import BASELINE, CALIBRATED
from suite.claims.measured import exact
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.printed import printed_value

if TYPE_CHECKING:
    import pandas as pd
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


def frame(mu: int, evidence: Evidence) -> pd.DataFrame:
    """Speed-ups over (0, mu, 1): predicted ones of all protocols, and those of printed times where both are printed.

    Columns: protocol, learners, source ("printed", "predicted", "calibrated on" where its time was), speedup.
    """
    import pandas as pd

    found = []
    for protocol, values in speedups(CifarTimes(evidence), mu).items():
        for learners, speedup in zip(LEARNERS, values, strict=True):
            row = (splitting(protocol, learners) if learners > 1 else 0, mu, learners)
            source = FITTED if row in CALIBRATED else HELD_OUT
            found.append({"protocol": protocol, "learners": learners, "source": source, "speedup": speedup})
            if BASELINE[1] == mu and row in PRINTED:
                printed = {"source": "printed", "speedup": printed_seconds(BASELINE) / printed_seconds(row)}
                found.append({"protocol": protocol, "learners": learners, **printed})
    return pd.DataFrame(found)


def draw(mu: int, evidence: Evidence, figure: Figure) -> None:
    import seaborn as sns

    from suite.report.style import GRID, INK, MARKERS, PALETTE

    table = frame(mu, evidence)
    axes = figure.subplots()
    looks: dict[str, Any] = {"hue": "protocol", "hue_order": PROTOCOLS, "palette": PALETTE[:3], "ax": axes}
    ours = table[table["source"] != "printed"]
    sns.lineplot(ours, x="learners", y="speedup", style="protocol", markers=list(MARKERS[:3]), markersize=6, **looks)
    printed, fitted = table[table["source"] == "printed"], table[table["source"] == FITTED]
    if len(printed):
        sns.scatterplot(printed, x="learners", y="speedup", s=70, facecolors="none", legend=False, **looks)
        edges = [PALETTE[PROTOCOLS.index(protocol)] for protocol in printed["protocol"]]
        axes.collections[-1].set(edgecolors=edges, facecolors="none")
        axes.scatter([], [], s=60, facecolors="none", edgecolors=INK, label="printed times")
    axes.scatter(fitted["learners"], fitted["speedup"], marker="x", color=INK, zorder=4, label=FITTED)
    axes.plot(LEARNERS, LEARNERS, color=GRID, linewidth=0.8, linestyle="--", label="linear")
    axes.set(xlabel="learners", ylabel=f"speed-up over (0, {mu}, 1)", title="times predicted by the cost model")
    axes.set_xticks(LEARNERS, [str(k) for k in LEARNERS])
    axes.legend()


ARTIFACTS = (
    Artifact(
        "rudra/fig8a",
        "Speed-up against learners at mu = 128",
        runs,
        (measure_a_arithmetic, measure_a_times, measure_a_errors),
        partial(draw, 128),
        alt="Predicted speed-ups of three protocols at mu = 128; hardsync is lowest.",
        frame=partial(frame, 128),
    ),
    Artifact(
        "rudra/fig8b",
        "Speed-up against learners at mu = 4",
        runs,
        (measure_b,),
        partial(draw, 4),
        alt="Predicted speed-ups of three protocols at mu = 4; 1-softsync is highest.",
        frame=partial(frame, 4),
    ),
)
