"""The tasks of the board: data, network, budget and target, and how many trials and seeds every method has.

A task fixes what a method may not choose. All methods read the same images in the same fixed cycle from the same
initial weights, and all count their budget in gradient evaluations of ``batch`` images. The learning rate grows to
its value over the first ``warmup`` evaluations and stays there: a target's place does not hang on the budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

TUNING_SEED = 1000  # no fresh seed


@dataclass(frozen=True)
class Task:
    """One task. Counts called gradients are of gradient evaluations of ``batch`` images."""

    name: str
    data: Mapping[str, Any]
    model: Mapping[str, Any]
    subset: int  # training images that trainings read
    validation: int  # of the other training images, that the target and every choice are read from
    batch: int
    budget: int  # gradients
    every: int  # gradients between two evaluations; a multiple of the learners of every method
    warmup: int  # gradients
    target: float  # error on the validation images
    layers: tuple[tuple[int, int], ...]  # (multiply-adds of an image, parameters) from first to last, for the cost
    gradient_seconds: float  # of one gradient on one learner, for the cost model
    trials: int = 8
    seeds: tuple[int, ...] = tuple(range(8))
    learners: tuple[int, ...] = (4,)
    rates: tuple[float, float] = (0.03, 1.5)  # of SGD's family: the rate over 1 - momentum
    adaptive_rates: tuple[float, float] = (3e-4, 1e-2)  # of Adam's
    median: int = 3  # evaluations whose median must pass the target
    decay: float = 5e-4  # L2, of SGD's family
    update_seconds: Mapping[int, float] = field(default_factory=dict)  # of SGD by batch size, measured; {}: no law

    @property
    def sizes(self) -> list[int]:
        """The batch sizes among which the inverse law chooses: from a quarter of the task's to 16 times as many."""
        return [size for size in sorted(self.update_seconds) if self.batch / 4 <= size <= 16 * self.batch]

    @property
    def parameters(self) -> int:
        return sum(parameters for _, parameters in self.layers)


LENET = ((288_000, 520), (1_600_000, 25_050), (400_000, 400_500), (5_000, 5_010))
# By paper_figures.together.experiments.update_seconds on one core of an AMD EPYC, torch 2.14.1, 26 November 2026.
LENET_SECONDS = {1: 3.23e-3, 2: 3.79e-3, 4: 4.89e-3, 8: 6.65e-3, 16: 10.1e-3, 32: 16.5e-3, 64: 28.6e-3, 128: 52.4e-3,
                 256: 102e-3}  # fmt: skip
# fmt: off
RESNET20 = ((442_368, 480), *[(2_359_296, 2_352)] * 6, (1_179_648, 4_704), *[(2_359_296, 9_312)] * 5,
            (1_179_648, 18_624), *[(2_359_296, 37_056)] * 5, (6_400, 6_500))
TRANSFORMER = ((0, 10_240), *[(1_572_864, 16_768), (2_097_152, 33_216)] * 2, (393_216, 6_368))
# fmt: on
QUICK = ((2_457_600, 2_432), (6_553_600, 25_632), (3_276_800, 51_264), (65_536, 65_600), (640, 650))

MNIST = Task(
    name="mnist",
    data={"name": "mnist", "transform": "scale"},
    model={"name": "caffe_lenet"},
    subset=24_000,  # 1,500 batches, so that ISGD's control chart, which needs an epoch, is in use before the target
    validation=3_000,
    batch=16,
    budget=6_144,
    every=192,
    warmup=256,
    target=0.025,
    layers=LENET,
    gradient_seconds=4e-3,
    update_seconds=LENET_SECONDS,
    learners=(4, 16),
)
DIGITS = replace(  # MNIST's task in small, which proves the machinery and is no result
    MNIST,
    data={"name": "digits", "transform": "unit"},
    subset=1000,
    validation=200,
    batch=4,
    budget=48,
    every=16,
    warmup=4,
    target=0.8,
    gradient_seconds=1e-3,
    trials=2,
    seeds=(0, 1),
    learners=(4,),
)
CIFAR10 = Task(
    name="cifar10",
    data={"name": "cifar10", "transform": "mean-image"},
    model={"name": "caffe_cifar_quick"},
    subset=45_000,
    validation=2_000,
    batch=32,
    budget=7_168,
    every=256,
    warmup=256,
    target=0.38,
    layers=QUICK,
    gradient_seconds=12e-3,
    trials=5,
    seeds=tuple(range(5)),
    rates=(0.003, 0.1),
    adaptive_rates=(1e-4, 3e-3),
    decay=4e-3,
)
CIFAR100 = Task(
    name="cifar100",
    data={"name": "cifar100", "transform": "standardise"},
    model={"name": "resnet20", "classes": 100},
    subset=45_000,
    validation=2_000,
    batch=64,
    budget=7_040,  # ten epochs
    every=352,
    warmup=352,
    target=0.65,
    layers=RESNET20,
    gradient_seconds=0.2,
    trials=5,
    seeds=tuple(range(5)),
    rates=(0.07, 3.5),
)
MULTI30K = Task(
    name="multi30k",
    data={"name": "multi30k_characters", "transform": "as-is", "digest": "8b5ff64844bac119"},
    model={"name": "character_transformer"},
    subset=8_192,  # windows, 512 batches
    validation=256,  # windows, 16,384 characters
    batch=16,
    budget=2_048,
    every=64,
    warmup=128,
    target=0.49,
    layers=TRANSFORMER,
    gradient_seconds=18e-3,
    trials=3,
    seeds=(0, 1, 2, 3),
    rates=(0.2, 2.0),
    adaptive_rates=(1.5e-3, 1.5e-2),
)
TASKS = {task.name: task for task in (MNIST, CIFAR10, CIFAR100, MULTI30K)}
