"""Algorithm 2: the auto-tuner adds a learner while throughput rises and takes one away when it falls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import ids, late_arrival, on_gpu, require, results, spread, telling
from paper_figures.crossbow.tables import stored
from suite.claims.estimate import over_seeds, point
from suite.claims.intervals import mean_interval
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit, exchanged, genuine

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TRAINED = {"growing": "1, then 2, then 4 learners", "followed": "4 learners throughout"}


def runs(profile: str) -> settings.Groups:
    return {
        "tuner": (settings.TUNER,),
        "algebra": (settings.ALGEBRA,),
        **settings.throughput(profile),
        **settings.followed(profile),
    }


def measure_rule(evidence: Evidence) -> Quantities:
    """The rule on scripted throughputs."""
    return results(
        evidence,
        "tuner",
        {
            "starts-at-one": "starts_at",
            "adds-first": "after_first",
            "adds-on-rise": "on_rise",
            "removes-on-fall": "on_fall",
            "holds-on-plateau": "on_plateau",
            "finds-peak": "literal_distance",
        },
    )


@counterfeit(
    "crossbow/alg2/adds-first",
    "crossbow/alg2/adds-on-rise",
    "crossbow/alg2/removes-on-fall",
    "crossbow/alg2/holds-on-plateau",
    "crossbow/alg2/finds-peak",
)
def rule_reversed(evidence: Evidence) -> Evidence:
    """A rise takes a learner away, a fall and a plateau add one; the walk ends far from a peak at eight."""
    said = {"after_first": 0, "on_rise": -1, "on_fall": 1, "on_plateau": [1, 1, 1], "literal_distance": 8}
    return telling(evidence, "tuner", **said)  # type: ignore[arg-type]


def measure_newcomer(evidence: Evidence) -> Quantities:
    return results(evidence, "algebra", {"new-replica-from-average": "newcomer"})


@counterfeit("crossbow/alg2/new-replica-from-average")
def newcomer_copies_a_replica(evidence: Evidence) -> Evidence:
    """A new replica is as far from the average as two replicas are at least from each other."""
    return telling(evidence, "algebra", newcomer=evidence.run("algebra").results["least_distance"])


def measure_change(evidence: Evidence) -> Quantities:
    """The longest change of the number of learners: milliseconds, and iterations of one learner here."""
    for name in settings.throughput(evidence.profile):
        run = evidence.run(name)
        require("resize_seconds" in run.results, "a throughput run that keeps the seconds of a change")
        share = run.results["resize_over_iteration"]
        note = f"{name}: {share:.2f} of one learner's iteration, on {'a GPU' if on_gpu(run) else 'a CPU'}"
        yield "milliseconds", point(1000 * run.results["resize_seconds"], proxy=True, runs=[run.id], note=note)


def measure_few_first(evidence: Evidence) -> Quantities:
    """Growing from 1 to 4 learners against 4 throughout: epochs to 99%, below the paper's scale a proxy of them."""
    pairs = list(zip(evidence.runs("growing"), evidence.runs("followed"), strict=True))
    if evidence.profile == "paper":
        found = [[late_arrival(1 - run.curve("models")["centre_error"]) for run in pair] for pair in pairs]
        said = "; ".join(f"{grown:g} growing, {fixed:g} throughout" for grown, fixed in found)
        steps = mean_interval([fixed - grown for grown, fixed in found])
        yield "few-first", over_seeds(steps, ids(evidence, "growing", "followed"), f"epochs by seed: {said}")
        return
    errors = [[run.curve("models")["centre_error"].mean() for run in pair] for pair in pairs]
    gained = [100 * float(fixed - grown) for grown, fixed in errors]
    note = "points of mean test error over five epochs, in place of epochs"
    yield "few-first", spread(gained, ids(evidence, "growing", "followed"), note, proxy=True)


@counterfeit("crossbow/alg2/few-first")
@genuine("crossbow/alg2/few-first")
def growing_changes_places(evidence: Evidence) -> Evidence:
    return exchanged(evidence, "growing", "followed")


def trainings(evidence: Evidence) -> pd.DataFrame:
    """A row per epoch of every training: accuracy (%) of the average model; none where one kind is not stored."""
    import pandas as pd

    rows = [
        {"group": said, "seed": run.spec.seed, "epoch": epoch, "test": 100 * (1 - error)}
        for group, said in TRAINED.items()
        if all(stored(evidence, name) for name in TRAINED)
        for run in evidence.runs(group)
        for epoch, error in run.curve("models")[["epoch", "centre_error"]].itertuples(index=False)
    ]
    return pd.DataFrame(rows, columns=["group", "seed", "epoch", "test"])


def frame(evidence: Evidence) -> pd.DataFrame:
    """Rows of the walks of both rules with a peak at 4 learners, then those of the trainings."""
    import pandas as pd

    walks = evidence.run("tuner").curve("walks")
    return pd.concat([walks[walks["peak"] == 4], trainings(evidence)], ignore_index=True)


def draw(evidence: Evidence, figure: Figure) -> None:
    """Learners after each reading, both rules, with a peak at 4; and what few learners at first gain."""
    table = frame(evidence)
    trained = table.dropna(subset="epoch")
    axes, *beside = figure.subplots(1, 1 if trained.empty else 2, squeeze=False)[0]
    for rule, rows in table.groupby("rule"):
        axes.step(rows["reading"], rows["learners"], where="post", label=str(rule))
    axes.axhline(4, color="0.5", linewidth=0.8, linestyle=":")
    axes.locator_params(axis="y", integer=True)
    axes.set_xlabel("reading of the throughput")
    axes.set_ylabel("learners")
    axes.legend()
    for panel in beside:
        plots.growing(trained, panel, 100 * settings.LENET_TARGET)


ARTIFACTS = (
    Artifact(
        "crossbow/alg2",
        "Choosing the number of learners per GPU from throughput",
        runs,
        (measure_rule, measure_newcomer, measure_change, measure_few_first),
        draw,
        "Algorithm 2 cycles around a peak at four learners; the settling rule stops there. Where LeNet was trained "
        "with one learner that becomes four, and with four throughout: test accuracy against epochs of both.",
        (8.6, 4.0),
        frame,
    ),
)
