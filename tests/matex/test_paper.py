"""The paper's entry: claims that refer to something measured, evidence that decides them, measures that can fail."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from paper_figures.matex_agd import PAPER, algorithms, settings, table1
from paper_figures.matex_agd.experiments import backpropagation, layers, properties
from paper_figures.matex_agd.experiments.sleeping import SleepingNetwork
from paper_figures.matex_agd.link_readings import ASLEEP, asleep
from paper_figures.matex_agd.overlap_cases import ALEXNET, LAYERS, layer_costs, layer_runs
from suite.cost_models.machines import DGX1, network
from suite.cost_models.overlap import AllReduce, NetworkTimes, rates
from suite.papers.artifact import Evidence, Missing
from suite.papers.published import published
from suite.papers.verdicts import verdicts
from suite.runs.archive import Archive
from suite.runs.store import Outcome, Run, encode
from suite.spec import RunSpec

EVIDENCE = "paper_figures/evidence/matex_agd.zip"


@pytest.fixture(scope="module")
def decided(evidence):
    return {v.claim.id: v for v in verdicts(PAPER, evidence)}


@pytest.fixture(scope="module")
def evidence(pytestconfig):
    return Archive(pytestconfig.rootpath / EVIDENCE)


def test_every_artifact_has_claims_and_every_claim_an_artifact():
    assert {a.id for a in PAPER.artifacts} == {c.artifact for c in published("matex_agd")}
    assert (len(PAPER.artifacts), len(published("matex_agd"))) == (11, 84)


def test_claims_that_need_no_machine_are_decided_where_their_runs_are_stored(decided, evidence):
    stored = evidence.ids()
    complete = {
        a.id for a in PAPER.artifacts if all(s.id in stored for specs in a.runs("reduced").values() for s in specs)
    }
    open_claims = [
        name
        for name, v in decided.items()
        if v.claim.needs in ("nothing", "cpu-small") and v.verdict == "not run" and v.claim.artifact in complete
    ]
    assert open_claims == []


def test_nothing_is_red(decided):
    assert [(name, v.verdict) for name, v in decided.items() if v.red] == []


def test_a_proxy_decides_nothing(decided):
    for v in decided.values():
        if v.claim.needs == "imagenet":
            assert v.verdict == "not run", v.claim.id


@pytest.mark.parametrize("profile", ["smoke", "reduced", "paper"])
def test_every_run_has_an_experiment(profile):
    from suite.papers.registry import experiment

    specs = {spec for a in PAPER.artifacts for runs in a.runs(profile).values() for spec in runs}
    assert specs
    for spec in specs:
        assert experiment(spec.experiment).seconds(spec) > 0


def test_printed_table_is_read_from_the_claims():
    table = table1.printed_table()
    assert table["agd1"] == [0.0039, 0.01324, 0.02632, 0.05076, 0.07362]
    assert table1.smallest_set([0.5, 0.25]) == 4
    assert table1.smallest_set([0.00002]) == 50_000


def test_algorithm_1_against_autograd():
    made = backpropagation.weights((4, 5, 3), 0)
    x, y = torch.randn(4).double(), torch.randn(3).double()
    leaves = [(w.requires_grad_(), b.requires_grad_()) for w, b in made]
    backpropagation.cost(leaves, x, y).backward()
    with torch.no_grad():
        found, ready = backpropagation.gradients(made, x, y)
    for (w, b), (gw, gb) in zip(leaves, found, strict=True):
        torch.testing.assert_close(gw, w.grad, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(gb, b.grad, rtol=1e-12, atol=1e-12)
    assert ready == [1, 0]


# What rounding leaves, which differs with the processor: of finite differences, and of float32, where one ReLU that
# rounds to the other side moves the weights by a hundredth of what they move in all. Of the rest less than 1e-12.
ROUNDING = {"gradient check": 1e-9, "drift float32": 1e-3}


@pytest.mark.parametrize("name", ["algorithm_1", "synchronous", "layer_wise", "partition"])
def test_properties_come_out_as_they_did_but_for_rounding(evidence, name):
    stored = evidence.read(algorithms.PROPERTIES.id).results
    seed = () if name == "partition" else (0,)
    for key, value in getattr(properties, name)(*seed).items():
        assert value == pytest.approx(stored[f"{name}/{key}"], rel=1e-5, abs=ROUNDING.get(key, 1e-12)), key


def test_layers_come_out_as_they_did(evidence):
    run = evidence.read(LAYERS.id)
    for name in layers.NETWORKS:
        pd.testing.assert_frame_equal(layers.measure(name), run.curve(name), check_dtype=False)


def test_the_sleeping_network_takes_its_time_and_no_less():
    import time

    module = SleepingNetwork(NetworkTimes(asleep(ASLEEP)))
    began = time.perf_counter()
    module(torch.rand(1)).sum().backward()
    assert time.perf_counter() - began >= 3 * sum(seconds for _, seconds in ASLEEP)
    assert sum(p.numel() for p in module.parameters()) == sum(n + 100 for n, _ in ASLEEP)
    assert all(torch.equal(p.grad, torch.ones_like(p)) for p in module.parameters())


def test_a_faster_link_narrows_the_gap_between_synchronous_and_delayed(evidence):
    """The panels come out of the cost model, not of the claims: a link that costs nothing leaves no order."""
    costs = layer_costs(Evidence(evidence, layer_runs("smoke"), "smoke"), ALEXNET)
    gaps = []
    for beta in (2e10, 1e11, 1e15):
        cost = AllReduce(0.0, beta, 8)
        made = network(costs, 32, DGX1.centre())
        seen = rates(made, cost)
        gaps.append(seen["AGD 3 comm"] - seen["SGD"])
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-4


def test_a_measure_reports_what_the_run_says(evidence):
    """A tampered result must change the verdict."""
    from paper_figures.matex_agd.algorithms import PROPERTIES, measure_synchronous

    class Tampered:
        def read(self, run_id: str) -> Run:
            run = evidence.read(run_id)
            run.results["synchronous/serial difference"] = 0.5
            return run

    groups = {"properties": (RunSpec(PROPERTIES.experiment),)}
    found = dict(measure_synchronous(Evidence(Tampered(), groups, "smoke")))
    assert found["equals-serial"].values == (0.5,)


@pytest.mark.parametrize(("delay", "momentum"), [(0, 0.0), (2, 0.0), (0, 0.9), (1, 0.9), (3, 0.9)])
def test_largest_stable_rate_against_the_roots(delay, momentum):
    """x'' - (1 + mu) x' + mu x + eta x_late = 0 has all roots in the unit circle up to the rate found by running."""
    found = properties.largest_stable_rate(delay, momentum)

    def radius(eta: float) -> float:
        polynomial = np.zeros(max(3, delay + 2))
        polynomial[:3] = 1, -(1 + momentum), momentum
        polynomial[1 + delay] += eta
        return abs(np.roots(polynomial)).max()

    assert radius(found - 1e-4) < 1 < radius(found + 1e-4)


