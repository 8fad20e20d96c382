"""Figs. 1 and 4 to 8: diagrams of the algorithm and of the system, and beneath them what runs of the same found."""

from __future__ import annotations

from typing import Any

from paper_figures.crossbow import diagrams, plots, settings
from paper_figures.crossbow.readings import only, told
from suite.lazy import Figure, pd, sns
from suite.papers.catalogue import printed
from suite.papers.panel import Frame, Panel
from suite.report.style import PALETTE

LEARNERS = (1, 2, 4)  # on each of two GPUs, as the run of Fig. 6 counts


def panel(figure: str, title: str, alt: str, group: str, size: tuple[float, float] = (6.4, 4.0)) -> Panel:
    spec = {"algebra": settings.ALGEBRA, "tasks": settings.TASKS}[group]
    return Panel(f"crossbow/{figure}", title, lambda profile: {group: (spec,)}, alt=alt, size=size)


FIG1 = panel(
    "fig1",
    "Parallel synchronous SGD on two workers",
    "Half a batch goes to each of two GPUs, whose partial gradients are averaged into the same update of both; "
    "replicas and gradients differ by zero or rounding.",
    "algebra",
    (7.2, 3.8),
)
FIG4 = panel(
    "fig4",
    "Two learners with separate batches and corrections",
    "Two learners update replicas of their own with gradients of their own batches and with corrections through the "
    "average model, over three iterations.",
    "algebra",
    (7.2, 4.2),
)
FIG5 = panel(
    "fig5",
    "Two replicas tracking the central average model",
    "Paths of two replicas and of the average model on a quadratic, with arrows for the corrections.",
    "algebra",
)
FIG6 = panel(
    "fig6",
    "Two-level synchronisation with one reference model per GPU",
    "Each of two GPUs has a reference model that its other learners follow, and only these are averaged; what a GPU "
    "sends stays constant with two levels and grows with its learners without.",
    "algebra",
    (8.4, 3.8),
)
FIG7 = panel("fig7", "Learners, streams and batches of a run", plots.ALT_TIMELINES, "tasks", (6.4, 3.4))
FIG8 = panel(
    "fig8",
    "Learning and synchronisation tasks on streams: a recorded run and 2 GPUs with 2 learners each",
    plots.ALT_TIMELINES,
    "tasks",
    (6.4, 5.0),
)
ARTIFACTS = (FIG1, FIG4, FIG5, FIG6, FIG7, FIG8)

told(FIG1, "algebra", replicas_equal="synchronous_copies", equals_large_batch="partial_gradients")
told(FIG4, "algebra", different_batches="shared_in_iteration", replicas_differ="least_distance")
told(FIG6, "algebra", one_reference="references", inter_gpu_traffic="traffic")


@FIG1.drawing
def draw_synchronous(frame: Frame, figure: Figure) -> None:
    """The paper's diagram, and beneath it what the run found."""
    found = only(frame, "algebra").results
    copies, partial = found["synchronous_copies"], found["partial_gradients"]
    said = (
        f"Two workers, 40 iterations: the replicas differ by at most {copies:g} (printed: 0).",
        f"The mean of the partial gradients is the batch's to {partial:.0e} (printed: 0, float64).",
    )
    diagrams.synchronous(figure.subplots(), said)


@FIG4.drawing
def draw_learners(frame: Frame, figure: Figure) -> None:
    """The paper's diagram, and beneath it what a run of four learners found."""
    found = only(frame, "algebra").results
    shared, least = found["shared_in_iteration"], found["least_distance"]
    said = (
        f"Four learners, one epoch: {shared:g} samples shared by two learners of an iteration (printed: 0);",
        f"the two replicas nearest to each other are {least:.3f} apart (0 would be one model for all).",
    )
    diagrams.learners(figure.subplots(), said)


@FIG5.drawing
def draw_paths(frame: Frame, figure: Figure) -> None:
    plots.paths(frame, figure.subplots())


FIG5.table(lambda frame: only(frame, "algebra").curve("paths"))


@FIG6.table
def sent(frame: Frame) -> pd.DataFrame:
    """What a GPU sends, over what it sends with one learner: a row per scheme and learners on each GPU."""
    found = only(frame, "algebra").results
    schemes = (("two levels", "traffic"), ("flat: every replica sent", "flat_traffic"))
    rows = [(said, m, sent) for said, name in schemes for m, sent in zip(LEARNERS, found[name], strict=True)]
    return pd.DataFrame(rows, columns=["scheme", "learners", "sent"])


@FIG6.drawing
def draw_two_levels(frame: Frame, figure: Figure) -> None:
    """The paper's diagram, and beside it the numbers that cross between two GPUs, flat and with two levels."""
    diagram, axes = figure.subplots(1, 2, width_ratios=(2, 1))
    references = ", ".join(f"{count:g}" for count in only(frame, "algebra").results["references"])
    said = f"reference models per GPU with 1, 2, 4 learners on each: {references} (printed: 1)"
    diagrams.two_levels(diagram, (said,))
    looks: dict[str, Any] = {"hue": "scheme", "palette": PALETTE[:2], "saturation": 1, "errorbar": None}
    sns.barplot(sent(frame), x="learners", y="sent", **looks, ax=axes)
    places = [place - 0.2 for place in range(len(LEARNERS))]
    plots.printed_marks(axes, places, printed("crossbow/fig6/inter-gpu-traffic"))
    axes.grid(visible=False, axis="x")
    axes.set(xlabel="learners per GPU", ylabel="sent by a GPU / sent with one learner")
    plots.legend_above(axes, 1)


@FIG7.drawing
def draw_virtual(frame: Frame, figure: Figure) -> None:
    plots.timelines(frame, figure, "virtual")


@FIG8.drawing
def draw_recorded(frame: Frame, figure: Figure) -> None:
    """A recorded run of two learners on threads, and 2 GPUs with 2 learners in virtual time."""
    plots.timelines(frame, figure, "recorded", "virtual")
