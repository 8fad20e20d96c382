"""Crossbow: synchronous model averaging with many learners per GPU."""

from __future__ import annotations

from paper_figures.artifact import Paper
from paper_figures.crossbow import accuracy, algorithms, hardware, tasks
from suite.experiments import Body, Experiment, Measure
from suite.spec import RunSpec


def _algebra() -> Body:
    from paper_figures.crossbow.algebra import algebra

    return algebra


def _tasks() -> Body:
    from paper_figures.crossbow import system

    return system.tasks


def _tuner() -> Body:
    from paper_figures.crossbow.system import tuner

    return tuner


def _sizes() -> Body:
    from paper_figures.crossbow.system import sizes

    return sizes


def _throughput() -> Body:
    from paper_figures.crossbow.throughput import throughput

    return throughput


def _memory() -> Body:
    from paper_figures.crossbow.throughput import memory

    return memory


def _followed() -> Body:
    from paper_figures.crossbow.followed import followed

    return followed


def _choose_path() -> Measure:
    from paper_figures.crossbow.followed import choose_path

    return choose_path


def _training_seconds(spec: RunSpec) -> float:
    """Epochs of training, and an evaluation of the average model and every replica after each."""
    from suite.data.catalogue import DATASETS
    from suite.models.table import counts
    from suite.training_cost import FLOPS_PER_SECOND

    s = spec.settings
    examples = 3 * s["images"] + 5 * DATASETS[s["data"]["name"]].sizes["test"]
    return s["epochs"] * examples * counts(s["model"]["name"]).flops_per_example / FLOPS_PER_SECOND


def _timing_seconds(spec: RunSpec) -> float:
    from suite.models.table import counts
    from suite.training_cost import FLOPS_PER_SECOND

    s = spec.settings
    gradients = 6 * sum(s["learners"]) * s["batch"] * s["turns"] * (s["repeats"] + 1)
    return 3 * gradients * counts(s["model"]).flops_per_example / FLOPS_PER_SECOND


EXPERIMENTS = {
    "crossbow/algebra": Experiment(_algebra, lambda spec: 3.0),
    "crossbow/tasks": Experiment(_tasks, lambda spec: 1.0, timed=True),
    "crossbow/tuner": Experiment(_tuner, lambda spec: 0.3),
    "crossbow/sizes": Experiment(_sizes, lambda spec: 1.0),
    "crossbow/throughput": Experiment(_throughput, _timing_seconds, timed=True),
    "crossbow/memory": Experiment(_memory, lambda spec: 2.0),
    "crossbow/followed": Experiment(
        _followed, _training_seconds, lambda spec: (spec.settings["data"]["name"],), measure=_choose_path
    ),
}

ORDER = (
    ["table1", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8"]
    + [f"fig{number}{letter}" for number in (9, 10, 11) for letter in "abcd"]
    + [f"fig{number}{letter}" for number in (12, 13) for letter in "abc"]
    + [f"fig14{letter}" for letter in "abcd"]
    + ["fig15", "fig16", "fig17", "alg1", "alg2", "alg-restart", "alg-hierarchical", "alg-memory", "alg-scheduler"]
    + ["eq1", "eq3", "eqtta"]
)
_BY_NAME = {**algorithms.ARTIFACTS, **accuracy.ARTIFACTS, **hardware.ARTIFACTS, **tasks.ARTIFACTS}

PAPER = Paper(
    "crossbow",
    "Crossbow: Scaling Deep Learning with Small Batch Sizes on Multi-GPU Servers",
    "Koliousis, Watcharapichat, Weidlich, Mai, Costa and Pietzuch, PVLDB 12(11), 2019",
    tuple(_BY_NAME[name] for name in ORDER),
    EXPERIMENTS,
)
