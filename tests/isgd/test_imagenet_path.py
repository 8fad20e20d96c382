"""ISGD on ImageNet: the whole path, on a generated folder of ImageNet's layout with three classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from paper_figures.isgd import imagenet
from suite.runner.execute import Surroundings, execute
from suite.runs.store import Store
from suite.spec import RunSpec, thaw


@pytest.fixture
def root(small_imagenet: Path) -> Path:
    return small_imagenet


def spec(updates: int, stop: int = 5, margin: float = 0.0) -> RunSpec:
    """The paper's run, shrunk: a small network, side 32, crop 28."""
    full = thaw(imagenet.run("isgd", 8, updates).settings)
    full["algorithm"] |= {"stop": stop, "margin": margin, "thresholds": [], "factors": [1.0], "zeta": 0.05}
    small = {"model": {"name": "tiny_bn", "channels": 3, "classes": 3, "input_size": 28}, "side": 32, "crop": 28}
    return RunSpec("isgd/imagenet", {**full, **small, "rate": 1e-4, "evaluate": {"every": 4, "examples": 8}})


def run(chosen: RunSpec, root: Path, store: Path, **more: object) -> dict[str, object]:
    around = Surroundings(store, data=root, **more)  # type: ignore[arg-type]
    report = execute(chosen, imagenet.EXPERIMENTS.__getitem__, around)
    assert report.state == "stored", report
    return Store(store).read(chosen.id).results


def test_it_trains_tests_and_chases_batches_of_the_stream(root: Path, tmp_path: Path) -> None:
    chosen = spec(16)
    results = run(chosen, root, tmp_path / "store")
    stored = Store(tmp_path / "store").read(chosen.id)
    updates = stored.curve("updates")
    assert results["updates"] == 16
    assert updates["chasing"].sum() > 0
    assert results["iterations"] == 16 - updates["chasing"].iloc[1:].sum() - _under_way(updates)
    tested = stored.curve("evaluations")
    assert tested["update"].tolist() == [4, 8, 12, 16]
    assert (tested["top5_error"] == 0).all()  # three classes


def _under_way(updates: object) -> int:
    """1 when the last update began a chase whose first step is still to come."""
    last = updates.iloc[-1]  # type: ignore[attr-defined]
    return int(last["loss"] > last["limit"] and last["iteration"] > 3)


def test_without_acceleration_every_update_is_an_iteration(root: Path, tmp_path: Path) -> None:
    results = run(spec(9, stop=0), root, tmp_path / "store")
    assert results["iterations"] == 9


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    around = Surroundings(tmp_path / "store", data=tmp_path / "nowhere")
    report = execute(spec(4), imagenet.EXPERIMENTS.__getitem__, around)
    assert report.state == "failed"
    assert "imagenet" in report.why
