"""Thirty learners at mu = 4: one joined pass per timestamp against thirty separate copies of the network.

    python -m benchmarks.server_waves [--learners 30] [--batch 4] [--gradients 120] [--repetitions 9]

Both sides train Caffe's CIFAR-10 network on generated pictures along the same schedule, alternating in one process;
a repetition gives one ratio per protocol, and the median ratio and its range are printed. The rival is what a user
would write: a copy of the network for each learner, stepped one after the other in a Python loop, gradients averaged
at the server, weights copied back.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from paper_figures.rudra.machine import CIFAR_BYTES, CIFAR_SECONDS, INTERCONNECT, LATENCY, MEMORY
from suite.assembly import assemble
from suite.execution import keep_freed_memory
from suite.experiments import Context
from suite.gradients import PATHS
from suite.models import build, initialise
from suite.server_schedule import simulation
from suite.server_training import ServerSession
from suite.spec import RunSpec, seed

RATE, MOMENTUM = 0.001, 0.9


def specification(n: int, learners: int, batch: int, lookahead: int, path: str) -> RunSpec:
    server = {
        "architecture": "base",
        "seconds": {**CIFAR_SECONDS, "crowding": 0.0},
        "machines": 1,
        "model_bytes": CIFAR_BYTES,
        "network": [LATENCY, INTERCONNECT],
        "memory": MEMORY,
        "update_seconds": 0.0,
    }
    settings = {
        "data": {"name": "colours", "transform": "mean-image", "subset": 2000},
        "model": {"name": "caffe_cifar_full"},
        "algorithm": {"name": "rudra", "workers": learners, "n": n, "history": 3 * n + 3},
        "descent": {"rule": "caffe", "momentum": MOMENTUM},
        "rate": RATE,
        "batch": batch,
        "workers": learners,
        "order": {"kind": "with-replacement"},
        "updates": 10**9,
        "evaluate": {"every": 10**9},
        "record": {"every": 10**6},
        "server": server,
        "lookahead": lookahead,
        "path": path,
    }
    return RunSpec("rudra/train", settings)


class Ours:
    """The suite's driver, without evaluations."""

    def __init__(self, spec: RunSpec, execution: dict[str, Any], folder: Path):
        made = assemble(spec.settings, 0, execution, None)
        self.session = ServerSession(spec, Context(folder, execution), made, PATHS[execution["path"]](made.problem))
        self.turns = self.session.turns()

    def run(self, updates: int) -> None:
        for turn in islice(self.turns, updates):
            self.session.update(turn)


class Copies:
    """A network for each learner and plain SGD with momentum at the server."""

    def __init__(self, spec: RunSpec, execution: dict[str, Any]):
        s = spec.settings
        self.made = assemble(s, 0, execution, None)
        self.learners = [build("caffe_cifar_full") for _ in range(s["workers"])]
        for module in self.learners:
            initialise(module, seed(0, "weights"))
            module.to(memory_format=torch.channels_last)
        self.weights = [p.detach().clone() for p in self.learners[0].parameters()]
        self.velocity = [torch.zeros_like(w) for w in self.weights]
        self.schedule = iter(simulation(s["server"], s["workers"], s["algorithm"]["n"], s["batch"], 0))

    def run(self, updates: int) -> None:
        problem, order = self.made.problem, self.made.order
        for _, turn in islice(self.schedule, updates):
            total = [torch.zeros_like(w) for w in self.weights]
            for entry in turn.entries:
                module = self.learners[entry.worker]
                examples = order.indices(torch.tensor([entry.number]), torch.tensor([entry.worker]))[0]
                inputs, targets = problem.fetch(examples)
                module.zero_grad(set_to_none=True)
                torch.nn.functional.cross_entropy(module(inputs), targets).backward()
                for mine, parameter in zip(total, module.parameters(), strict=True):
                    mine += parameter.grad
            for weight, velocity, gradient in zip(self.weights, self.velocity, total, strict=True):
                velocity.mul_(MOMENTUM).add_(gradient, alpha=RATE / len(turn.entries))
                weight.sub_(velocity)
            with torch.no_grad():
                for entry in turn.entries:
                    for parameter, weight in zip(self.learners[entry.worker].parameters(), self.weights, strict=True):
                        parameter.copy_(weight)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--learners", type=int, default=30)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--gradients", type=int, default=120, help="on each side of a repetition")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    keep_freed_memory()  # for both sides
    cases = {
        "hardsync": (0, 0, "looped"),
        "1-softsync": (1, 0, "looped"),
        "lambda-softsync": (chosen.learners, 0, "looped"),
        "lambda-softsync, waves": (chosen.learners, chosen.learners, "vectorised"),
    }
    with TemporaryDirectory() as folder:
        for name, (n, lookahead, path) in cases.items():
            spec = specification(n, chosen.learners, chosen.batch, lookahead, path)
            execution = {
                "path": path,
                "width": 1,
                "threads": chosen.threads,
                "precision": "float32",
                "device": chosen.device,
                "channels_last": True,
                "deterministic": True,
            }
            ours, copies = Ours(spec, execution, Path(folder)), Copies(spec, {**execution, "path": "looped"})
            updates = max(1, chosen.gradients // (chosen.learners // max(n, 1)))
            ratios = []
            for repetition in range(chosen.repetitions + 1):
                spent = {}
                for side in (ours, copies) if repetition % 2 else (copies, ours):
                    began = time.perf_counter()
                    side.run(updates)
                    spent[side] = time.perf_counter() - began
                ratios.append(spent[copies] / spent[ours])
            found = sorted(ratios[1:])
            print(
                f"{name}: {statistics.median(found):.2f} times as fast ({found[0]:.2f} to {found[-1]:.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
