"""Fig. 6: averaging on two levels; a reference model per GPU stands for its replicas between the GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.diagrams import two_levels
from paper_figures.crossbow.readings import results, telling
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed
from suite.papers.counterfeits import counterfeit
from suite.report.style import PALETTE

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LEARNERS = (1, 2, 4)  # on each of two GPUs, as the run counts


def runs(profile: str) -> settings.Groups:
    return {"algebra": (settings.ALGEBRA,)}


def measure(evidence: Evidence) -> Quantities:
    return results(evidence, "algebra", {"one-reference": "references", "inter-gpu-traffic": "traffic"})


@counterfeit("crossbow/fig6/inter-gpu-traffic")
def every_replica_sent(evidence: Evidence) -> Evidence:
    """Two levels send what the flat form sends."""
    return telling(evidence, "algebra", traffic=evidence.run("algebra").results["flat_traffic"])


def frame(evidence: Evidence) -> pd.DataFrame:
    """What a GPU sends, over what it sends with one learner: a row per scheme and learners on each GPU."""
    import pandas as pd

    found = evidence.run("algebra").results
    schemes = (("two levels", "traffic"), ("flat: every replica sent", "flat_traffic"))
    rows = [(said, m, sent) for said, name in schemes for m, sent in zip(LEARNERS, found[name], strict=True)]
    return pd.DataFrame(rows, columns=["scheme", "learners", "sent"])


def draw(evidence: Evidence, figure: Figure) -> None:
    """The paper's diagram, and beside it the numbers that cross between two GPUs, flat and with two levels."""
    import seaborn as sns

    diagram, axes = figure.subplots(1, 2, width_ratios=(2, 1))
    references = evidence.run("algebra").results["references"]
    said = ", ".join(f"{count:g}" for count in references)
    two_levels(diagram, (f"reference models per GPU with 1, 2, 4 learners on each: {said} (printed: 1)",))
    sns.barplot(
        frame(evidence),
        x="learners",
        y="sent",
        hue="scheme",
        palette=PALETTE[:2],
        saturation=1,
        errorbar=None,
        ax=axes,
    )
    plots.printed_marks(
        axes, [place - 0.2 for place in range(len(LEARNERS))], printed("crossbow/fig6/inter-gpu-traffic")
    )
    axes.grid(visible=False, axis="x")
    axes.set(xlabel="learners per GPU", ylabel="sent by a GPU / sent with one learner")
    plots.legend_above(axes, 1)


ARTIFACTS = (
    Artifact(
        "crossbow/fig6",
        "Two-level synchronisation with one reference model per GPU",
        runs,
        (measure,),
        draw,
        "Each of two GPUs has a reference model that its other learners follow, and only these are averaged; what a "
        "GPU sends stays constant with two levels and grows with its learners without.",
        (8.4, 3.8),
        frame,
    ),
)
