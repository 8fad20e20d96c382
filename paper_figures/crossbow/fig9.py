"""Fig. 9: accuracy of the four networks against epochs with TensorFlow, which sets the targets of section 5.

Plain synchronous SGD of the same code stands for TensorFlow.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import accuracies, described, ids, short, spread
from paper_figures.crossbow.tables import accuracy_table
from suite.claims.estimate import exact
from suite.model_averaging.time_to_accuracy import WINDOW
from suite.papers.artifact import Artifact, Evidence, Missing, Quantities
from suite.papers.catalogue import printed
from suite.papers.counterfeits import counterfeit, edited, forged

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from suite.runs.store import Run


def runs_lenet(profile: str) -> settings.Groups:
    return settings.lenet_target(profile)


def runs_resnet32(profile: str) -> settings.Groups:
    return settings.resnet32(profile, "s-sgd 1")


def runs_vgg16(profile: str) -> settings.Groups:
    return {name: runs for name, runs in settings.vgg16(profile).items() if name == "s-sgd 1"}


def measure_target(evidence: Evidence) -> Quantities:
    """The best that plain training reaches, as the metric sees it: the median of five epochs."""
    group = next(iter(evidence.groups), "s-sgd 1")
    rows = [accuracies(run) for run in evidence.runs(group)]
    if any(len(row) < WINDOW for row in rows):
        raise Missing(f"{WINDOW} epochs, which the metric takes")
    best = [100 * max(median(row[i : i + WINDOW]) for i in range(len(row) - WINDOW + 1)) for row in rows]
    yield "target", spread(best, ids(evidence, group), described(evidence, group, None), proxy=short(evidence))


@counterfeit("crossbow/fig9a/target")
def two_points_worse(evidence: Evidence) -> Evidence:
    """Plain training errs on two more test images in a hundred at every evaluation."""

    def edit(run: Run) -> Run:
        table = run.curve("evaluations")
        return forged(run, evaluations=table.assign(test_error=table["test_error"] + 0.02))

    return edited(evidence, edit, *evidence.groups)


def measure_resnet32_schedule(_: Evidence) -> Quantities:
    """Read back from the specification of a training run."""
    spec = settings.stand_in("paper", "s-sgd", 1, 0)
    epoch = spec.settings["evaluate"]["every"]
    (first, fall), (second, _) = spec.settings["drops"]
    yield "lr-schedule", exact((fall, first / epoch, second / epoch))


def measure_vgg16_schedule(_: Evidence) -> Quantities:
    """Read back from the specification of a training run."""
    spec = settings.vgg16("paper")["s-sgd 1"][0]
    (first, fall), (second, again) = spec.settings["drops"][:2]
    epoch = spec.settings["evaluate"]["every"]
    assert again / fall == fall, "every halving is the same factor"
    assert second == 2 * first, "halvings are equally far apart"
    yield "lr-schedule", exact((fall, first / epoch))


def measure_resnet50_schedule(_: Evidence) -> Quantities:
    yield "lr-schedule", exact(settings.RESNET50_DROPS)


def draw_lenet(evidence: Evidence, figure: Figure) -> None:
    plots.curves(evidence, figure.subplots(), settings.LENET_TARGET, instead="LeNet", training=True)


def draw_resnet32(evidence: Evidence, figure: Figure) -> None:
    plots.curves(evidence, figure.subplots(), settings.FINAL_TARGET, training=True)


def draw_vgg16(evidence: Evidence, figure: Figure) -> None:
    plots.curves(evidence, figure.subplots(), settings.VGG_TARGET, instead="VGG-16", training=True)


def frame_schedule(_: Evidence) -> pd.DataFrame:
    """The rate from each epoch on; the last row ends the training."""
    import pandas as pd

    first, second = settings.RESNET50_DROPS
    return pd.DataFrame({"epoch": [0, first, second, 90], "rate": [0.1, 0.01, 0.001, 0.001]})


def draw_resnet50_schedule(evidence: Evidence, figure: Figure) -> None:
    axes, table = figure.subplots(), frame_schedule(evidence)
    axes.step(table["epoch"], table["rate"], where="post", label="ours")
    drops = printed("crossbow/fig9d/lr-schedule")
    plots.printed_marks(axes, drops, table["rate"][1:3], "printed epochs of the drops")
    axes.set_yscale("log")
    axes.set(xlabel="epoch", ylabel="learning rate (resnet-50.sh starts at 0.1)")
    axes.set_title("Learning rate of ResNet-50; accuracy not run: needs ImageNet", fontsize="small")
    axes.legend()


ARTIFACTS = (
    Artifact(
        "crossbow/fig9a",
        "Training and test accuracy of LeNet, plain training",
        runs_lenet,
        (measure_target,),
        draw_lenet,
        plots.ALT_CURVES,
        (7.4, 3.8),
        accuracy_table,
    ),
    Artifact(
        "crossbow/fig9b",
        "Training and test accuracy of ResNet-32, plain training",
        runs_resnet32,
        (measure_resnet32_schedule, measure_target),
        draw_resnet32,
        plots.ALT_CURVES,
        (7.4, 3.8),
        accuracy_table,
    ),
    Artifact(
        "crossbow/fig9c",
        "Training and test accuracy of VGG-16, plain training",
        runs_vgg16,
        (measure_vgg16_schedule, measure_target),
        draw_vgg16,
        plots.ALT_CURVES,
        (7.4, 3.8),
        accuracy_table,
    ),
    Artifact(
        "crossbow/fig9d",
        "Learning rate of ResNet-50, the part of the figure that needs no ImageNet",
        measures=(measure_resnet50_schedule,),
        draw=draw_resnet50_schedule,
        alt="The learning rate falls tenfold at epochs 30 and 60.",
        frame=frame_schedule,
    ),
)
