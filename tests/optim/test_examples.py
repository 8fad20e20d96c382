"""The examples at toy size, and the page made of their differences.

That ``torchrun`` starts such a program is held by tests/matex/test_torchrun.py.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import optim_bodies as bodies
import pytest

from suite.communication.launch import spawn

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


def start(folder: Path, file: str, *arguments: str, processes: int = 1) -> str:
    """What an example printed."""
    launch = [sys.executable] if processes == 1 else [*TORCHRUN, str(processes)]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*launch, str(ROOT / "examples" / file), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def accuracies(said: str) -> list[float]:
    return [float(found) for found in re.findall(r"accuracy ([\d.]+)%", said)]


@pytest.fixture
def forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What an example prints in each process, forked from one that has imported torch."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    def run(file: str, *arguments: str, processes: int = 1) -> list[str]:
        return spawn(bodies.example, processes, str(ROOT / "examples" / file), list(arguments), str(tmp_path))

    return run


@pytest.mark.processes
@pytest.mark.parametrize(
    ("file", "size", "processes"),
    [
        ("mnist_plain.py", "5", 1),
        ("mnist_sma.py", "8", 2),
        ("isgd_closure.py", "5", 1),
        ("torchrun_delayed.py", "5", 2),
        ("softsync_cluster.py", "150", 3),
    ],
)
def test_an_example_learns(forked: Callable[..., list[str]], file: str, size: str, processes: int):
    found = accuracies("".join(forked(file, "digits", size, processes=processes)))
    assert len(found) == processes
    assert min(found) > 80


@pytest.mark.processes
def test_the_batch_size_of_a_torchvision_network(forked: Callable[..., list[str]], tmp_path: Path):
    (said,) = forked("choose_batch.py", "digits", "400")
    assert re.search(r"batch size (8|16|64); ", said)
    assert (tmp_path / "choice.png").stat().st_size > 1000


@pytest.mark.slow  # three starts of two processes; tests/optim/test_optim_resumption.py kills a small training
@pytest.mark.processes
@pytest.mark.parametrize("method", ["SMA", "LocalSGD"])
def test_a_transformer_that_is_killed_within_an_epoch_ends_in_the_same_bits(tmp_path: Path, method: str):
    """AdamW over two processes, of which one ends at update 47; the epoch has 59 batches."""
    straight = start(tmp_path, "transformer.py", method, "straight", "70", processes=2)
    with pytest.raises(AssertionError, match="exitcode"):
        start(tmp_path, "transformer.py", method, "killed", "70", "47", processes=2)
    assert [path.name for path in (tmp_path / "killed").iterdir()] == ["update-40"]
    again = start(tmp_path, "transformer.py", method, "killed", "70", processes=2)
    found = [set(re.findall(r"loss ([\d.]+), weights ([0-9a-f]{12})", said)) for said in (straight, again)]
    assert len(found[0]) == 1
    assert found[0] == found[1]
    assert float(found[0].pop()[0]) < 3.5


def test_the_page_is_made_of_the_files_and_the_changes_are_few():
    spec = importlib.util.spec_from_file_location("own_training", ROOT / "docs" / "make_own_training.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for change in module.CHANGES:
        count, _ = module.difference(change.file)
        assert count <= change.most, change
    assert module.PAGE.read_text() == module.page()
