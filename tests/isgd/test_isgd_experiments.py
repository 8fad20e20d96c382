"""ISGD's experiments on several workers: decisions until rounding turns one, sums along a tree, times of updates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from paper_figures.isgd import settings
from paper_figures.isgd.experiments.times import TreeOfProcesses
from suite.communication.group import Group
from suite.communication.launch import spawn
from suite.papers.catalogue import paper
from suite.runner.cost import TRAIN
from suite.runner.execute import RunnerConfig, execute
from suite.runs.store import Store
from suite.spec import RunSpec


def updates(workers: int, store: Path) -> dict[str, np.ndarray]:
    """Curves of 200 gradient evaluations on joint batches of 32 digits, cut over the workers."""
    spec = settings.train(
        {**settings.DIGITS, "batch": 32 // workers},
        0,
        algorithm=settings.isgd(0.01, margin=1.0),
        updates=200,
        every=200,
        workers=workers,
        order={"kind": "fixed-cycle", "share": "split"},
    )
    report = execute(spec, lambda name: TRAIN, RunnerConfig(store))
    assert report.state == "stored", report
    table = Store(store).read(spec.id).curve("updates").sort_values("update")
    return {name: table[name].to_numpy() for name in table}


def test_decisions_agree_until_rounding_turns_one(tmp_path: Path, record_property: pytest.RecordProperty) -> None:
    alone, together = updates(1, tmp_path / "alone"), updates(4, tmp_path / "together")
    assert alone["chasing"].sum() > 5, "nothing is decided in this run"
    differing = (alone["chasing"] != together["chasing"]).nonzero()[0]
    first = int(differing[0]) if len(differing) else len(alone["chasing"])
    record_property("first update at which the decisions differ", first if len(differing) else "none")
    np.testing.assert_allclose(together["loss"][:first], alone["loss"][:first], rtol=2e-3, atol=1e-5)
    assert (alone["iteration"][:first] == together["iteration"][:first]).all()
    if len(differing):
        # the loss that turned the decision lies as close to the limit as the two runs lie to one another
        before = first - 1
        gap = abs(alone["loss"][before] - alone["limit"][before])
        assert gap <= 4 * abs(alone["loss"][before] - together["loss"][before]) + 1e-5


def along_a_tree(group: Group) -> tuple[list[float], list[float]]:
    """What a worker holds after the sum of 2 to the power of each rank, and what it was sent."""
    tree, held, sent = TreeOfProcesses(group), torch.full((3,), 2.0**group.rank), torch.full((3,), float(group.rank))
    tree.reduce(held)
    tree.broadcast(sent.add_(7.0) if group.rank == 0 else sent)
    return held.unique().tolist(), sent.unique().tolist()


@pytest.mark.processes
def test_sums_go_up_the_tree_and_weights_down() -> None:
    told = spawn(along_a_tree, 4, timeout=30)
    assert [values for values, _ in told] == [[15.0], [2.0], [12.0], [8.0]]
    assert [values for _, values in told] == [[7.0]] * 4


@pytest.mark.processes
def test_processes_time_an_update_and_the_sum_within_it(tmp_path: Path) -> None:
    store = Store(tmp_path, create=True)
    asked = {"model": "digits_lenet", "processes": 2, "batches": (4, 16, 64), "repeats": 2}
    spec = RunSpec("isgd/update-times", asked)
    ended = execute(spec, paper("isgd").experiments.__getitem__, RunnerConfig(store=tmp_path))
    assert ended.state == "stored", ended.why
    table = store.read(spec.id).curve("updates")
    assert sorted(zip(table["batch"], table["repeat"], strict=True)) == [(b, r) for b in (4, 16, 64) for r in (0, 1)]
    assert (table["communicated"] > 0).all()
    assert (table["communicated"] < table["seconds"]).all()
