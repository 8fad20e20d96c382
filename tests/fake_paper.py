"""A small paper with every verdict: three artifacts with runs in a real store, one that nothing measures."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import live_register
import numpy as np
import pandas as pd
import pytest

from suite.claims.estimate import REDUCED, Estimate
from suite.claims.intervals import Interval
from suite.claims.judge import Claim, Verdict
from suite.papers import catalogue, register
from suite.papers.artifact import Artifact, Frame, Groups, Paper
from suite.papers.catalogue import entries as claims_of
from suite.runs.run import Outcome, encode
from suite.runs.store import Store
from suite.spec import RunSpec

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>'
ESCAPES = "\x1b[2J\x9b1m\u202eobeyed"

PUBLISHED = """
[fig1]
where = "Section 4, Fig. 1"
needs = "cpu-small"
tolerance = 2
because = "two points: ``the spread`` of five seeds is one point"
[fig1.accuracy]
says = "The method reaches 75% accuracy"
printed = 75.0
unit = "%"
[fig1.gain]
says = "It needs 26.79% less time than SGD"
printed = 26.79
unit = "%"
finding = "the gain shrinks to a tenth once both are tuned alike"
[fig1.unexplained]
says = "It needs 12 epochs"
printed = 12
unit = "epochs"
[fig1.steady]
says = "Its loss never rises by more than a tenth"
rule = "bound"
side = "upper"
printed = 0.1
tolerance = 0
[fig1.known]
says = "The baseline beats 60%"
rule = "holds"
finding = "the printed batch size does not fit the printed rate"
[fig1.order]
says = "Smaller staleness is better"
rule = "order"
order = ["lambda = 30", "lambda = 4", "lambda = 1"]
tolerance = 0

[table1]
where = "Section 2, Table 1"
because = "arithmetic"
[table1.learners]
says = "Eight GPUs with two learners each are 16 learners"
printed = 16
[table1.sum]
says = "The rows add up to 100"
printed = 100
doubt = "the rows printed above it add up to 98"
[table1.rows]
says = "Ten rows are printed"
printed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]

[fig2]
where = "Section 5, Fig. 2"
because = "the shape"
needs = "cluster"
profile = "paper"
rule = "holds"
[fig2.scales]
says = "Throughput grows on 64 machines"

