"""Inconsistent stochastic gradient descent (Wang et al., 2016): every table, figure, algorithm and equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from paper_figures.isgd import batch_sizes, cycles, exact, experiments, imagenet, noise, timing, training
from suite.papers.artifact import Artifact, Evidence, Groups, Paper, Quantities, no_runs

ORDER = (
    *("table1", "fig1a", "fig1b", "fig2", "fig3", "fig4", "fig5a", "fig5b", "fig5c", "fig5d", "fig5e", "fig5f"),
    *("fig6a", "fig6b", "fig6c", "example5_3", "fig7a", "fig7b", "fig7c", "fig8", "alg1", "alg2", "alg-fcpr"),
    *("alg-lr", "eq4", "eq7", "eq10", "eq11", "eq12", "eq15", "eq18", "eq19", "eq21", "eq22"),
)


def extended(artifact: Artifact) -> Artifact:
    """The artifact with the runs and measures that ``exact`` adds to it; each side sees its own runs only."""
    if artifact.id not in exact.EXTRA:
        return artifact
    own, added = artifact.runs, exact.EXTRA_RUNS.get(artifact.id, no_runs)

    def runs(profile: str) -> Groups:
        return {**own(profile), **added(profile)}

    def seeing(
        groups: Callable[[str], Groups], measure: Callable[[Evidence], Quantities]
    ) -> Callable[[Evidence], Quantities]:
        return lambda evidence: measure(evidence.restricted(groups(evidence.profile)))

    measures = [seeing(own, measure) for measure in artifact.measures]
    measures += [seeing(added, measure) for measure in exact.EXTRA[artifact.id]]
    if (draw := artifact.draw) is None:
        return replace(artifact, runs=runs, measures=tuple(measures))
    return replace(
        artifact,
        runs=runs,
        measures=tuple(measures),
        draw=lambda evidence, figure: draw(evidence.restricted(own(evidence.profile)), figure),
    )


def _in_order() -> tuple[Artifact, ...]:
    modules = (exact, cycles, training, imagenet, batch_sizes, timing, noise)
    made = [artifact for module in modules for artifact in module.ARTIFACTS]
    by_name = {artifact.id.removeprefix("isgd/"): extended(artifact) for artifact in made}
    assert len(by_name) == len(made)
    assert set(by_name) == set(ORDER), set(by_name) ^ set(ORDER)
    return tuple(by_name[name] for name in ORDER)


PAPER = Paper(
    name="isgd",
    title="Accelerating Deep Neural Network Training with Inconsistent Stochastic Gradient Descent",
    citation="Linnan Wang, Yi Yang, Martin Renqiang Min and Srimat Chakradhar, 2016 (arXiv 1603.05544v2)",
    artifacts=_in_order(),
    experiments={
        **experiments.EXPERIMENTS,
        **timing.EXPERIMENTS,
        **noise.EXPERIMENTS,
        **imagenet.EXPERIMENTS,
    },
)
