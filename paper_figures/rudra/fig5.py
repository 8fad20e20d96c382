"""Fig. 5: at the rate alpha0, 30-softsync stays at chance; at alpha0/30 it learns, as does 4-softsync at alpha0/4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.rudra.groups import modulation_groups
from paper_figures.rudra.readings import error_steps, errors, runs_of, sampling
from suite.claims.measured import exact, point
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Evidence, Groups, Missing, Quantities

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> Groups:
    return modulation_groups(profile)


def measure_chance(evidence: Evidence) -> Quantities:
    yield "chance-level", exact(100 * (1 - 1 / DATASETS["cifar10"].classes))


def measure_errors(evidence: Evidence) -> Quantities:
    failed = errors(evidence, "alpha0")
    ids = [run.id for run in runs_of(evidence, "alpha0")]
    spread = [sampling(error) for error in failed]
    worst = max(range(len(failed)), key=lambda at: abs(failed[at] - 90))
    yield "n30-diverges", point(failed[worst], kind="measured", spread=spread[worst], n=len(failed), runs=ids)
    yield "n30-lower", error_steps(evidence, ["alpha0/30", "alpha0"])
    if evidence.profile == "paper":
        yield "n4-lower", error_steps(evidence, ["alpha0/4", "alpha0 of 4-softsync"])


def draw(evidence: Evidence, figure: Figure) -> None:
    if not evidence.groups:
        raise Missing(f"nothing is trained at profile {evidence.profile}")
    axes = figure.subplots()
    for group in evidence.groups:
        for run in evidence.runs(group):
            table = run.curve("evaluations")
            name = f"30-softsync, {group}" if group in ("alpha0", "alpha0/30") else group
            axes.plot(table["epoch"], 100 * table["test_error"], marker="o", markersize=3, label=name)
    axes.set(xlabel="epoch", ylabel="test error (%)", ylim=(0, 100))
    axes.legend()


ARTIFACTS = (
    Artifact(
        "rudra/fig5",
        "Test error with and without dividing the rate by staleness",
        runs,
        (measure_chance, measure_errors),
        draw,
        alt="Test error against epochs of 30-softsync: at alpha0 it stays at 90%, at alpha0/30 it falls.",
    ),
)
