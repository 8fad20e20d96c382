"""The protocols (section 3.1), their staleness (Figs. 4a and 4b) and Equations 1-7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paper_figures.rudra.readings import error_steps, errors, label, training_groups
from paper_figures.rudra.settings import BASE_RATE, collect, rate
from paper_figures.rudra.simulations import JITTERS, SLOW, clock, identities, messages
from suite.claims.measured import exact, point
from suite.papers.artifact import Artifact, Evidence, Groups, Quantities
from suite.runs.store import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPLITS = (1, 2, 4, 30)  # n with 30 learners


def counted(value: Any, *runs: Run) -> Any:
    """A deterministic property counted in simulated runs."""
    return exact(value, runs=[run.id for run in runs])


def simulated(value: Any, *runs: Run, **more: Any) -> Any:
    return point(value, kind="simulated", runs=[run.id for run in runs], **more)


# --- Figs. 4a and 4b


def fig4a_runs(profile: str) -> Groups:
    return {"1-softsync": (messages(1, 128),), "2-softsync": (messages(2, 128),)}


def fig4a(evidence: Evidence) -> Quantities:
    one, two = evidence.run("1-softsync"), evidence.run("2-softsync")
    yield "one-softsync-mean", simulated(one.results["mean"], one)
    yield "two-softsync-mean", simulated(two.results["mean"], two)
    yield "one-softsync-values", simulated([one.results["smallest"], one.results["largest"]], one)
    yield "two-softsync-values", simulated([two.results["smallest"], two.results["largest"]], two)
    taken = [size for run in (one, two) for size in run.results["gradients_per_update"]]
    yield "gradients-per-update", counted(taken, one, two)


def draw_fig4a(evidence: Evidence, figure: Figure) -> None:
    axes = figure.subplots()
    for group in ("1-softsync", "2-softsync"):
        table = evidence.run(group).curve("averages")
        axes.plot(table["update"], table["average"], linewidth=0.8, label=group)
    axes.set(xlabel="weight update", ylabel="average staleness (updates)", ylim=(0, None))
    axes.legend()


def fig4b_runs(profile: str) -> Groups:
    groups = {"30-softsync": (messages(30, 128),), "n": (messages(1, 128), messages(2, 128), messages(30, 128))}
    groups |= {f"jitter {jitter}": tuple(clock(n, jitter=jitter) for n in SPLITS) for jitter in JITTERS}
    return groups


def fig4b(evidence: Evidence) -> Quantities:
    from suite.claims.intervals import wilson

    run = evidence.run("30-softsync")
    yield "mass-near-30", simulated(run.results["median"], run)
    share = wilson(run.results["above_2n"], run.results["gradients"])
    from suite.claims.measured import interval

    yield (
        "tail",
        interval(share.mean, share.low, share.high, kind="simulated", n=share.n, runs=[run.id]),
    )
    several = evidence.runs("n")
    yield "mean-n", simulated([r.results["mean"] for r in several], *several)
    yield "range-2n", simulated([run.results["smallest"], run.results["largest"]], run)


def jitter_table(evidence: Evidence) -> list[tuple[float, int, float]]:
    """(jitter, n, share of gradients with staleness above 2n), learners alike."""
    found = []
    for jitter in JITTERS:
        for n, run in zip(SPLITS, evidence.runs(f"jitter {jitter}"), strict=True):
            found.append((jitter, n, run.results["above_2n"] / run.results["gradients"]))
    return found


def breaking_jitter(evidence: Evidence) -> dict[int, float | None]:
    """By n, the least jitter of the grid at which some gradient is staler than 2n."""
    table = jitter_table(evidence)
    return {n: next((j for j, m, share in table if m == n and share > 0), None) for n in SPLITS}


def draw_fig4b(evidence: Evidence, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    run = evidence.run("30-softsync")
    averages, spread = run.curve("averages"), run.curve("distribution")
    left.plot(averages["update"], averages["average"], linewidth=0.5)
    left.set(xlabel="weight update", ylabel="average staleness (updates)", ylim=(0, 65), title="30-softsync")
    inset = left.inset_axes((0.42, 0.1, 0.55, 0.32))
    inset.bar(spread["staleness"], spread["gradients"] / spread["gradients"].sum(), width=1.0)
    inset.set(xlabel="staleness", ylabel="share")
    inset.tick_params(labelsize=7)
    table, breaking = jitter_table(evidence), breaking_jitter(evidence)
    for n in SPLITS:
        points = [(100 * j, max(share, 1e-6)) for j, m, share in table if m == n]
        breaks = breaking[n]
        name = f"n = {n}" if breaks is None else f"n = {n}, from {breaks:.0%}"
        right.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
    right.axhline(1e-4, color="0.5", linewidth=0.8, linestyle="--")
    right.set(yscale="log", xlabel="jitter of a gradient's time (%)", title="share staler than 2n")
    right.legend(fontsize=8)


# --- algorithms


def protocol_runs(profile: str) -> Groups:
    """Learners that are alike but for a jitter of 5%."""
    return {
        "hardsync": (clock(0),),
        "async": (clock(30),),
        "n": tuple(clock(n) for n in SPLITS),
        "one learner": (clock(1, learners=1, gradients=2_000),),
        "stalled": (clock(30, slow=SLOW),),
        "identities": (identities(),),
    }


def alg_hardsync(evidence: Evidence) -> Quantities:
    run, same = evidence.run("hardsync"), evidence.run("identities")
    yield "staleness-zero", counted(run.results["largest"], run)
    yield "equals-large-batch", exact(same.results["hardsync_large_batch"], runs=[same.id])
    given = run.results["gradients_by_learner"]
    updates = run.spec.settings["updates"]
    yield "one-gradient-each", counted([min(given) / updates, max(given) / updates], run)


def hardsync_rates(evidence: Evidence) -> Quantities:
    yield "lr-sqrt", exact([rate(0, 128, 1) / BASE_RATE, rate(0, 4, 30) / BASE_RATE, rate(0, 128, 30) / BASE_RATE])


def alg_async(evidence: Evidence) -> Quantities:
    run, stalled = evidence.run("async"), evidence.run("stalled")
    yield "one-gradient-one-update", counted(run.spec.settings["updates"] / run.results["gradients"], run)
    yield "unbounded", counted(float(stalled.results["largest"] > 2 * 30), stalled)


def alg_softsync(evidence: Evidence) -> Quantities:
    several, one = evidence.runs("n"), evidence.run("one learner")
    same = evidence.run("identities")
    yield "c-formula", counted([size for run in several for size in run.results["gradients_per_update"]], *several)
    yield "n-lambda-is-async", exact(same.results["async"], runs=[same.id])
    ends = [run.results[end] / n for n, run in zip(SPLITS, several, strict=True) for end in ("smallest", "largest")]
    yield "range", simulated([min(ends), max(ends)], *several)
    means = [run.results["mean"] for run in several]
    yield "mean", simulated([mean / n for n, mean in zip(SPLITS, means, strict=True)], *several)
    yield "mean-exact", simulated(means, *several)
    yield "lambda1", counted(one.results["largest"], one)
    first = several[0]
    yield (
        "one-softsync-not-hardsync",
        counted(first.results["uneven_updates"] / first.spec.settings["updates"], first),
    )
    yield "n1-min-staleness", simulated([means[1] - means[0], means[3] - means[1]], *several)


def alg_clock(evidence: Evidence) -> Quantities:
    runs = (*evidence.runs("hardsync"), *evidence.runs("n"))
    # every update is checked to have the timestamp that follows the last one's, from 0 on
    steps = 1.0 + max(run.results["out_of_step"] for run in runs)
    yield "increment", counted([0.0 if steps == 1 else 1.0, steps], *runs)
    yield "non-negative", counted(min(run.results["smallest"] for run in runs), *runs)
    yield "clock-below", counted(max(run.results["clock_above"] for run in runs), *runs)


# --- equations


def eq1(evidence: Evidence) -> Quantities:
    run = evidence.run("identities")
    yield "batch-gd", exact(run.results["full_batch"], runs=[run.id])


def eq2(evidence: Evidence) -> Quantities:
    hard = evidence.run("hardsync")
    yield "zero-hardsync", counted(float(abs(hard.curve("averages")["average"]).max()), hard)
    worst = 0.0
    runs = evidence.runs("n")
    for run in runs:
        worst = max(worst, run.results["average_gap"])
    yield "mean-of-sigma", counted(worst, *runs)


def eq3(evidence: Evidence) -> Quantities:
    run = evidence.run("identities")
    yield "average", exact(run.results["hardsync_mean"], runs=[run.id])


def eq4(evidence: Evidence) -> Quantities:
    run = evidence.run("identities")
    yield "single", exact(run.results["async_single"], runs=[run.id])


def eq5(evidence: Evidence) -> Quantities:
    yield "c-one", exact(collect(30, 30))
    yield "c-lambda", exact(collect(1, 30) / 30)


def eq6(evidence: Evidence) -> Quantities:
    yield "n30", exact(rate(30, 128, 30))
    yield "n1", exact(rate(1, 128, 30))


def eq6_needed(evidence: Evidence) -> Quantities:
    from paper_figures.rudra.readings import runs_of, sampling

    divided, undivided = errors(evidence, "alpha0/30"), errors(evidence, "alpha0")
    chance = 90.0
    held = [b >= chance - 1 and a + sampling(a) < chance - 1 for a, b in zip(divided, undivided, strict=True)]
    ids = [run.id for group in ("alpha0/30", "alpha0") for run in runs_of(evidence, group)]
    yield "needed", point(sum(held) / len(held), kind="measured", n=len(held), runs=ids)


def modulation_runs(profile: str) -> Groups:
    """30-softsync at mu = 128 with both rates; 4-softsync too at full size."""
    found = training_groups(profile, [(30, 128, 30), (4, 128, 30)])
    groups = {}
    from paper_figures.rudra.settings import at_profile

    for n in (30, 4):
        name = label((n, 128, 30))
        if name in found:
            suffix = "" if n == 30 else " of 4-softsync"
            groups[f"alpha0/{n}"] = found[name]
            groups[f"alpha0{suffix}"] = at_profile((n, 128, 30), profile, modulated=False)
    return groups


def eq7(evidence: Evidence) -> Quantities:
    run = evidence.run("identities")
    yield "identity", exact(run.results["two_level_mean"], runs=[run.id])


def eq7_runs(profile: str) -> Groups:
    return {"identities": (identities(),), **training_groups(profile, [(0, 128, 1), (0, 4, 30)])}


def eq7_error(evidence: Evidence) -> Quantities:
    yield "same-error", error_steps(evidence, ["(0, 128, 1)", "(0, 4, 30)"])


PROTOCOL_ARTIFACTS = (
    Artifact(
        "rudra/fig4a",
        "Average staleness under 1-softsync and 2-softsync",
        fig4a_runs,
        (fig4a,),
        draw_fig4a,
        alt="Average staleness against weight updates: 1-softsync stays near 1, 2-softsync near 2.",
    ),
    Artifact(
        "rudra/fig4b",
        "Average staleness under lambda-softsync, its distribution, and when the bound 2n breaks",
        fig4b_runs,
        (fig4b,),
        draw_fig4b,
        alt="Left: staleness of 30-softsync near 29 with its distribution; right: share above 2n against jitter.",
        size=(9.0, 4.0),
    ),
)
ALGORITHM_ARTIFACTS = (
    Artifact("rudra/alg-hardsync", "Hardsync", protocol_runs, (alg_hardsync, hardsync_rates)),
    Artifact("rudra/alg-async", "Async", protocol_runs, (alg_async,)),
    Artifact("rudra/alg-softsync", "n-softsync", protocol_runs, (alg_softsync,)),
    Artifact("rudra/alg-clock", "Timestamps and the vector clock", protocol_runs, (alg_clock,)),
    Artifact("rudra/eq1", "Mini-batch gradient descent", protocol_runs, (eq1,)),
    Artifact("rudra/eq2", "Average staleness of an update", protocol_runs, (eq2,)),
    Artifact("rudra/eq3", "Hardsync's update", protocol_runs, (eq3,)),
    Artifact("rudra/eq4", "Async's update", protocol_runs, (eq4,)),
    Artifact("rudra/eq5", "n-softsync's update", measures=(eq5,)),
    Artifact("rudra/eq6", "The rate divided by staleness", modulation_runs, (eq6, eq6_needed)),
    Artifact("rudra/eq7", "Hardsync depends on mu lambda alone", eq7_runs, (eq7, eq7_error)),
)
