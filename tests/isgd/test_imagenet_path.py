"""ISGD on ImageNet: the whole path, on a generated folder of ImageNet's layout with three classes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paper_figures.isgd import settings
from paper_figures.isgd.experiments import EXPERIMENTS
from suite.data.imagenet import ImageBatch, ImageNetStream
from suite.experiment import Context, OutOfTime
from suite.runner.execute import RunnerConfig, execute
from suite.runs.run import Outcome
from suite.runs.store import Store
from suite.spec import RunSpec, thaw
from suite.training import numerics as execution
from suite.training.streaming import train_top5

pytestmark = pytest.mark.usefixtures("small_networks")


@pytest.fixture
def root(small_imagenet: Path) -> Path:
    return small_imagenet


def spec(updates: int, stop: int = 5, margin: float = 0.0) -> RunSpec:
    """The paper's run, shrunk: a small network, side 32, crop 28."""
    full = thaw(settings.imagenet(8, 1).settings) | {"updates": updates}
    full["algorithm"] |= {"stop": stop, "margin": margin, "zeta": 0.05}
    small = {"model": {"name": "tiny_bn", "channels": 3, "classes": 3, "input_size": 28}, "side": 32, "crop": 28}
    return RunSpec("isgd/imagenet", {**full, **small, "rate": 1e-4, "evaluate": {"every": 4, "examples": 8}})


def run(chosen: RunSpec, root: Path, store: Path, **more: object) -> dict[str, object]:
    around = RunnerConfig(store, data=root, **more)
    report = execute(chosen, EXPERIMENTS.__getitem__, around)
    assert report.state == "stored", report
    return Store(store).read(chosen.id).results


class Watched(ImageNetStream):
    """A stream that decodes in this process and notes at which batches it was opened."""

    opened: list[int]

    def __init__(self, *given: object, **options: object):
        super().__init__(*given, **{**options, "processes": 0})

    def batches(self, first: int = 0) -> Iterator[ImageBatch]:
        self.opened.append(first)
        return super().batches(first)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The batches at which streams are opened from here on."""
    found: list[int] = []
    monkeypatch.setattr(Watched, "opened", found, raising=False)
    monkeypatch.setattr("suite.training.streaming.ImageNetStream", Watched)
    return found


@pytest.mark.usefixtures("opened")
def test_it_trains_tests_and_chases_batches_of_the_stream(root: Path, tmp_path: Path) -> None:
    chosen = spec(16)
    results = run(chosen, root, tmp_path / "store")
    stored = Store(tmp_path / "store").read(chosen.id)
    updates = stored.curve("updates")
    assert results["updates"] == 16
    assert updates["chasing"].sum() > 0
    assert results["iterations"] == 16 - updates["chasing"].iloc[1:].sum() - _under_way(updates)
    tested = stored.curve("evaluations")
    assert tested["update"].tolist() == [0, 4, 8, 12, 16]
    assert (tested["top5_error"] == 0).all()  # three classes


def _under_way(updates: object) -> int:
    """1 when the last update began a chase whose first step is still to come."""
    last = updates.iloc[-1]
    return int(last["loss"] > last["limit"] and last["iteration"] > 3)


def trained(chosen: RunSpec, folder: Path, root: Path, deadline: float | None = None) -> Outcome:
    folder.mkdir(exist_ok=True)
    return train_top5(chosen, Context(folder, execution.choose(chosen, "cpu", 1), root, deadline=deadline))


def test_a_batch_under_acceleration_is_not_decoded_again(root: Path, tmp_path: Path, opened: list[int]) -> None:
    outcome = trained(spec(16), tmp_path / "run", root)
    assert outcome.curves["updates"]["chasing"].sum() > 0
    assert set(opened) == {0}, "a stream was opened in the middle of an epoch"


@pytest.mark.usefixtures("opened")
def test_a_run_that_is_cut_off_after_every_update_ends_in_the_same_bits(root: Path, tmp_path: Path) -> None:
    chosen = spec(12)
    whole, parts, cuts = trained(chosen, tmp_path / "whole", root), None, 0
    while parts is None:
        try:
            parts = trained(chosen, tmp_path / "parts", root, deadline=time.monotonic() - 1)
        except OutOfTime:
            cuts += 1
    assert cuts >= 11
    assert whole.curves["updates"]["chasing"].sum() > 0
    assert parts.curves["updates"].equals(whole.curves["updates"])
    assert parts.results["weights_digest"] == whole.results["weights_digest"]
