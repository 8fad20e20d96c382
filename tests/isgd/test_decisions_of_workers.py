"""Data-parallel ISGD on a network: the same decisions as one worker until rounding turns one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from paper_figures.isgd import settings
from suite.runner.cost import TRAIN
from suite.runner.execute import RunnerConfig, execute
from suite.runs.store import Store


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


@pytest.mark.parametrize("workers", [2, 4])
def test_decisions_agree_until_rounding_turns_one(
    workers: int, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    alone, together = updates(1, tmp_path / "alone"), updates(workers, tmp_path / "together")
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
