"""A training with checkpoints, started by torchrun as a user starts it, on one node and on two."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from suite.communication import link as netlab

ROOT = Path(__file__).parents[2]
SCRIPT = """
    import sys
    from pathlib import Path
    import torch
    import torch.distributed as dist
    from torch.nn import Linear, ReLU, Sequential, functional
    from torch.utils.data import DataLoader, TensorDataset

    from suite.optim import DelayedSGD, device, share

    draw = torch.Generator().manual_seed(0)
    x = torch.randn(400, 8, generator=draw)
    dataset = TensorDataset(x, (x.sum(1) > 0).long())

    module = Sequential(Linear(8, 16), ReLU(), Linear(16, 2)).to(device())
    opt = DelayedSGD(module, lr=0.05, momentum=0.9, delay=int(sys.argv[1]))
    loader = DataLoader(share(dataset), batch_size=20, shuffle=True, drop_last=True)
    done = opt.resume(Path(sys.argv[2], "checkpoints"))
    for epoch in range(done.get("epochs", 0), 6):
        for inputs, targets in loader:
            opt.zero_grad()
            functional.cross_entropy(module(inputs), targets).backward()
            opt.step()
        opt.save(Path(sys.argv[2], "checkpoints"), epochs=epoch + 1)
    opt.finish()
    right = (opt.average()(x).argmax(1) == dataset.tensors[1]).float().mean().item()
    weights = sum(p.sum().item() for p in module.parameters())
    Path(sys.argv[2], str(dist.get_rank())).write_text(f"{right} {weights!r}")
"""


VARIABLES = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
WHY_NOT = netlab.probe()
ON_ONE_NODE = pytest.mark.processes if WHY_NOT else pytest.mark.slow


def run(launches: list[list[str]], folder: Path, **variables: str) -> None:
    """Train by these torchruns at once, in two processes in all, to one set of good weights with a checkpoint."""
    script = folder / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    options: dict[str, Any] = {
        "env": {**os.environ, **VARIABLES, **variables},
        "stderr": subprocess.PIPE,
        "text": True,
    }
    nodes = [subprocess.Popen([*launch, str(script), "2", str(folder)], **options) for launch in launches]
    try:
        told = [process.communicate(timeout=600)[1] for process in nodes]
    finally:
        for process in nodes:
            process.kill()
    assert not any(process.returncode for process in nodes), "\n".join(told)[-3000:]
    said = [(folder / str(rank)).read_text().split() for rank in range(2)]
    assert all(float(right) > 0.9 for right, _ in said)
    assert len({weights for _, weights in said}) == 1
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["update-60"]


@pytest.mark.processes
@ON_ONE_NODE
def test_torchrun_trains_a_module_of_ones_own(tmp_path: Path) -> None:
    """On one node; slow where the test on two nodes runs, which shows nearly as much."""
    run([[*TORCHRUN, "--standalone", "--nproc-per-node=2"]], tmp_path)


@pytest.mark.processes
@pytest.mark.skipif(bool(WHY_NOT), reason=f"no two networks here: {WHY_NOT}")
def test_torchrun_trains_over_two_nodes(tmp_path: Path) -> None:
    """Two network namespaces for two nodes, each with a torchrun of its own, as `srun torchrun` starts them."""
    with netlab.lab() as lab:
        launches = []
        for node in range(2):
            launch = ["nsenter", f"--net={lab[node]}", *TORCHRUN]
            launch += ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-id=7351"]
            launch += [f"--rdzv-endpoint={netlab.address(0)}:29500", f"--rdzv-conf=is_host={1 - node}"]
            launches.append([*launch, f"--local-addr={netlab.address(node)}"])
        run(launches, tmp_path, GLOO_SOCKET_IFNAME=netlab.INTERFACE)
