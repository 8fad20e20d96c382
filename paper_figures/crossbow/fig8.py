"""Fig. 8: learning and synchronisation tasks on streams; averages go round a ring of GPUs as learners work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import results, telling
from suite.claims.estimate import exact
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def runs(profile: str) -> settings.Groups:
    return {"tasks": (settings.TASKS,)}


def measure_tasks(evidence: Evidence) -> Quantities:
    """Shares of cases that keep each rule, in the virtual and in the recorded trace."""
    return results(
        evidence,
        "tasks",
        {
            "one-local-per-replica": (
                "virtual_local_per_replica",
                "recorded_local_per_replica",
                "virtual_local_on_stream_of_learning",
                "recorded_local_on_stream_of_learning",
            ),
            "overlap": ("virtual_iterations_overlapping", "recorded_iterations_overlapping"),
            "dependency": ("virtual_local_after_average", "recorded_local_after_average"),
        },
    )


@counterfeit("crossbow/fig8/one-local-per-replica", "crossbow/fig8/overlap", "crossbow/fig8/dependency")
def a_barrier_and_no_order(evidence: Evidence) -> Evidence:
    """Two replicas share a synchronisation task, learners wait for it, and it does not wait for the average."""
    names = ("local_per_replica", "local_on_stream_of_learning", "local_after_average")
    halves = {f"{trace}_{name}": 0.5 for trace in ("virtual", "recorded") for name in names}
    barrier = {f"{trace}_iterations_overlapping": 0.0 for trace in ("virtual", "recorded")}
    return telling(evidence, "tasks", **halves, **barrier)


def ring(gpus: int, size: int) -> tuple[list[list[int]], list[int]]:
    """A ring all-reduce of ``size`` integers on each GPU: what every GPU ends with, and how many sums it made.

    ``size`` is a multiple of ``gpus``. In step s of the first phase GPU g hands chunk g - s on, and its neighbour
    adds its own; after g - 1 steps every GPU holds one finished chunk, which then goes round.
    """
    data = [[(g + 1) * (i + 3) for i in range(size)] for g in range(gpus)]
    chunk = size // gpus
    sums = [0] * gpus
    for step in range(gpus - 1):
        moving = [data[g][(g - step) % gpus * chunk :][:chunk] for g in range(gpus)]
        for g in range(gpus):
            to, start = (g + 1) % gpus, (g - step) % gpus * chunk
            for i, number in enumerate(moving[g]):
                data[to][start + i] += number
                sums[to] += 1
    for step in range(gpus - 1):
        moving = [data[g][(g + 1 - step) % gpus * chunk :][:chunk] for g in range(gpus)]
        for g in range(gpus):
            start = (g + 1 - step) % gpus * chunk
            data[(g + 1) % gpus][start : start + chunk] = moving[g]
    return data, sums


def measure_ring(_: Evidence) -> Quantities:
    """The reductions that fall to the busiest GPU, in units of an equal share of all (g - 1) * n of them."""
    shares = []
    for gpus in (2, 4, 8):
        size = 16
        data, sums = ring(gpus, size)
        whole = [sum(g + 1 for g in range(gpus)) * (i + 3) for i in range(size)]
        assert all(row == whole for row in data), "the ring must end with the sum everywhere"
        shares.append(max(sums) / ((gpus - 1) * size / gpus))
    yield "ring", exact(shares)


def draw(evidence: Evidence, figure: Figure) -> None:
    """A recorded run of two learners on threads, and 2 GPUs with 2 learners in virtual time."""
    plots.timelines(evidence, figure, "recorded", "virtual")


ARTIFACTS = (
    Artifact(
        "crossbow/fig8",
        "Learning and synchronisation tasks on streams: a recorded run and 2 GPUs with 2 learners each",
        runs,
        (measure_tasks, measure_ring),
        draw,
        plots.ALT_TIMELINES,
        (6.4, 5.0),
    ),
)
