"""What is timed: every workload as a plain value. Imports no torch, so naming them costs nothing.

An *update* is one change of the weights of every run of the workload: a sweep of ten seeds at batch 16 reads 160
examples in an update, four averaged learners at batch 64 read 256, a server takes as many gradients as its protocol
says. Sizes are the papers'; pictures and sentences are random, which costs what real ones do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from paper_figures.rudra.settings import cifar_server
from suite.parameter_server.simulation import simulation

SEEDS = 10  # runs of a sweep
SPELL = 8  # updates of one of them before the next has its turn
LEARNERS = 30  # of a server
TRANSLATION = {"vocabulary": 16_000, "embedding": 512, "hidden": 512}  # inverse_law's paper profile
WORDS, SENTENCE = 800, 20  # target words of a translation batch, and of each of its sentences


@dataclass(frozen=True)
class Workload:
    """One thing to time. ``family`` says how its sides are built; see :mod:`benchmarks.sides`."""

    name: str
    family: str  # "training", "sweep", "averaging", "server", "translation"
    network: str
    batch: int  # examples of one gradient; sentences for translation
    runs: int = 1  # seeds, which the plain loop trains one after another
    learners: int = 1
    softsync: int = 0  # n of n-softsync; 0 is hardsync
    heavy: bool = False  # seconds per update on a CPU: there only with --heavy
    compiled: bool = False  # whether its compiled rival takes part without --compile-all

    @property
    def gradients(self) -> int:
        """Gradients of an update: one for each run, or for each learner whose gradient the server waits for."""
        return self.runs * (self.learners // max(1, self.softsync))

    @property
    def examples(self) -> int:
        """Examples of an update; target words for translation."""
        return self.gradients * (WORDS if self.family == "translation" else self.batch)

    @property
    def block(self) -> int:
        """Updates that a sample holds at least: a server's updates differ, a cycle of its learners does not, and runs
        of a sweep that come one after another find their own weights in the cache."""
        return SPELL if self.family == "sweep" and not self.heavy else max(1, self.softsync)


def single(title: str, network: str, *batches: int, **options: object) -> list[Workload]:
    return [Workload(f"{title}, M={m}", "training", network, m, **options) for m in batches]


def sweep(batch: int, **options: object) -> Workload:
    name = f"LeNet/MNIST, {SEEDS} seeds, M={batch}"
    return Workload(name, "sweep", "caffe_lenet", batch, runs=SEEDS, **options)


def averaging(title: str, network: str, batch: int, learners: int, **options: object) -> Workload:
    name = f"SMA {title}, b={batch}, k={learners}"
    return Workload(name, "averaging", network, batch, learners=learners, **options)


def server(protocol: str, softsync: int) -> Workload:
    name = f"full/CIFAR-10, {LEARNERS} learners, mu=4, {protocol}"
    return Workload(name, "server", "caffe_cifar_full", 4, learners=LEARNERS, softsync=softsync)


WORKLOADS: tuple[Workload, ...] = (
    *single("LeNet/MNIST", "caffe_lenet", 1, 16, 64, compiled=True),
    *single("LeNet/MNIST", "caffe_lenet", 1024),
    *(sweep(m, compiled=True) for m in (1, 16, 64)),
    sweep(1024, heavy=True),
    *single("quick/CIFAR-10", "caffe_cifar_quick", 4, 32, 128),
    *single("full/CIFAR-10", "caffe_cifar_full", 4, 32, 128),
    *single("ResNet-20/CIFAR-10", "resnet20", 4, 64),
    server("hardsync", 0),
    server("1-softsync", 1),
    server("lambda-softsync", LEARNERS),
    *(averaging("LeNet", "caffe_lenet", 16, k) for k in (1, 4, 16)),
    *(averaging("ResNet-32", "crossbow_resnet32", 64, k) for k in (1, 4)),
    averaging("ResNet-32", "crossbow_resnet32", 64, 16, heavy=True),
    Workload(f"cGRU, {WORDS} words", "translation", "cgru", WORDS // SENTENCE),
    *single("VGG-16/CIFAR-100", "crossbow_vgg16", 64),
    *single("ResNet-50/224x224", "crossbow_resnet50", 16, heavy=True),
    *single("AlexNet/227x227", "caffe_alexnet", 64, heavy=True),
)


def server_schedule(workload: Workload) -> Iterator[Any]:
    """Updates of the simulated server, endlessly: (virtual seconds, turn)."""
    return iter(simulation(cifar_server(workload.learners), workload.learners, workload.softsync, workload.batch, 0))
