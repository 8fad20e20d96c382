"""A question of ours on Table 2: does softsync end above hardsync by its staleness, or by its rate?

At mu = 128 both 1-softsync and 10-softsync of ten learners end eight to nine points above hardsync, though their
gradients are one and nine updates late. Hardsync's rate is alpha0 sqrt(mu lambda / B), 1-softsync's alpha0: here
hardsync is trained at alpha0 too, so that staleness alone is left between the two.
"""

from __future__ import annotations

from functools import partial

from paper_figures.rudra import errors
from paper_figures.rudra.drawing import draw_evaluations, evaluations
from paper_figures.rudra.plans import label
from paper_figures.rudra.settings import at_profile
from suite.papers.figure import Artifact, Figure, Frame, Groups

HARDSYNC, SOFTSYNC, STALER = (0, 128, 10), (1, 128, 10), (10, 128, 10)
SLOWED = "hardsync at alpha0"
CURVES = {
    label(HARDSYNC): "hardsync",
    SLOWED: "hardsync at 1-softsync's rate",
    label(SOFTSYNC): "1-softsync",
    label(STALER): "10-softsync",
}


def groups(profile: str) -> Groups:
    """At full size; fewer epochs would say what a rate does at first."""
    if profile != "paper":
        return {}
    paper = {label(row): at_profile(row, profile) for row in (HARDSYNC, SOFTSYNC, STALER)}
    return paper | {SLOWED: at_profile(HARDSYNC, profile, modulated=False)}


PANEL = Artifact("rudra/rate", "Ours: hardsync at the rate of softsync", groups, beside=errors.own_seeds)
PANEL.quantities["by-rate"] = errors.differences((SLOWED, SOFTSYNC))


table = PANEL.table(partial(evaluations, named=CURVES, by="protocol"))


@PANEL.drawing
def draw(frame: Frame, figure: Figure) -> None:
    """Test error against epochs of ten learners with batches of 128: hardsync at two rates, 1- and 10-softsync."""
    axes = figure.subplots()
    draw_evaluations(axes, table(frame), "protocol")
    axes.set(xlabel="epoch", ylabel="test error (%)", ylim=(0, 100))
    axes.legend(title="10 learners, mu = 128")
