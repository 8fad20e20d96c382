"""Fig. 10: time to accuracy of the four networks, Crossbow with one and with several learners against TensorFlow.

Plain synchronous SGD of the same code stands for TensorFlow, so the paper's factors, which hold TensorFlow's overhead
too, are shown beside ours and not decided by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import as_proxy, less_time, of_device, paired, seconds_ratio
from paper_figures.crossbow.tables import arrival_table, timed_table, titled
from suite.claims.estimate import Estimate, exact, interval
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.catalogue import printed_value
from suite.report.style import GRID

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ONE_DEVICE = ("s-sgd 1", "sma 1", "sma 4")


def runs_resnet32(profile: str) -> settings.Groups:
    return settings.timed_groups(profile, *ONE_DEVICE)


def runs_vgg16(profile: str) -> settings.Groups:
    return settings.vgg16(profile)


def runs_lenet(profile: str) -> settings.Groups:
    """LeNet is what stands in for ResNet-32 below the paper's scale, where the figure needs none of its own."""
    return {} if profile == "paper" else settings.timed_groups(profile, *ONE_DEVICE)


def factor(percent_less: float) -> float:
    """How many times as fast something is that needs so many per cent less time."""
    return 1 / (1 - percent_less / 100)


def factors(reductions: Sequence[float]) -> Estimate:
    """Factors of reductions in whole per cent, with the ends that rounding leaves open."""
    low, high = ([factor(r + half) for r in reductions] for half in (-0.5, 0.5))
    return interval([factor(r) for r in reductions], low, high)


def reduction(claim: str) -> float:
    """Per cent of TensorFlow's time that the paper says it saves: ``a/m4-1gpu`` of Fig. 10(a)."""
    return printed_value(f"crossbow/fig10{claim}")


def measure_reductions(_: Evidence) -> Quantities:
    """What the reductions of section 5.2 amount to as factors, and each other."""
    best = ("a/m4-1gpu", "a/m2-8gpu", "b/best-1gpu", "b/best-8gpu", "c/m2-8gpu", "d/best-1gpu")
    yield "reductions-to-factors", exact([factor(reduction(claim)) for claim in best])
    pairs = (
        ("a/m1-8gpu", "a/m2-8gpu"),
        ("b/m1-8gpu", "b/best-8gpu"),
        ("c/m1-8gpu", "c/m2-8gpu"),
        ("d/m1-1gpu", "d/best-1gpu"),
    )
    yield "learners-gain", exact([factor(reduction(many)) / factor(reduction(one)) for one, many in pairs])
    yield "abstract-range", factors([reduction(claim) for claim in ("a/m2-8gpu", "b/best-8gpu", "c/m2-8gpu")])
    batch = settings.stand_in("paper", "sma", 1, 0).settings["batch"]
    yield "batches", exact((batch, batch * 16), note="TensorFlow's as 16 shares of 64")


def measure_resnet32(evidence: Evidence) -> Quantities:
    """Four learners against plain training on one device."""
    printed = settings.FINAL_TARGET
    ratio = seconds_ratio(evidence, 4)
    note = f"four learners take {ratio:.2f} of one learner's time per epoch here"
    saved = paired(evidence, "sma 4", "s-sgd 1", lambda x, y: less_time(x * ratio, y), note, printed=printed)
    yield "m4-1gpu", of_device(evidence, saved)


def measure_vgg16_printed(_: Evidence) -> Quantities:
    yield "speedup-intro", factors([reduction("b/best-8gpu")])


def implied_hours() -> tuple[float, float]:
    """Hours of TensorFlow and of Crossbow on ResNet-50, from a difference and a share in print."""
    saved = reduction("c/hours-saved")
    slow = saved / (reduction("c/m2-8gpu") / 100)
    return slow, slow - saved


def measure_resnet50_printed(_: Evidence) -> Quantities:
    yield "implied-hours", exact(implied_hours())
    plan = settings.RESNET50
    aggregate = plan["tensorflow"] * plan["gpus"]
    yield "batches", exact((plan["crossbow"], plan["tensorflow"], plan["gpus"], aggregate))


def measure_lenet(evidence: Evidence) -> Quantities:
    """One and several learners against plain training."""
    ratio = seconds_ratio(evidence, 4)
    note = f"four learners take {ratio:.2f} of one learner's time per epoch here"
    yield "m1-1gpu", as_proxy(paired(evidence, "sma 1", "s-sgd 1", less_time))
    yield "best-1gpu", as_proxy(paired(evidence, "sma 4", "s-sgd 1", lambda x, y: less_time(x * ratio, y), note))


def frame_resnet32(evidence: Evidence) -> pd.DataFrame:
    return against_plain(timed_table(evidence, settings.FINAL_TARGET))


def frame_lenet(evidence: Evidence) -> pd.DataFrame:
    return against_plain(timed_table(evidence, settings.LENET_TARGET))


