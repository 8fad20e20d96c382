"""The sweep experiment on digits: the crossing it reports, resuming, censoring, learners, refusals."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
from rehearsal import Rehearsal

from paper_figures.inverse_law.experiments import sweep_seconds
from paper_figures.inverse_law.experiments.search import SearchRun
from paper_figures.inverse_law.experiments.sweep import Trainer, sweep
from paper_figures.inverse_law.settings import DIGITS
from suite.experiment import Context, OutOfTime
from suite.spec import RunSpec
from suite.training import checkpoint
from suite.training.gradients.backend import AutogradGradients, ForeachStep
from suite.training.gradients.cuda_graph import Captured
from suite.training.gradients.native import NativeStep
from suite.training.numerics import choose

EXECUTION = choose(RunSpec("train", {"precision": "float64"}), "cpu", 1)


def spec_of(**changes):
    settings = {
        **DIGITS,
        "batch": 16,
        "growth": 0.05,
        "every": 1,
        "limit": 200,
        "monitors": {"training": [1.5, 0.8], "validation": [1.0]},
        **changes,
    }
    return RunSpec("inverse_law/sweep", settings, 1)


def context_in(folder: Path, **changes):
    return Context(folder, {**EXECUTION, **changes})


@pytest.mark.parametrize("statistics", [False, True], ids=["", "batch norm"])
def test_the_sweep_reports_the_definition(tmp_path, small_networks, statistics):
    """Every loss, recomputed update by update with the plain formula, against what the search found."""
    changes = {"model": {"name": "tiny_bn", "channels": 1, "input_size": 28}, "growth": 1.0} if statistics else {}
    spec = spec_of(sample=60, **changes)
    found = sweep(spec, context_in(tmp_path))
    trainer = Trainer(spec, context_in(tmp_path))
    assert isinstance(trainer.backend, AutogradGradients)
    read = {name: trainer.reader(name) for name in ("training", "validation")}
    state, losses = trainer.start(), {"training": [], "validation": []}
    for update in range(found.results["updates"]):
        state = trainer.advance(state, update, update + 1)
        for name, values in losses.items():
            values.append(read[name](state, 1e9).loss)
    for name, thresholds in spec.settings["monitors"].items():
        first = [next(k for k, loss in enumerate(losses[name], 1) if loss < t) for t in thresholds]
        assert found.results[f"crossed_{name}"] == first
    assert found.status == "finished"


def test_the_two_samples_are_disjoint_and_only_one_is_trained_on(tmp_path):
    trainer = Trainer(spec_of(), context_in(tmp_path))
    rows = {name: {row.numpy().tobytes() for row in trainer.samples[name][0]} for name in trainer.samples}
    trained = {row.numpy().tobytes() for row in trainer.problem.fetch(torch.arange(len(trainer.problem.targets)))[0]}
    assert rows["training"] <= trained
    assert len(rows["validation"] & trained) <= 2, "digits holds a few identical pictures"
    assert len(trainer.samples["training"][1]) == int(0.2 * 1437) == len(trainer.samples["validation"][1])


def test_seeds_may_read_samples_of_their_own(tmp_path):
    """Other examples for every seed, all from the sample that the settings share."""
    same, own, other = (
        Trainer(RunSpec("inverse_law/sweep", {**spec_of(sample=40).settings, **more}, number), context_in(tmp_path))
        for number, more in ((1, {}), (1, {"sample_of": "each seed"}), (2, {"sample_of": "each seed"}))
    )
    whole = Trainer(spec_of(), context_in(tmp_path))
    for name in ("training", "validation"):
        rows = [{row.numpy().tobytes() for row in t.samples[name][0]} for t in (same, own, other)]
        assert [len(t.samples[name][1]) for t in (same, own, other)] == [40] * 3
        assert rows[0] != rows[1] != rows[2]
        assert rows[1] | rows[2] <= {row.numpy().tobytes() for row in whole.samples[name][0]}


@pytest.mark.parametrize("path", ["looped", pytest.param("native", marks=pytest.mark.compiler)])
def test_a_resumed_search_ends_in_the_same_crossings(tmp_path, path):
    """And in the same tests, though the native ones look at the examples in an order that their last losses set."""
    spec = spec_of(sample=60)
    (tmp_path / "whole").mkdir()
    whole = sweep(spec, context_in(tmp_path / "whole", path=path))
    broken = tmp_path / "broken"
    broken.mkdir()
    late = Context(broken, {**EXECUTION, "path": path}, deadline=time.monotonic() - 1)
    for _ in range(500):
        try:
            result = sweep(spec, late)
            break
        except OutOfTime:
            continue
    assert (broken / checkpoint.NAME).exists()
    assert result.results["crossed_training"] == whole.results["crossed_training"]
    assert result.results["crossed_validation"] == whole.results["crossed_validation"]
    assert result.curves["tests"].equals(whole.curves["tests"])


@pytest.mark.compiler
def test_native_tests_decide_the_same_and_look_at_fewer_examples(tmp_path):
    spec = spec_of(sample=120)
    found = {}
    for path in ("looped", "native"):
        (tmp_path / path).mkdir()
        found[path] = sweep(spec, context_in(tmp_path / path, path=path))
    looped, native = found["looped"], found["native"]
    for name in ("updates", "crossed_training", "crossed_validation"):
        assert native.results[name] == looped.results[name]
    slow, fast = looped.curves["tests"], native.curves["tests"]
    whole = ~(slow["cut"] | fast["cut"])
    assert list(fast["update"]) == list(slow["update"])
    assert fast["loss"][whole].to_numpy() == pytest.approx(slow["loss"][whole].to_numpy(), rel=1e-9)
    assert fast["examples"].sum() < slow["examples"].sum()


@pytest.mark.parametrize("path", ["looped", pytest.param("native", marks=pytest.mark.compiler)])
def test_an_update_in_place_is_that_of_gradient_and_step_one_after_the_other(tmp_path, path):
    """To the bit by machine code, within rounding along autograd's tensors; what it began from is left alone."""
    inplace, general = (Trainer(spec_of(), context_in(tmp_path, path=path, precision="float32")) for _ in range(2))
    assert isinstance(inplace.step, NativeStep if path == "native" else ForeachStep)
    general.step = None
    start = inplace.start()
    before = start.state.x.clone()
    found, wanted = inplace.advance(start, 0, 20), general.advance(general.start(), 0, 20)
    assert torch.equal(start.state.x, before)
    assert not torch.equal(found.state.x, before)
    closeness = {"rtol": 0, "atol": 0} if path == "native" else {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(found, wanted, **closeness)


def test_a_search_is_planned_by_the_lowest_loss_that_it_looks_for():
    """Each halving takes 2.5 times the updates; how many thresholds lie above the lowest changes nothing."""
    common = {"monitors": {"training": [0.576, 0.288]}, "limit": 10**6, "batch": 10**5}
    first, lower, alone = (
        sweep_seconds(spec_of(**{**common, "monitors": {"training": thresholds}}))
        for thresholds in ([0.576, 0.288], [0.576, 0.288, 0.144], [0.144])
    )
    assert lower == alone
    assert lower / first == pytest.approx(2.5, rel=0.01)


def test_learners_share_a_batch_without_changing_the_updates(tmp_path):
    counts = [
        SearchRun(spec, context_in(tmp_path), Trainer(spec, context_in(tmp_path))).run().results["crossed_training"]
        for spec in (spec_of(workers=w, monitors={"training": [1.5]}) for w in (1, 4))
    ]
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"share": 0.6}, "share=0.6"),
        ({"workers": 3}, "does not divide"),
        ({"data": {**DIGITS["data"], "labels": "letters"}}, "labels must be one of"),
    ],
)
def test_bad_settings_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        Trainer(spec_of(**changes), context_in(tmp_path))


def test_a_captured_search_finds_what_a_looped_one_does(tmp_path, monkeypatch):
    """Its updates, in one call each, and its tests; the search goes back to states that it holds."""
    spec = spec_of(batch=64, limit=40, sample=60)
    (tmp_path / "looped").mkdir()
    expected = sweep(spec, context_in(tmp_path / "looped"))
    recorder = Rehearsal()
    captured = lambda execution, problem: Captured(problem, recorder)
    monkeypatch.setattr("paper_figures.inverse_law.experiments.sweep.backend_of", captured)
    found = sweep(spec, context_in(tmp_path))
    assert recorder.replays > 0
    assert found.results["crossed_training"] == expected.results["crossed_training"]
    assert found.results["crossed_validation"] == expected.results["crossed_validation"]
