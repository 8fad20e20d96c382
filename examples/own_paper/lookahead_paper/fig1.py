"""Figure 1: the steady variance of Lookahead beside SGD's on the noisy quadratic (Proposition 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suite.claims.estimate import over_seeds
from suite.claims.intervals import paired_ratio
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.catalogue import printed_value
from suite.papers.counterfeits import as_if, counterfeit
from suite.spec import RunSpec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE, K, ALPHA, SEEDS = 0.1, 5, 0.5, 5
COORDINATES = {"smoke": 2_000, "reduced": 20_000, "paper": 200_000}


def runs(profile: str) -> Groups:
    """Lookahead and SGD, which is Lookahead with alpha = 1, on the same noise."""

    def group(alpha: float) -> tuple[RunSpec, ...]:
        settings = {"rate": RATE, "k": K, "alpha": alpha, "rounds": 60, "coordinates": COORDINATES[profile]}
        return tuple(RunSpec("lookahead/quadratic", settings, number) for number in range(SEEDS))

    return {"lookahead": group(ALPHA), "sgd": group(1.0)}


def measure_ratio(evidence: Evidence) -> Quantities:
    """The variance of Lookahead over SGD's, with its 95% interval over seeds."""
    ours, plain = evidence.runs("lookahead"), evidence.runs("sgd")
    ratio = paired_ratio([run.results["variance"] for run in plain], [run.results["variance"] for run in ours])
    ids = [run.id for run in (*ours, *plain)]
    found = over_seeds(ratio, ids)
    yield "ratio", found
    yield "lower", found


@counterfeit("lookahead/fig1/ratio", "lookahead/fig1/lower")
def averaging_does_nothing(evidence: Evidence) -> Evidence:
    """Lookahead ends where SGD ends."""
    return as_if(evidence, "lookahead", "sgd")


def draw(evidence: Evidence, figure: Figure) -> None:
    """Variance over updates, and the printed share of SGD's as a line."""
    axes = figure.add_subplot()
    for name, label in (("sgd", "SGD"), ("lookahead", "Lookahead")):
        curve = evidence.runs(name)[0].curve("variance")
        axes.plot(curve["update"], curve["variance"], label=label)
    plain = evidence.runs("sgd")[0].results["variance"]
    axes.axhline(plain * printed_value("lookahead/fig1/ratio"), linestyle=":", label="Proposition 2")
    axes.set(xlabel="updates", ylabel="variance of the weights", ylim=(0, None))
    axes.legend()


ARTIFACTS = (
    Artifact(
        "lookahead/fig1",
        "Variance on the noisy quadratic, SGD and Lookahead",
        runs,
        (measure_ratio,),
        draw,
        "Both variances rise and settle, Lookahead's at less than half of SGD's, on the dotted line.",
    ),
)
