"""Figure 1: the steady variance of Lookahead beside SGD's on the noisy quadratic (Proposition 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from suite.claims.intervals import Interval, paired_ratio
from suite.papers.artifact import Groups
from suite.papers.catalogue import printed_value
from suite.papers.panel import Frame, Panel
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


FIG1 = Panel(
    "lookahead/fig1",
    "Variance on the noisy quadratic, SGD and Lookahead",
    runs,
    alt="Both variances rise and settle, Lookahead's at less than half of SGD's, on the dotted line.",
)
ARTIFACTS = (FIG1,)


@FIG1.quantity("ratio", groups=["lookahead", "sgd"])
@FIG1.quantity("lower", groups=["lookahead", "sgd"])
def measure_ratio(frame: Frame) -> Interval:
    """The variance of Lookahead over SGD's, with its 95% interval over seeds."""
    return paired_ratio(frame["sgd"]["variance"].tolist(), frame["lookahead"]["variance"].tolist())


@FIG1.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Variance over updates of the first seed, and the printed share of SGD's as a line."""
    frame, axes = frame.needed(["lookahead", "sgd"]), figure.add_subplot()
    for name, label in (("sgd", "SGD"), ("lookahead", "Lookahead")):
        curve = frame.table("variance", name)
        curve = curve[curve["seed"] == 0]
        axes.plot(curve["update"], curve["variance"], label=label)
    plain = frame["sgd"]["variance"].iloc[0]
    axes.axhline(plain * printed_value("lookahead/fig1/ratio"), linestyle=":", label="Proposition 2")
    axes.set(xlabel="updates", ylabel="variance of the weights", ylim=(0, None))
    axes.legend()