def test_rounding_sets_synchronous_and_serial_training_apart_by_next_to_nothing(tmp_path, monkeypatch):
    """The arms of the doubt about Table 1: the same batches, hence the same losses but for float32.

    On some processors four gradients sum up to the bits of one.
    """
    from paper_figures.matex_agd.experiments.serial_gap import serial_gap
    from suite.experiment import Context
    from suite.training import numerics as execution
    from suite.training.gradients.looped import AutogradGradients

    batches = []
    compute = AutogradGradients.tensors
    monkeypatch.setattr(
        AutogradGradients, "tensors", lambda self, *at: batches.append(len(at[-1][1])) or compute(self, *at)
    )
    spec = RunSpec("matex_agd/serial_gap", {**settings.GAP.settings, "seeds": 1, "updates": 4, "every": 1})
    table = serial_gap(spec, Context(tmp_path, execution.choose(spec, "cpu", 1))).curves["gap"]
    loss = table.pivot_table(index="update", columns="arm", values="loss")
    assert len(loss) == 5
    rounding = (loss["split"] / loss["serial"] - 1).abs()
    assert rounding.max() < 1e-5, "four gradients were computed and summed in float32"
    batch = spec.settings["batch"]
    assert batches == [batch] * 4 + [batch // 4] * 32, "one gradient an update, then four by either kind of workers"
    assert loss["partitioned"][0] == loss["serial"][0], "the same weights to begin with"
    assert (loss["partitioned"][1:] / loss["serial"][1:] - 1).abs().min() > 1e-3, "other batches"


def gap_run(serial, split, partitioned) -> Evidence:
    """Evidence with accuracies at five checkpoints by arm and seed."""
    arms = {"serial": serial, "split": split, "partitioned": partitioned}
    rows = [
        (arm, seed, update, value)
        for arm, seeds in arms.items()
        for seed, values in enumerate(seeds)
        for update, value in enumerate((0.1, *values))
    ]
    table = pd.DataFrame(rows, columns=["arm", "seed", "update", "accuracy"])

    class Fabricated:
        def read(self, run_id: str) -> Run:
            return Run(run_id, encode(settings.GAP, {}, Outcome("finished", {}, {"gap": table})))

    return Evidence(Fabricated(), {"gap": (settings.GAP,)}, "smoke")


def test_the_gap_between_the_rows_is_told_from_its_causes():
    low, high = [0.1, 0.2, 0.3, 0.4, 0.5], [0.2, 0.4, 0.6, 0.8, 1.0]
    found = dict(table1.measure_gap(gap_run([low, low, high], [low, low, high], [high, low, high])))
    assert found["printed-gap"].values[0] == pytest.approx(-0.2233, abs=1e-4)
    assert found["gap-of-rounding"].values[0] == 0
    assert found["gap-of-partition"].values[0] == pytest.approx(np.log(2) / 3)
    assert found["gap-of-seeds"].high[0] == pytest.approx(np.log(2))
    assert found["seeds-as-far-apart"].values[0] == pytest.approx(2 / 3)
    in_another_order = dict(table1.measure_gap(gap_run([low, high, low], [low, high, low], [low, high, low])))
    assert in_another_order["gap-of-seeds"].spans == (pytest.approx((np.log(2), 0, np.log(2))),)


def test_what_is_said_of_the_gap_is_what_the_evidence_shows(evidence):
    """The reason given with ``alg-sgd/equals-serial`` and with the row's last value."""
    try:
        seen = Evidence(evidence, {"gap": (settings.GAP,)}, "smoke")
        found = dict(table1.measure_gap(seen))
    except Missing:
        pytest.skip(f"run {settings.GAP.id} is not in {EVIDENCE} yet")
    assert found["gap-of-rounding"].values[0] < 0.01
    assert found["gap-of-partition"].low[0] < 0 < found["gap-of-partition"].high[0]
    assert found["gap-of-seeds"].high[0] > abs(found["printed-gap"].values[0])
    assert found["seeds-as-far-apart"].values[0] > 0.1
