"""ISGD's statements that need no training hold on runs computed anew."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from scipy.optimize import minimize_scalar

from paper_figures.isgd import PAPER, alg1, alg2, batch_size_model, readings
from paper_figures.isgd.experiments.parallel import Tree, broadcast
from paper_figures.isgd.reduction_tree import tree
from paper_figures.isgd.settings import SYSTEMS
from suite.claims.judge import BOARD, TEST
from suite.papers.published import entries
from suite.papers.verdicts import verdicts
from suite.runner.execute import RunnerConfig, execute
from suite.runs.store import Store

ROOT = Path(__file__).parents[2]
# experiments that are decided in seconds, and the artifacts that rest on them
QUICK = {
    f"isgd/{name}"
    for name in (
        *("trace", "beside-sgd", "parallel", "parts", "subproblem"),
        *("operations", "sampling", "rates", "partition"),
    )
}


@pytest.fixture(scope="module")
def judged(made_once):
    """Verdicts of all claims once the quick experiments are stored, and the store."""
    groups = [group for artifact in PAPER.artifacts for group in artifact.runs("smoke").values()]
    specs = {spec.id: spec for group in groups for spec in group if spec.experiment in QUICK}
    assert {spec.experiment for spec in specs.values()} == QUICK

    def fill(root):
        for spec in specs.values():
            report = execute(spec, PAPER.experiments.__getitem__, RunnerConfig(root / "store"))
            assert report.state == "stored", report

    store = Store(made_once("quick-isgd", fill) / "store")
    found = verdicts(PAPER, store, profile="smoke", claims=entries("isgd"))
    return {v.claim.id.removeprefix("isgd/"): v for v in found}, store


@pytest.mark.evidence
def test_nothing_is_red(judged):
    found, _ = judged
    assert {name: v.why for name, v in found.items() if v.red and v.claim.kind in BOARD} == {}


@pytest.mark.evidence
def test_every_statement_holds_on_runs_computed_anew(judged):
    found, store = judged
    statements = {name: v for name, v in found.items() if v.claim.kind == TEST and v.verdict != "not run"}
    assert {name: v.verdict for name, v in statements.items() if v.verdict != "reproduced"} == {}
    small = {name: v.runs for name, v in statements.items() if v.claim.needs == "cpu-small"}
    assert len(small) > 10
    assert all(runs and set(runs) <= store.ids() for runs in small.values())


@pytest.mark.evidence
def test_runs_show_what_they_are_meant_to_show(judged):
    """The equalities above would hold for want of events: there are accelerations wherever one is claimed on."""
    _, store = judged
    runs = PAPER.artifact("isgd/alg1").runs("smoke")
    (parallel,), (tight,) = (runs[name] for name in ("parallel", "tight limit"))
    assert min(store.read(parallel.id).results["chases"]) > 0
    beside = store.read(tight.id).curve("updates")
    assert beside["chasing"].any()
    assert beside["difference"].max() > 1e-4
    assert all(store.read(spec.id).curve("updates")["chasing"].any() for spec in runs["margin 1"])


@pytest.mark.parametrize("psi", [1e-9, 5.5e-4, 0.1, 40.0])
@pytest.mark.parametrize("system", SYSTEMS)
def test_best_batch_is_the_minimum_of_equation_22(psi, system):
    best = batch_size_model.best_batch(psi, *system)
    found = minimize_scalar(
        lambda log: batch_size_model.seconds_to(psi, math.exp(log), *system),
        bounds=(math.log(best) - 3, math.log(best) + 3),
        method="bounded",
        options={"xatol": 1e-12},
    )
    assert math.exp(found.x) == pytest.approx(best, rel=1e-6)


def test_ratio_of_optima_stays_between_its_limits_and_tends_to_them():
    first, second = SYSTEMS
    ratios = [
        batch_size_model.best_batch(10.0**e, *first) / batch_size_model.best_batch(10.0**e, *second)
        for e in range(-16, 13)
    ]
    assert all(math.sqrt(2) < r < 2 ** (2 / 3) for r in ratios)
    assert ratios[0] == pytest.approx(math.sqrt(2), rel=1e-6)
    assert ratios[-1] == pytest.approx(2 ** (2 / 3), rel=1e-4)


@pytest.mark.parametrize("devices", range(1, 18))
def test_tree_sums_everything_once_and_reaches_everyone(devices):
    rows = torch.eye(devices, dtype=torch.float64)
    assert torch.equal(Tree(devices).sum(rows), torch.ones(devices, dtype=torch.float64))
    assert len(tree(devices)) == math.ceil(math.log2(devices))
    replicas = [torch.zeros(1)] * devices
    broadcast(replicas, torch.tensor([7.0]))
    assert [float(r) for r in replicas] == [7.0] * devices


def test_printed_queue_runs_dry():
    """n = 3: filled in iterations 0 to 2, emptied in 3 to 5."""
    assert alg1.printed_queue([1.0] * 8, 3) == [1, 2, 3, 2, 1, 0, 0, 0]


def altered(run, rows, **columns):
    """The run with some entries of its curve replaced."""
    table = run.curve("updates").copy()
    for name, value in columns.items():
        table.loc[rows, name] = value
    return SimpleNamespace(id=run.id, results=run.results, spec=run.spec, curve=lambda name: table)


def quantities(measure, run):
    evidence = SimpleNamespace(runs=lambda group: (run,), run=lambda group: run)
    return {name: value.values for name, value in measure(evidence)}


@pytest.mark.evidence
def test_measures_notice_a_broken_algorithm(judged):
    """Each alteration of one stored update changes the quantity that is there to notice it."""
    _, store = judged
    artifact = PAPER.artifact("isgd/alg1")
    run = store.read(artifact.runs("smoke")["margin 1"][0].id)
    table = run.curve("updates")
    n = run.results["batches"]
    plain = table.index[~table["chasing"] & (table["iteration"] > 2 * n)]
    chased = table.index[table["chasing"]]
    assert quantities(alg1.measure_triggers, run)["triggers-only-above-limit"] == (0.0,)

    spike = altered(run, plain[5], loss=50.0)
    assert quantities(alg1.measure_triggers, spike)["triggers-only-above-limit"][0] > 0
    assert quantities(alg1.measure_running_mean, spike)["mean-sliding"][0] > 0.1
    lost = altered(run, plain[5], sgd_step=False)
    assert quantities(alg1.measure_triggers, lost)["sgd-step-always"][0] < 1
    moved = altered(run, chased[0], anchor_moved=1e-9)
    assert quantities(alg2.measure_chases, moved)["constants"] == (0.0, 1e-9, 0.0)
    first = altered(run, table.index[n - 3 : n], iteration=n - 4, chasing=True)
    assert quantities(alg1.measure_triggers, first)["no-acceleration-first-epoch"][0] > 0
    limits = altered(run, plain[7], limit=1.0)
    assert pd.notna(limits.curve("updates")["limit"]).all()
    assert abs(quantities(readings.limit_statistics, limits)["population-sd"][0]) > 1e-3
