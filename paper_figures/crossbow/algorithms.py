"""Algorithm 1, its equations, and the diagrams of Figs. 1, 4, 5 and 6, drawn from runs of the real objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import arithmetic, settings
from paper_figures.crossbow.accuracy_plots import draw_curves
from paper_figures.crossbow.comparison import measure_average_better, measure_momentum_helps
from paper_figures.crossbow.readings import always, results, spread
from suite.papers.artifact import Artifact, Evidence, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALGEBRA = always("algebra", settings.ALGEBRA)


def variance_lower(evidence: Evidence) -> Quantities:
    run = evidence.run("algebra")
    steps = [r - c for r, c in zip(run.results["replica_variance"], run.results["centre_variance"], strict=True)]
    yield "variance-lower", spread(steps, "measured", [run.id], "a quadratic with white gradient noise")


def draw_synchronous(evidence: Evidence, figure: Figure) -> None:
    """Fig. 1: the gaps that a run of S-SGD on two workers left."""
    found = evidence.run("algebra").results
    _bars(
        figure,
        {
            "copies of the model": found["synchronous_copies"],
            "mean of partial\ngradients": found["partial_gradients"],
        },
    )


def _bars(figure: Figure, gaps: dict[str, float]) -> None:
    axes = figure.subplots()
    floor = 1e-17
    axes.barh(list(gaps), [max(abs(gap), floor) for gap in gaps.values()], left=floor)
    axes.set_xscale("log")
    axes.set_xlim(floor, 1e-9)
    axes.axvline(1e-12, color="C1", linestyle="--", label="tolerance")
    axes.set_xlabel("largest difference (float64); a bar at the left end is zero")
    axes.legend()


def draw_paths(evidence: Evidence, figure: Figure) -> None:
    """Figs. 4 and 5: two replicas on their own batches, and the average model between them."""
    axes = figure.subplots()
    for name, part in evidence.run("algebra").curve("paths").groupby("model"):
        width = 1.8 if name == "average" else 0.9
        axes.plot(part["x"], part["y"], marker="o", markersize=2.5, linewidth=width, label=str(name))
        if name == "average":
            first = (part["x"].iloc[0], part["y"].iloc[0])
            axes.annotate("start", first, (6, 0), textcoords="offset points")
    axes.set_xlabel("first parameter")
    axes.set_ylabel("second parameter")
    axes.legend()


def draw_levels(evidence: Evidence, figure: Figure) -> None:
    """Fig. 6: numbers that cross between devices for each number of learners, flat and with two levels."""
    axes = figure.subplots()
    found = evidence.run("algebra").results
    learners = (1, 2, 4)
    axes.plot(learners, found["traffic"], marker="o", label="two levels: one reference per GPU")
    axes.plot(learners, found["flat_traffic"], marker="s", label="flat, every replica sent")
    axes.set_xticks(learners)
    axes.set_xlabel("learners per GPU")
    axes.set_ylabel("sent by a GPU / sent at one learner")
    axes.legend()


def draw_stability(evidence: Evidence, figure: Figure) -> None:
    """Algorithm 1: which rates are stable, from running 500 quadratics."""
    axes = figure.subplots()
    found = evidence.run("algebra").results
    labels = ("k = 1, alpha = 1,\nno momentum", "k = 1, alpha = 1,\nmomentum 0.9", "k = 2", "k = 4")
    limits = [*found["one_learner_limits"], *found["many_learner_limits"]]
    axes.bar(labels, limits)
    axes.plot(labels, [0, 9 / 14, 1, 1.5], "D", color="C1", label="theory")
    axes.set_ylabel("largest stable rate x curvature")
    axes.legend()


ALG1: dict[str, str | tuple[str, ...]] = {
    "one-learner-leapfrog": "leapfrog",
    "one-learner-unstable": "one_learner_limits",
    "k-learners-stable": "many_learner_limits",
    "one-learner-alpha0": "never_synchronised",
    "mean-of-replicas": "mean_of_replicas",
    "sum-conserved": "sum_conserved",
    "no-momentum-is-easgd": "elastic",
    "synchronous": "batches_per_learner",
    "distinct-batches": "shared_in_epoch",
    "stop-rule": ("continues_at", "stops_at_target"),
    "zprev-lag": "previous_lag",
    "identical-data-stays-equal": "equal_data",
    "alpha": "alpha_times_k",
    "polyak": "present_position",
}


def two_level_runs(profile: str) -> settings.Groups:
    """Learners averaged flat, and as many on several devices with a reference model each."""
    learners, devices = settings.TWO_LEVEL[profile]
    return {**ALGEBRA(profile), **settings.groups(profile, f"sma {learners}", f"sma {learners} devices {devices}")}


def alg1_runs(profile: str) -> settings.Groups:
    many = settings.MANY[profile]
    comparison = settings.groups(profile, f"sma {many}", f"ea-sgd {many}")
    return {**ALGEBRA(profile), **comparison, "followed": settings.followed(profile)["followed"]}


ARTIFACTS = {
    "fig1": Artifact(
        "crossbow/fig1",
        "Parallel synchronous SGD on two workers",
        ALGEBRA,
        (results("algebra", {"replicas-equal": "synchronous_copies", "equals-large-batch": "partial_gradients"}),),
        draw_synchronous,
        "Differences between the workers' models and between partial and whole gradients, all at rounding or zero.",
    ),
    "fig4": Artifact(
        "crossbow/fig4",
        "Two learners with separate batches and corrections",
        ALGEBRA,
        (results("algebra", {"different-batches": "shared_in_iteration", "replicas-differ": "least_distance"}),),
        draw_paths,
        "Paths of two replicas that start together and part, with the average model between them.",
    ),
    "fig5": Artifact(
        "crossbow/fig5",
        "Two replicas tracking the central average model",
        ALGEBRA,
        (results("algebra", {"pull": "pull", "agree": "agreement_end"}),),
        draw_paths,
        "Paths of two replicas and of the average model on a quadratic.",
    ),
    "fig6": Artifact(
        "crossbow/fig6",
        "Two-level synchronisation with one reference model per GPU",
        ALGEBRA,
        (results("algebra", {"one-reference": "references", "inter-gpu-traffic": "traffic"}),),
        draw_levels,
        "What a GPU sends stays constant with two levels and grows with its learners without.",
    ),
    "alg1": Artifact(
        "crossbow/alg1",
        "Synchronous model averaging",
        alg1_runs,
        (results("algebra", ALG1), variance_lower, measure_momentum_helps, measure_average_better),
        draw_stability,
        "Largest stable rate for one, two and four learners, with the values of theory.",
    ),
    "alg-restart": Artifact(
        "crossbow/alg-restart",
        "Restart of averaging when a learning-rate change does not help",
        ALGEBRA,
        (results("algebra", {"from-average": ("restart", "restart_code")}),),
    ),
    "alg-hierarchical": Artifact(
        "crossbow/alg-hierarchical",
        "Two-level synchronisation: inside a GPU, then between GPUs",
        two_level_runs,
        (results("algebra", {"single-gpu-flat": "single_learner_devices", "flat-equivalence": "staged"}),),
        draw_curves(settings.FINAL_TARGET),
        "Test accuracy against epochs, averaged flat and with a reference model for each device.",
    ),
    "eq1": Artifact(
        "crossbow/eq1",
        "SGD update with a mini-batch gradient",
        ALGEBRA,
        (results("algebra", {"mean": "mean_gradient"}),),
    ),
    "eq3": Artifact(
        "crossbow/eq3",
        "SGD with momentum",
        ALGEBRA,
        (results("algebra", {"two-forms": "two_forms", "first-step": "first_step"}),),
    ),
    "eqtta": Artifact("crossbow/eqtta", "Time to accuracy", measures=(arithmetic.eqtta,)),
}