[fig3]
where = "Section 6, Fig. 3"
because = "the shape"
needs = "gpu"
profile = "paper"
rule = "holds"
[fig3.nothing]
says = "An artifact that nothing measures"
"""


def specs(profile: str, count: int = 3) -> tuple[RunSpec, ...]:
    return tuple(RunSpec("fake/descent", {"profile": profile, "rate": 0.1}, seed) for seed in range(count))


def fig1_runs(profile: str) -> Groups:
    return {"descent": specs(profile)}


def fig1_draw(frame: Frame, figure) -> None:
    axes = figure.add_subplot()
    losses = frame.needed(["descent"]).table("losses")
    for seed, curve in losses.groupby("seed"):
        axes.plot(curve.epoch, curve.loss, label=f"seed {seed}")
    axes.set_xlabel("time (epochs)")
    axes.set_ylabel("training loss (nats)")
    axes.set_title(noted(frame))
    axes.legend()


def noted(frame: Frame) -> str:
    return str(frame.stored[frame["descent"]["run"].iloc[0]].outcome["note"])


def fig1_accuracy(frame: Frame) -> Interval:
    best = float(frame["descent"]["best"].mean())
    return Interval(best, best - 1.5, best + 1.25, 3)


def about(value: float, spread: float = 0.0) -> Interval:
    return Interval(value, value - spread, value + spread, 3)


def fig1() -> Artifact:
    panel = Artifact("fake/fig1", "Fig. 1: loss over time", fig1_runs, alt="Loss falls.")
    panel.quantity("accuracy", ["descent"])(fig1_accuracy)
    panel.quantity("gain", ["descent"], note=noted)(lambda frame: about(2.6789, 0.31))
    panel.quantity("unexplained", ["descent"])(lambda frame: about(20.0, 1.0))
    panel.quantity("steady", ["descent"])(lambda frame: about(0.1, 0.02))
    panel.quantity("known", ["descent"])(lambda frame: about(0.0))
    panel.quantity("order", ["descent"])(lambda frame: [about(0.5, 0.1), about(0.25, 0.1)])
    unasked = f"what no claim asks for {HOSTILE}"
    panel.quantity("time-over-best", ["descent"], note=unasked)(lambda frame: about(1.0625))
    panel.drawing(fig1_draw)
    return panel


def table1() -> Artifact:
    panel = Artifact("fake/table1", "Table 1: learners")
    panel.quantity("learners")(lambda frame: 8 * 2)
    panel.quantity("sum")(lambda frame: 98)
    panel.quantity("rows")(lambda frame: list(range(1, 11)))
    return panel


def fig2_runs(profile: str) -> Groups:
    return {"cluster": (RunSpec("fake/cluster", {"profile": profile}),)}


def fig2_draw(frame: Frame, figure) -> None:
    speedup = frame.needed(["cluster"]).one("cluster")["speedup"]
    left, right = figure.subplots(1, 2)
    left.bar([str(2**i) for i in range(len(speedup))], speedup)
    left.set(xlabel="learners", ylabel="throughput (examples/s)")
    points = np.random.default_rng(0).normal(size=(2, 20_000))
    right.scatter(*points, s=1)
    right.plot(np.linspace(-3, 3, 50_000), np.sin(np.linspace(-90, 90, 50_000)))
    right.set(xlabel="x (weights)", ylabel="y (weights)")


def fig2() -> Artifact:
    panel = Artifact("fake/fig2", "Fig. 2: scaling", fig2_runs, alt="Bars grow.")
    panel.quantity("scales", ["cluster"], note="two processes on one machine", shown=True)(lambda frame: 1.0)
    panel.drawing(fig2_draw)
    return panel


def fake_paper() -> Paper:
    """A new paper object named ``fake``."""
    return Paper(
        "fake", "A paper that does not exist", "A. Nonymous and N. Obody, 2016", (fig1(), table1(), fig2()), {}
    )


@contextlib.contextmanager
def registered(home: Path) -> Iterator[Paper]:
    """The fake paper as the only one registered, its claims published in ``home``."""
    published = home / "published"
    published.mkdir()
    (published / "fake.toml").write_text(PUBLISHED)
    paper = fake_paper()
    with pytest.MonkeyPatch.context() as patch:
        claims_of.cache_clear()
        catalogue.paper.cache_clear()
        known = catalogue.PAPERS
        for module in [module for module in sys.modules.values() if getattr(module, "PAPERS", None) is known]:
            patch.setattr(module, "PAPERS", {"fake": catalogue.Registered(lambda: paper, home)})
        patch.setattr(register, "read", live_register.read)
        yield paper
    claims_of.cache_clear()
    catalogue.paper.cache_clear()


def claim(name: str = "fake/fig1/it", rule: str = "within", printed: tuple = (10.0,), **more: Any) -> Claim:
    return Claim(name, "It is ten", "1", rule, "smoke", "gpu", "a reason", printed, **more)


def verdict(
    measured: Estimate | None = None,
    said: str = "reproduced",
    rests_on: str = REDUCED,
    made: Claim | None = None,
    **more: Any,
) -> Verdict:
    return Verdict(made or claim(), said, "so it is", measured, "smoke", rests_on=rests_on, **more)


def environment(index: int = 0) -> dict:
    return {
        "machine": {"cpu": f"Imaginary {index}", "cores": 2, "memory_bytes": 2**33},
        "versions": {"torch": "2.13.0", "numpy": HOSTILE, "jax": ESCAPES},
        "source": "0123456789abcdef",
    }


def fill(root: Path, profile: str = "smoke", note: str = HOSTILE) -> Store:
    """A store at ``root`` with all runs of the fake paper at ``profile``."""
    store = Store(root, create=True)
    for spec in specs(profile):
        epochs = np.arange(40)
        losses = pd.DataFrame({"epoch": epochs, "loss": np.exp(-epochs / (8 + spec.seed)) + 0.05 * spec.seed})
        outcome = Outcome("finished", {"best": 74.5 + 0.5 * spec.seed}, {"losses": losses}, note=note)
        store.commit(spec.id, encode(spec, environment(spec.seed % 2), outcome))
    (cluster,) = fig2_runs(profile)["cluster"]
    outcome = Outcome("finished", {"speedup": [1.0, 1.9, 3.4, 5.1]})
    store.commit(cluster.id, encode(cluster, environment(), outcome))
    return store
