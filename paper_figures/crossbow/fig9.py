"""Fig. 9: accuracy of the four networks against epochs with TensorFlow, which sets the targets of section 5.

Plain synchronous SGD of the same code stands for TensorFlow.
"""

from __future__ import annotations

from functools import partial

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import WINDOW, accuracies, accuracy_table, medians, spread, stand_in
from suite.claims.intervals import Interval
from suite.papers.figure import Artifact, Figure, Frame, Groups, Missing, pd, printed

TRAINED = {  # by part of the figure: network, the printed target, its runs
    "a": ("LeNet", settings.LENET_TARGET, settings.lenet_target),
    "b": ("ResNet-32", settings.FINAL_TARGET, lambda profile: settings.resnet32(profile, "s-sgd 1")),
    "c": ("VGG-16", settings.VGG_TARGET, settings.vgg16),
}


def runs(part: str, profile: str) -> Groups:
    """Plain training as the group ``plain``."""
    found = TRAINED[part][2](profile)
    return settings.called(found, {"plain": next((name for name in found if name.startswith("s-sgd")), "")})


def panel(part: str) -> Artifact:
    return Artifact(
        f"crossbow/fig9{part}",
        f"Training and test accuracy of {TRAINED[part][0]}, plain training",
        partial(runs, part),
        alt=plots.ALT_CURVES,
        size=(7.4, 3.8),
    )


LENET, RESNET32, VGG16 = map(panel, TRAINED)
RATE = Artifact("crossbow/fig9d", "Learning rate of ResNet-50, the part of the figure that needs no ImageNet")


def target(frame: Frame) -> Interval:
    """The best that plain training reaches (%), as the metric sees it: the median of five epochs."""
    curves = accuracies(frame, "plain")
    if any(len(curve) < WINDOW for curve in curves):
        raise Missing(f"lacks a run of {WINDOW} epochs, which the metric takes")
    return spread(100 * medians(curve).max() for curve in curves)


def draw(part: str, frame: Frame, figure: Figure) -> None:
    network, printed_target, _ = TRAINED[part]
    plots.curves(frame, figure.subplots(), printed_target, instead=network, training=True)


for part, each in zip(TRAINED, (LENET, RESNET32, VGG16), strict=True):
    each.quantity("target", ["plain"], note=lambda frame: stand_in(frame, "plain"))(target)
    each.drawing(partial(draw, part))
    each.table(accuracy_table)


@RATE.table
def schedule(frame: Frame) -> pd.DataFrame:
    """The rate from each epoch on; the last row ends the training."""
    first, second = settings.RESNET50_DROPS
    return pd.DataFrame({"epoch": [0, first, second, 90], "rate": [0.1, 0.01, 0.001, 0.001]})


@RATE.drawing
def draw_schedule(frame: Frame, figure: Figure) -> None:
    """The learning rate falls tenfold at epochs 30 and 60."""
    axes, table = figure.subplots(), schedule(frame)
    axes.step(table["epoch"], table["rate"], where="post", label="ours")
    drops = printed("crossbow/fig9d/lr-schedule")
    plots.printed_marks(axes, drops, table["rate"][1:3], "printed epochs of the drops")
    axes.set(yscale="log", xlabel="epoch", ylabel="learning rate (resnet-50.sh starts at 0.1)")
    axes.set_title("Learning rate of ResNet-50; accuracy not run: needs ImageNet", fontsize="small")
    axes.legend()
