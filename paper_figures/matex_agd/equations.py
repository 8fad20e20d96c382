"""Eq. 1-2, the update of weights and biases, and what the paper says of speed-up and parallel efficiency.

Beside the printed efficiency stands what a shaped link shows: the rates of every method relative to no
communication, measured, simulated and predicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.matex_agd import algorithms
from suite.claims.intervals import Interval, log_interval
from suite.claims.measured import exact, interval
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.printed import printed_value
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from suite.runs.store import Run

SPEEDS = (2e8, 6e8, 4e9)  # bits per second: communication-bound, balanced, compute-bound
WORKLOADS = {
    "sleeping": "sleeping stand-in (simulated compute)",
    "computing": "LeNet, one thread a worker (measured)",
}
LINK = RunSpec("matex_agd/link", {"speeds": SPEEDS, "repeats": 5})


def link_runs(profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Needs root and Linux, so it is no part of ``smoke``."""
    return {} if profile == "smoke" else {"link": (LINK,)}


def measure_update_rule(evidence: Evidence) -> Quantities:
    run = evidence.run("properties")
    found, runs = run.results, (run.id,)
    note = "cost before less cost after a step of 1e-3, with the printed plus sign"
    yield "descent", exact(found["algorithm_1/cost lowered by plus"], runs=runs, note=note)
    yield "descent-minus", exact(found["algorithm_1/cost lowered by minus"], runs=runs, note="with a minus sign")


def measure_efficiency(evidence: Evidence) -> Quantities:
    best, speedup = printed_value("matex_agd/fig1a/efficiency"), printed_value("matex_agd/fig1a/speedup")
    yield "consistency", exact(best / speedup, note="82% / 1.7, if both belong to one setting")


def link_run(evidence: Evidence) -> Run:
    """The run over the shaped link. Raises Missing, with the reason, where there was none."""
    if "link" not in evidence.groups:
        raise Missing(f"no shaped link at {evidence.profile}")
    run = evidence.run("link")
    if run.results["skipped"]:
        raise Missing(f"the shaped link could not be made: {run.results['skipped']}")
    return run


def ratios(run: Run, workload: str, speed: float, method: str, base: str = "no comm") -> Interval:
    """Rate of ``method`` over that of ``base``, paired by repetition."""
    table = run.curve(workload)
    table = table[table["speed"] == speed].pivot(index="repeat", columns="method", values="seconds").dropna()
    return log_interval([float(value) for value in table[base] / table[method]])


def measure_link_ratios(evidence: Evidence) -> Quantities:
    """Every method over no communication, and the best delayed exchange over DDP, with Student t intervals."""
    run = link_run(evidence)
    methods = [name for name in run.curve("sleeping")["method"].unique() if name not in ("no comm", "empty sum")]
    for workload in WORKLOADS:
        kind = "simulated" if workload == "sleeping" else "measured"
        for method, base in [(name, "no comm") for name in methods] + [("AGD 1 comm", "PyTorch DDP")]:
            seen = [ratios(run, workload, speed, method, base) for speed in SPEEDS]
            yield (
                f"{workload}: {method} over {base}",
                interval(
                    [i.mean for i in seen],
                    [i.low for i in seen],
                    [i.high for i in seen],
                    kind=kind,
                    n=seen[0].n,
                    runs=(run.id,),
                    note="at 200 Mbit/s, 600 Mbit/s and 4 Gbit/s between two workers",
                ),
            )


def draw_link(evidence: Evidence, figure: Figure) -> None:
    """One panel a workload; bars by speed, crosses where the cost model predicts the sleeping network."""
    run = link_run(evidence)
    for axes, workload in zip(figure.subplots(1, 2, sharey=True), WORKLOADS, strict=True):
        draw_workload(axes, run, workload)


def draw_workload(axes: Axes, run: Run, workload: str) -> None:
    methods = [name for name in run.curve(workload)["method"].unique() if name != "empty sum"]
    forecast = run.curve("predicted").set_index(["method", "speed"])["rate"]
    for place, speed in enumerate(SPEEDS):
        at = [x + (place - 1) * 0.26 for x in range(len(methods))]
        seen = [ratios(run, workload, speed, name) for name in methods]
        spread = [[i.mean - i.low for i in seen], [i.high - i.mean for i in seen]]
        axes.bar(at, [i.mean for i in seen], 0.24, yerr=spread, capsize=1.5, error_kw={"linewidth": 0.7},
                 label=f"{speed / 1e6:g} Mbit/s")  # fmt: skip
        if workload == "sleeping":
            known = [
                (x, forecast[name, speed]) for x, name in zip(at, methods, strict=True) if (name, speed) in forecast
            ]
            axes.plot(*zip(*known, strict=True), "kx", markersize=4, label=None if place else "cost model")
    labels = [name.replace("layer-wise, ", "layer-wise\n").replace("PyTorch ", "PyTorch\n") for name in methods]
    axes.set_xticks(range(len(methods)), [label.replace("AGD ", "AGD\n") for label in labels], fontsize=6)
    axes.set_ylim(0, 1.5)
    axes.set_ylabel("rate relative to no comm", fontsize=7)
    axes.set_title(WORKLOADS[workload], fontsize=8)
    axes.legend(fontsize=6, loc="upper left")


ARTIFACTS = (
    Artifact("matex_agd/eq1", "Update of weights and biases", algorithms.runs, (measure_update_rule,)),
    Artifact(
        "matex_agd/eq-efficiency",
        "Speed-up and parallel efficiency",
        link_runs,
        (measure_efficiency, measure_link_ratios),
        draw_link,
        "Rates relative to no communication of every method over a shaped link at three speeds, with the cost "
        "model's prediction, for a sleeping and a computing network",
        (9.6, 4.0),
    ),
)
