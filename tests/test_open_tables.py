"""What settings name by a word can come from outside: by an assignment, or by an entry point."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from reference_impls.inverse_law import SGD
from suite.communication.collectives import EXCHANGES, CountingCollective, Local
from suite.data.catalogue import DATASETS, DataError, DatasetInfo
from suite.data.images import content_digest, load_images
from suite.data.order import FixedCycle
from suite.experiment import Context
from suite.models.network import own_network
from suite.models.registry import CLASSIFIERS
from suite.runner.cost import TRAIN
from suite.runs.run import Outcome
from suite.spec import RunSpec
from suite.tables import Table, UnknownName
from suite.training.build import ALGORITHMS, ORDERS, SOLVERS
from suite.training.loop import train
from suite.training.numerics import choose
from suite.training.optimizers import TorchSGD

SETTINGS = {
    "data": {"name": "own"},
    "model": {"name": "own", "width": 4},
    "algorithm": {"name": "own"},
    "descent": {"rule": "own", "momentum": 0.5},
    "order": {"kind": "own", "first": 3},
    "exchange": {"name": "own"},
    "rate": 0.1,
    "batch": 8,
    "workers": 2,
    "updates": 40,
    "evaluate": {"every": 20},
}


class OwnSolver(TorchSGD):
    """A solver of one's own."""


class OwnAlgorithm(SGD):
    """An algorithm of one's own."""


class Halved(Local):
    """Sums of numbers rounded to half precision, of which half as many bytes are sent."""

    def start(self, rows: Tensor, each: int | None = None):
        object.__setattr__(self, "sent", self.sent + 2 * rows.shape[-1])
        return super().start(rows.half().float(), each)

    sent = 0


def halves(split: str) -> tuple[Tensor, Tensor]:
    """Pictures that are bright in their upper or in their lower half."""
    targets = torch.arange(64 if split == "train" else 32) % 2
    pixels = torch.zeros(len(targets), 1, 8, 8, dtype=torch.uint8)
    pixels[targets == 0, :, :4], pixels[targets == 1, :, 4:] = 200, 200
    return pixels, targets


class Centred(nn.Flatten):
    """With a tensor that is neither a parameter nor a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.middle = torch.full((64,), 0.4)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) - self.middle


def network(width: int = 8) -> nn.Module:
    return nn.Sequential(Centred(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 2))


def order(targets: Tensor, batch: int, workers: int, seed: int, first: int) -> FixedCycle:
    return FixedCycle(len(targets), batch, first)


@pytest.fixture(autouse=True)
def outside() -> Iterator[None]:
    """Each table with one entry more, as a package of one's own adds it."""
    sizes = {"train": 64, "test": 32}
    data = DatasetInfo("own", "Halves", "images", sizes, embedded=True, shape=(1, 8, 8), classes=2, load=halves)
    added = {
        SOLVERS: OwnSolver,
        ORDERS: order,
        ALGORITHMS: OwnAlgorithm,
        CLASSIFIERS: own_network(network, (1, 8, 8), 2),
        DATASETS: data,
        EXCHANGES: Halved,
    }
    for table, value in added.items():
        table["own"] = value
    yield
    for table in added:
        del table["own"]


def run(folder: Path, seed: int = 0, **changes: object) -> Outcome:
    folder.mkdir(exist_ok=True)
    spec = RunSpec("train", SETTINGS | changes, seed)
    return train(spec, Context(folder, choose(spec, "cpu", 1)))


def test_a_run_of_ones_own_parts_alone_learns_and_tells_what_it_sent(tmp_path: Path):
    ended = run(tmp_path / "own")
    d = 64 * 4 + 4 + 4 * 2 + 2
    assert ended.results["test_error"] == 0
    assert ended.results["parameters"] == d
    assert ended.curves["evaluations"]["sent"].tolist() == [0, 20 * 2 * d, 40 * 2 * d]
    exact = run(tmp_path / "exact", exchange={"name": "sums"})
    assert exact.results["sent"] == 40 * 4 * d
    assert exact.results["weights_digest"] != ended.results["weights_digest"]
    again = run(tmp_path / "again")
    assert again.results["weights_digest"] == ended.results["weights_digest"]
    assert run(tmp_path / "other", seed=1).results["weights_digest"] != ended.results["weights_digest"]


def test_what_a_test_sums_is_not_sent_and_a_lone_worker_sends_nothing():
    counted, alone = CountingCollective(Local(3)), CountingCollective(Local(1))
    counted.sum(torch.ones(3, 5))
    alone.sum(torch.ones(1, 5))
    assert (counted.sent, alone.sent) == (20, 0)


def test_a_plan_can_cost_a_network_that_stands_in_no_table():
    spec = RunSpec("train", SETTINGS)
    assert 0 < TRAIN.seconds(spec) < 10
    assert TRAIN.memory(spec) > 300_000_000


def test_other_data_are_another_digest_and_are_not_read_for_a_run_of_the_former():
    digest = content_digest("own")
    assert load_images("own", "test", digest=digest).inputs.shape == (32, 1, 8, 8)
    with pytest.raises(DataError, match=f"its content is {digest}, and the run is of 0123"):
        load_images("own", "test", digest="0123")


def test_a_name_is_looked_up_among_entry_points(monkeypatch: pytest.MonkeyPatch):
    entry = metadata.EntryPoint("lion", "test_open_tables:OwnSolver", "sgd_suite.solvers")
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry] if group == entry.group else [])
    table = Table("solver", {"torch": TorchSGD})
    assert list(table) == ["torch", "lion"]
    assert table["lion"].__name__ == "OwnSolver"
    with pytest.raises(UnknownName, match="no solver is called 'adamm'; there are torch, lion"):
        table["adamm"]