def against_plain(table: pd.DataFrame) -> pd.DataFrame:
    """Arrivals with ``relative``: time over that of plain training with the same seed."""
    plain = table[table["group"] == titled("s-sgd 1")].set_index("seed")["time"]
    return table.assign(relative=table["time"] / table["seed"].map(plain))


def draw_relative(table: pd.DataFrame, figure: Figure, printed: Sequence[tuple[str, str, str]], instead: str) -> None:
    """Bars of one device, the printed savings as open markers, those of 8 GPUs in categories without a bar.

    ``printed``: category, claim of a saving in per cent, legend.
    """
    axes = figure.subplots()
    names = plots.bars(table, axes, "relative", floor=False)
    elsewhere = [name for name, _, _ in printed if name not in names]
    places = [*names, *elsewhere]
    values = [1 / factor(reduction(claim)) for _, claim, _ in printed]
    plots.printed_marks(axes, [places.index(name) for name, _, _ in printed], values, printed[0][2])
    axes.set_xticks(range(len(places)), [name.replace(", ", "\n") for name in places])
    axes.set_xlim(-0.6, len(places) - 0.4)
    if elsewhere:
        axes.axvline(len(names) - 0.5, color=GRID, linewidth=1, linestyle=":")
        axes.text(len(places) - 1 - len(elsewhere) / 2 + 0.5, 0.05, "not run: needs 8 GPUs", ha="center", fontsize=8)
    axes.axhline(1, color=GRID, linewidth=0.8, linestyle="-")
    plots.say_least(axes, table)
    axes.set_ylabel(f"time to {table['target'].iloc[0]:g}% / plain training's")
    plots.say_stand_in(axes, table["stand_in"].iloc[0], instead)
    plots.legend_above(axes)


def draw_resnet32(evidence: Evidence, figure: Figure) -> None:
    said = "printed, over TensorFlow"
    printed = [(titled("sma 4"), "a/m4-1gpu", said)]
    printed += [("8 GPUs, m = 1", "a/m1-8gpu", said), ("8 GPUs, m = 2", "a/m2-8gpu", said)]
    draw_relative(frame_resnet32(evidence), figure, printed, "ResNet-32")


def draw_lenet(evidence: Evidence, figure: Figure) -> None:
    said = "printed, over TensorFlow (4: best m)"
    printed = [(titled("sma 1"), "d/m1-1gpu", said), (titled("sma 4"), "d/best-1gpu", said)]
    draw_relative(frame_lenet(evidence), figure, printed, "LeNet")


def frame_vgg16(evidence: Evidence) -> pd.DataFrame:
    return arrival_table(evidence, settings.VGG_TARGET)


def draw_vgg16(evidence: Evidence, figure: Figure) -> None:
    axes, table = figure.subplots(), frame_vgg16(evidence)
    plots.bars(table, axes, "epochs")
    axes.set_ylabel(f"epochs to {table['target'].iloc[0]:g}% test accuracy")
    plots.legend_above(axes)


def frame_hours(_: Evidence) -> pd.DataFrame:
    """Hours to 53% that the printed saving implies."""
    import pandas as pd

    return pd.DataFrame({"system": ["TensorFlow", "Crossbow, m = 2"], "hours": implied_hours()})


def draw_implied_hours(evidence: Evidence, figure: Figure) -> None:
    axes, table = figure.subplots(), frame_hours(evidence)
    plots.printed_marks(axes, table["system"], table["hours"], "implied by the printed 33% and 5 h")
    axes.vlines(table["system"], 0, table["hours"], color=GRID, linewidth=1, linestyle=":")
    axes.set_ylim(0, 18)
    axes.margins(x=0.6)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("hours to 53% on 8 GPUs")
    axes.set_title("ResNet-50, the paper's numbers alone; not run: needs 8 GPUs and ImageNet", fontsize="small")
    plots.legend_above(axes, 1)


ARTIFACTS = (
    Artifact(
        "crossbow/fig10a",
        "Time to accuracy of ResNet-32: plain training, one learner, four learners",
        runs_resnet32,
        (measure_reductions, measure_resnet32),
        draw_resnet32,
        plots.ALT_BARS,
        (7.0, 4.2),
        frame_resnet32,
    ),
    Artifact(
        "crossbow/fig10b",
        "Time to accuracy of VGG-16",
        runs_vgg16,
        (measure_vgg16_printed,),
        draw_vgg16,
        plots.ALT_BARS,
        frame=frame_vgg16,
    ),
    Artifact(
        "crossbow/fig10c",
        "Time to accuracy of ResNet-50, from the printed numbers alone",
        measures=(measure_resnet50_printed,),
        draw=draw_implied_hours,
        alt="The hours that 33% and five hours imply for TensorFlow and Crossbow.",
        frame=frame_hours,
    ),
    Artifact(
        "crossbow/fig10d",
        "Time to accuracy of LeNet: plain training, one learner, four learners",
        runs_lenet,
        (measure_lenet,),
        draw_lenet,
        plots.ALT_BARS,
        (6.4, 4.2),
        frame_lenet,
    ),
)
