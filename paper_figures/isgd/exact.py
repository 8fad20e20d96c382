"""The ISGD artifacts that are decided by arithmetic, analysis, or small deterministic experiments.

``EXTRA`` and ``EXTRA_RUNS`` hold measures, and the runs they read, for artifacts that other modules define.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from paper_figures.isgd import arithmetic, batch_size_model, chart, experiments, mechanism_claims, scheme
from paper_figures.isgd.settings import mnist_pairs
from paper_figures.isgd.training import measure_speed
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities

Measure = Callable[[Evidence], Quantities]


def _alg1_runs(profile: str) -> Groups:
    traced = {name: specs for name, specs in experiments.traces(profile).items() if name.startswith("margin")}
    return {
        **traced,
        **experiments.beside_sgd(profile),
        **experiments.parallel(profile),
        **experiments.operations(profile),
        **(mnist_pairs(profile) if profile != "smoke" else {}),
    }


def _alg2_runs(profile: str) -> Groups:
    return {**experiments.traces(profile), **experiments.subproblem(profile)}


ARTIFACTS = (
    Artifact(
        "isgd/table1",
        "Data sets, networks and weight sizes used in the experiments",
        measures=(arithmetic.table1, arithmetic.data_sets),
    ),
    Artifact(
        "isgd/fig3",
        "Predicted training time against batch size for two system configurations",
        measures=(batch_size_model.optima, batch_size_model.shapes, batch_size_model.configurations),
        draw=batch_size_model.draw,
        alt="Left: time by Eq. 22 against batch size, U-shaped for both systems; the faster system's optimum lies at "
        "the larger batch, the printed optima elsewhere. Right: the ratio of the optima stays between 1.41 and 1.59.",
        size=(9.6, 4.2),
    ),
    Artifact(
        "isgd/fig4",
        "Diagram of the data-parallel scheme used by Caffe",
        experiments.parallel,
        (scheme.data_parallelism,),
        scheme.draw,
        alt="A batch is cut into four parts; four GPUs compute on one each; two steps of a tree sum losses and "
        "gradients on the first, which updates the weights and broadcasts them back.",
        size=(7.2, 5.6),
    ),
    Artifact(
        "isgd/example5_3",
        "Worked example: fewer iterations at double batch can still cost more time",
        measures=(arithmetic.example,),
    ),
    Artifact(
        "isgd/alg1",
        "ISGD outer loop: SGD step, loss queue, control limit, conditional acceleration",
        _alg1_runs,
        (
            chart.side_by_side,
            chart.triggers,
            chart.tightness,
            chart.running_mean,
            chart.queue_length,
            chart.constant_time,
            scheme.data_parallelism,
            arithmetic.normal_tail,
            arithmetic.smallest_epoch,
            measure_speed,
        ),
        chart.draw("margin 3", "Algorithm 1 on scikit-learn's digits, limit at three deviations"),
        alt="Batch losses of a small network over eight epochs with their running mean and the limit above it; the "
        "few losses above the limit are followed by steps of Algorithm 2.",
        size=(7.2, 5.6),
    ),
    Artifact(
        "isgd/alg2",
        "Conservative subproblem: bounded number of steps on an undertrained batch",
        _alg2_runs,
        (chart.chases, chart.steps_needed, chart.small_steps),
        chart.draw("margin 1", "Algorithm 2 on scikit-learn's digits, limit at one deviation, at most five steps"),
        alt="Batch losses of a small network with a tight limit; losses above it are followed by one to five steps "
        "that bring the loss of that batch down.",
        size=(7.2, 5.6),
    ),
    Artifact(
        "isgd/alg-fcpr",
        "Fixed-cycle pseudo-random sampling: permute once, then read batches in a cycle",
        experiments.sampling,
        (mechanism_claims.fixed_cycle,),
    ),
    Artifact(
        "isgd/alg-lr",
        "Learning rate driven by the running average loss, never reversed",
        experiments.rates,
        (mechanism_claims.learning_rate,),
    ),
    Artifact("isgd/eq4", "SGD update on a sampled batch", experiments.partition, (mechanism_claims.unbiased,)),
    Artifact(
        "isgd/eq7",
        "Cross-entropy batch loss with weight decay",
        measures=(arithmetic.loss_floor, arithmetic.decay_constant),
    ),
    Artifact(
        "isgd/eq10",
        "Mean, standard deviation and upper control limit of the losses of the last epoch",
        experiments.paper_margin,
        (chart.limit_statistics,),
    ),
    Artifact(
        "isgd/eq11",
        "Objective of the subproblem: chase the limit, stay near the old weights",
        experiments.subproblem,
        (chart.small_steps,),
    ),
    Artifact("isgd/eq12", "Gradient of the subproblem objective", experiments.subproblem, (chart.small_steps,)),
    Artifact("isgd/eq18", "Square-summable learning-rate condition", measures=(arithmetic.square_summable,)),
    Artifact("isgd/eq22", "Loss, time and system constants combined", measures=(batch_size_model.substitution,)),
)

EXTRA: Mapping[str, tuple[Measure, ...]] = {
    "isgd/fig2": (chart.limit_statistics,),
    "isgd/fig5a": (arithmetic.seconds_between_tests,),
    "isgd/fig5b": (arithmetic.cifar_gain,),
    "isgd/fig5f": (arithmetic.imagenet_gain,),
    "isgd/fig6a": (scheme.configurations("parts", "configs"),),
    "isgd/fig6b": (scheme.configurations("parts", "configs"),),
    "isgd/fig6c": (
        scheme.configurations("parts", "configs"),
        scheme.configurations("long run", "batch-1536"),
        arithmetic.nvidia_hours,
    ),
    "isgd/fig7a": (arithmetic.saturation_ratio("fig7a"), arithmetic.image_sizes),
    "isgd/fig7b": (arithmetic.saturation_ratio("fig7b"),),
    "isgd/fig7c": (arithmetic.saturation_ratio("fig7c"),),
    "isgd/fig8": (arithmetic.synchronisation_share,),
    "isgd/eq15": (arithmetic.step_identity,),
}

EXTRA_RUNS: Mapping[str, Callable[[str], Groups]] = {
    "isgd/fig2": experiments.paper_margin,
    "isgd/fig6a": lambda profile: {"parts": (experiments.parts("fig6a"),)},
    "isgd/fig6b": lambda profile: {"parts": (experiments.parts("fig6b"),)},
    "isgd/fig6c": lambda profile: {
        "parts": (experiments.parts("fig6c"),),
        "long run": (experiments.parts("abstract"),),
    },
}
