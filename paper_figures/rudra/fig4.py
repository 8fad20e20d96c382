"""Fig. 4: average staleness is near n under n-softsync with 30 learners, and hardly any gradient's exceeds 2n.

Fig. 4b adds when that bound breaks: the share of staler gradients against the jitter of a gradient's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.rudra.readings import counted, simulated
from paper_figures.rudra.simulations import JITTERS, SPLITS, clock, messages
from suite.claims.intervals import wilson
from suite.claims.measured import over_seeds
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.papers.counterfeits import counterfeit, rerun
from suite.papers.printed import printed, printed_value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def runs_a(profile: str) -> Groups:
    return {"1-softsync": (messages(1, 128),), "2-softsync": (messages(2, 128),)}


def runs_b(profile: str) -> Groups:
    groups = {"30-softsync": (messages(30, 128),), "n": (messages(1, 128), messages(2, 128), messages(30, 128))}
    groups |= {f"jitter {jitter}": tuple(clock(n, jitter=jitter) for n in SPLITS) for jitter in JITTERS}
    return groups


def measure_a(evidence: Evidence) -> Quantities:
    one, two = evidence.run("1-softsync"), evidence.run("2-softsync")
    yield "one-softsync-mean", simulated(one.results["mean"], one)
    yield "two-softsync-mean", simulated(two.results["mean"], two)
    yield "one-softsync-values", simulated([one.results["smallest"], one.results["largest"]], one)
    yield "two-softsync-values", simulated([two.results["smallest"], two.results["largest"]], two)
    taken = [size for run in (one, two) for size in run.results["gradients_per_update"]]
    yield "gradients-per-update", counted(taken, one, two)


def measure_b(evidence: Evidence) -> Quantities:
    run = evidence.run("30-softsync")
    yield "mass-near-30", simulated(run.results["median"], run)
    share = wilson(run.results["above_2n"], run.results["gradients"])
    yield "tail", over_seeds(share, [run.id])
    several = evidence.runs("n")
    yield "mean-n", simulated([r.results["mean"] for r in several], *several)
    yield "range-2n", simulated([run.results["smallest"], run.results["largest"]], run)


def shares_above(evidence: Evidence) -> dict[int, list[float]]:
    """By n, the share of gradients with staleness above 2n at each of the JITTERS, learners alike."""
    found: dict[int, list[float]] = {n: [] for n in SPLITS}
    for jitter in JITTERS:
        for n, run in zip(SPLITS, evidence.runs(f"jitter {jitter}"), strict=True):
            found[n].append(run.results["above_2n"] / run.results["gradients"])
    return found


@counterfeit(
    "rudra/fig4a/one-softsync-mean",
    "rudra/fig4a/two-softsync-mean",
    "rudra/fig4a/one-softsync-values",
    "rudra/fig4a/two-softsync-values",
)
def ten_softsync(evidence: Evidence) -> Evidence:
    return rerun(evidence, lambda s: {**s, "n": 10, "updates": 400, "warm_up": 100}, "1-softsync", "2-softsync")


@counterfeit("rudra/fig4b/mass-near-30", "rudra/fig4b/mean-n")
def fifteen_softsync(evidence: Evidence) -> Evidence:
    return rerun(evidence, lambda s: {**s, "n": 15, "updates": 1000, "warm_up": 300}, "30-softsync", "n")


@counterfeit("rudra/fig4b/tail", "rudra/fig4b/range-2n")
def uneven_learners(evidence: Evidence) -> Evidence:
    """A gradient's time varies by twice its mean."""

    def change(s: dict[str, Any]) -> dict[str, Any]:
        server = {**s["server"], "seconds": {**s["server"]["seconds"], "jitter": 2.0}}
        return {**s, "server": server, "updates": 3000, "warm_up": 600}

    return rerun(evidence, change, "30-softsync")


def frame_a(evidence: Evidence) -> pd.DataFrame:
    """Average staleness of updates. Columns: protocol, update, average."""
    import pandas as pd

    groups = ("1-softsync", "2-softsync")
    return pd.concat([evidence.run(name).curve("averages").assign(protocol=name) for name in groups])


def draw_a(evidence: Evidence, figure: Figure) -> None:
    import seaborn as sns

    from suite.report.style import GRID, PALETTE

    axes = figure.subplots()
    sns.lineplot(
        frame_a(evidence),
        x="update",
        y="average",
        hue="protocol",
        palette=PALETTE[:2],
        linewidth=0.8,
        errorbar=None,
        ax=axes,
    )
    for claim in ("one-softsync-mean", "two-softsync-mean"):
        said = "printed means" if claim.startswith("one") else None
        axes.axhline(printed_value(f"rudra/fig4a/{claim}"), color=GRID, linestyle="--", label=said)
    axes.set(xlabel="weight update", ylabel="average staleness (updates)", ylim=(0, 4))
    axes.legend(loc="upper right", ncols=3)


def draw_b(evidence: Evidence, figure: Figure) -> None:
    """The paper's panel, and beside it ours of when the bound breaks."""
    from suite.report.style import GRID

    left, right = figure.subplots(1, 2)
    run = evidence.run("30-softsync")
    averages, spread = run.curve("averages"), run.curve("distribution")
    left.plot(averages["update"], averages["average"], linewidth=0.5)
    for value in (printed_value("rudra/fig4b/mass-near-30"), *printed("rudra/fig4b/range-2n")[1:]):
        left.axhline(value, color=GRID, linewidth=1, linestyle="--")
    left.set(xlabel="weight update", ylabel="average staleness (updates)", ylim=(0, 65), yticks=(0, 15, 30, 45, 60))
    left.set(title="30-softsync (dashed: printed 30 and 60)")
    inset = left.inset_axes((0.45, 0.73, 0.5, 0.16))
    inset.bar(spread["staleness"], spread["gradients"] / spread["gradients"].sum(), width=1.0)
    inset.set(xlabel="staleness", ylabel="share")
    inset.tick_params(labelsize=7)
    for n, shares in shares_above(evidence).items():
        breaks = next((jitter for jitter, share in zip(JITTERS, shares, strict=True) if share > 0), None)
        name = f"n = {n}" if breaks is None else f"n = {n}, from {breaks:.0%}"
        floored = [max(share, 1e-6) for share in shares]  # for the logarithmic axis
        right.plot([100 * jitter for jitter in JITTERS], floored, marker="o", markersize=3, label=name)
    right.axhline(1e-4, color="0.5", linewidth=0.8, linestyle="--")
    right.set(yscale="log", xlabel="jitter of a gradient's time (%)", title="ours: share staler than 2n")
    right.legend(fontsize=8)


ARTIFACTS = (
    Artifact(
        "rudra/fig4a",
        "Average staleness under 1-softsync and 2-softsync",
        runs_a,
        (measure_a,),
        draw_a,
        alt="Average staleness against weight updates: 1-softsync stays near 1, 2-softsync near 2.",
        frame=frame_a,
    ),
    Artifact(
        "rudra/fig4b",
        "Average staleness under lambda-softsync, its distribution, and when the bound 2n breaks",
        runs_b,
        (measure_b,),
        draw_b,
        alt="Left: staleness of 30-softsync near 29 with its distribution; right: share above 2n against jitter.",
        size=(9.0, 4.0),
    ),
)
