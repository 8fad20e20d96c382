"""Eq. 19: the time of an update is the batch size over the images per second of the devices, and a constant.

The devices are processes of one machine here, which sum their gradients by a real all-reduce: the constant is what
that takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.isgd import settings
from paper_figures.isgd.fig8 import NAMES
from paper_figures.isgd.settings import NETWORKS
from suite.claims.estimate import over_seeds
from suite.claims.intervals import mean_interval
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.figure import Figure

    from suite.runs.store import Run


def line(batches: np.ndarray, seconds: np.ndarray) -> tuple[float, float, float]:
    """Slope in seconds per image, intercept in seconds, and share of the variance explained, of a fitted line."""
    import numpy as np

    slope, intercept = np.polyfit(batches, seconds, 1)
    residual = seconds - (slope * batches + intercept)
    return float(slope), float(intercept), float(1 - residual.var() / seconds.var())


def of_run(run: Run) -> str:
    return f"{run.spec.settings['model']} on {run.spec.settings['processes']} processes"


def medians(run: Run) -> pd.DataFrame:
    """By batch size: seconds of an update and of its sum, medians over the repetitions."""
    return run.curve("updates").groupby("batch")[["seconds", "communicated"]].median()


def measure(evidence: Evidence) -> Quantities:
    """How much of the time of an update a straight line explains in each repetition: the case where it is least."""
    found, notes, ids = [], [], []
    for kind in evidence.groups:
        run = evidence.run(kind)
        repeats = [rows for _, rows in run.curve("updates").groupby("repeat")]
        if repeats[0]["batch"].nunique() < 3:
            raise Missing(f"three batch sizes of {kind}")
        found.append(
            mean_interval([line(rows["batch"].to_numpy(), rows["seconds"].to_numpy())[2] for rows in repeats])
        )
        middle = medians(run)
        slope, constant, _ = line(middle.index.to_numpy(), middle["seconds"].to_numpy())
        notes.append(
            f"{of_run(run)}: C1 {1 / slope:.3g} images/s, C2 {1e3 * constant:.2g} ms "
            f"(the sum alone {1e3 * middle['communicated'].median():.2g} ms)"
        )
        ids.append(run.id)
    yield "linear", over_seeds([min(found, key=lambda interval: interval.mean)], ids, "; ".join(notes))


@counterfeit("isgd/eq19/linear")
def time_grows_with_the_square(evidence: Evidence) -> Evidence:
    """Twice the batch takes four times as long."""

    def edit(run: Run) -> Run:
        table = run.curve("updates")
        return forged(run, updates=table.assign(seconds=table["seconds"].max() * (table["batch"] / 3000) ** 2))

    return edited(evidence, edit, *evidence.groups)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Medians with their line, and what the sum of the gradients took within them."""
    import numpy as np

    panels = {kind: groups for kind in NETWORKS if (groups := of_network(evidence, kind))}
    every = np.ravel(figure.subplots(1, len(panels)))
    for axes, (kind, groups) in zip(every, panels.items(), strict=True):
        for position, group in enumerate(groups):
            run = evidence.run(group)
            middle, color = medians(run), f"C{position}"
            slope, constant, _ = line(middle.index.to_numpy(), middle["seconds"].to_numpy())
            label = f"{run.spec.settings['processes']} processes"
            axes.plot(middle.index, 1e3 * middle["seconds"], "o", color=color, markersize=3, label=label)
            axes.plot(middle.index, 1e3 * (slope * middle.index + constant), color=color, linewidth=0.9)
            axes.plot(middle.index, 1e3 * middle["communicated"], ":", color=color, linewidth=0.9)
        axes.set_title(NAMES[kind])
        axes.set_xlabel("batch size (images)")
        axes.legend(title="line: Eq. 19; dotted: sum alone")
    every[0].set_ylabel("time of one update (ms), measured here")


def of_network(evidence: Evidence, kind: str) -> list[str]:
    """The groups of a network's runs, named as in ``settings.NETWORKS``."""
    return [g for g, (spec, *_) in evidence.groups.items() if spec.settings["model"] == NETWORKS[kind]]


ARTIFACTS = (
    Artifact(
        "isgd/eq19",
        "Time of one update against batch size",
        settings.update_times,
        (measure,),
        draw,
        "Time of one update of several processes against batch size, with a fitted line, for two networks.",
        (7.4, 3.4),
    ),
)
