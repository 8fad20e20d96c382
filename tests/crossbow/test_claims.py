"""Every artifact and claim has an entry, and what a small machine can decide is decided by the smoke runs."""

from __future__ import annotations

import contextlib

import pytest
from fabricated_trainings import MAKERS, Fabricated

from paper_figures import crossbow
from paper_figures.crossbow import fig8, settings
from suite.claims.judge import FIGURE
from suite.papers.artifact import Evidence, Missing
from suite.papers.catalogue import entries
from suite.papers.verdicts import verdicts
from suite.runner.execute import RunnerConfig, execute
from suite.runs.archive import Layered
from suite.runs.store import Store

DECIDED_ELSEWHERE = {
    "crossbow/alg1/momentum-helps-many",
    "crossbow/alg1/average-better",
    "crossbow/alg-memory/linear",  # ResNet-32: the paper profile
    "crossbow/alg2/few-first",  # LeNet on all of MNIST, likewise
    "crossbow/fig9a/target",
    *(f"crossbow/lenet/{claim}-{k}" for claim in ("s-sgd", "ea-sgd", "epochs-kept") for k in (4, 16)),
}
EXACT = (settings.ALGEBRA, settings.TASKS, settings.TUNER, settings.SIZES)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """The runs that need no training, computed once."""
    path = tmp_path_factory.mktemp("crossbow") / "store"
    for spec in EXACT:
        report = execute(spec, crossbow.EXPERIMENTS.__getitem__, RunnerConfig(path))
        assert report.state == "stored", report
    return Store(path)


def test_every_entry_belongs_to_an_artifact():
    assert {entry.artifact for entry in entries("crossbow")} <= {artifact.id for artifact in crossbow.PAPER.artifacts}


def test_small_claims_are_decided_without_training(store):
    found = verdicts(
        crossbow.PAPER, store, profile="smoke", claims=[e for e in entries("crossbow") if e.kind != FIGURE]
    )
    small = [v for v in found if v.claim.profile == "smoke" and v.claim.needs in ("nothing", "cpu-small")]
    small = [v for v in small if v.claim.id not in DECIDED_ELSEWHERE]
    assert small
    undecided = [(v.claim.id, v.why) for v in small if v.verdict in ("not run", "inconclusive", "not reproduced")]
    assert undecided == []
    assert not [v.claim.id for v in found if v.red]


def test_the_tuners_trial(store):
    """Algorithm 2 cycles next to the peak, and loses every learner under 0.5% noise; the settling rule does not."""
    found = store.read(settings.TUNER.id).results
    assert found["literal_distance"] == 1
    assert found["literal_lost"] >= 0.99
    assert found["settled"] >= 0.99
    assert found["settling_runs"] == 1000


@pytest.mark.parametrize("gpus", [2, 3, 5, 8])
def test_the_ring_sums_everything_and_shares_the_work(gpus):
    data, sums = fig8.ring(gpus, 4 * gpus)
    whole = [sum((g + 1) * (i + 3) for g in range(gpus)) for i in range(4 * gpus)]
    assert data == [whole] * gpus
    assert sums == [4 * (gpus - 1)] * gpus


def draw(artifact, source, profile):
    figure_module = pytest.importorskip("matplotlib.figure")
    figure = figure_module.Figure(figsize=artifact.size)
    artifact.draw(Evidence(source, artifact.runs(profile), profile), figure)
    assert any(axes.has_data() or axes.texts for axes in figure.axes), artifact.id  # diagrams are text and arrows
    return figure


def test_drawings_come_from_the_runs(store):
    """All figures that the exact runs support are drawn; the others say what is missing."""
    drawn = set()
    for artifact in crossbow.PAPER.artifacts:
        if artifact.draw is not None:
            with contextlib.suppress(Missing):
                draw(artifact, store, "smoke")
                drawn.add(artifact.id.partition("/")[2])
    diagrams = {"fig1", "fig4", "fig5", "fig6", "fig7", "fig8"}
    assert diagrams | {"fig13a", "fig14b", "fig17", "fig9d", "fig10c", "alg2"} <= drawn
    assert not {"fig9a", "fig10a", "fig12a", "fig13c", "fig15"} & drawn


WITHOUT_RUNS = {
    "reduced": {"fig9c", "fig10b", "fig11b", "fig11d", "fig14c", "lenet"},
    "paper": {"fig10d"},
}  # VGG-16; LeNet
MODEL_FREE = {"crossbow/alg1/momentum-helps-many", "crossbow/alg1/average-better"}  # statements that name no model


@pytest.fixture(scope="module", params=["reduced", "paper"])
def complete(request, store):
    """A profile, and a source that holds all its runs, made up but for the exact ones."""
    groups = [runs for artifact in crossbow.PAPER.artifacts for runs in artifact.runs(request.param).values()]
    specs = {spec for runs in groups for spec in runs if spec.experiment in MAKERS}
    return request.param, Layered([store, Fabricated(specs)])


@pytest.mark.evidence
def test_every_drawing_works_with_all_runs_of_a_profile(complete):
    profile, source = complete
    for artifact in crossbow.PAPER.artifacts:
        if artifact.draw is None:
            continue
        if artifact.id.partition("/")[2] in WITHOUT_RUNS[profile]:
            with pytest.raises(Missing):
                draw(artifact, source, profile)
        else:
            figure = draw(artifact, source, profile)
            plotted = [axes for axes in figure.axes if axes.axison]  # diagrams have no axes to name
            assert all(axes.get_xlabel() or axes.get_ylabel() for axes in plotted), artifact.id
            if artifact.frame is not None:
                assert len(artifact.frame(Evidence(source, artifact.runs(profile), profile))), artifact.id


@pytest.mark.evidence
def test_what_is_trained_below_the_papers_scale_is_a_proxy(complete):
    profile, source = complete
    trained = 0
    for artifact in crossbow.PAPER.artifacts:
        evidence = Evidence(source, artifact.runs(profile), profile)
        for measure in artifact.measures:
            with contextlib.suppress(Missing):
                for name, found in measure(evidence):
                    claim = f"{artifact.id}/{name}"
                    experiments = {source.read(run).spec.experiment for run in found.runs}
                    if "train" in experiments and claim not in MODEL_FREE:
                        assert found.proxy or profile == "paper", claim
                        trained += 1
    assert trained >= 15


def test_multi_gpu_statistics_are_replicas():
    """8 GPUs with m learners are 8 m workers of one run, reading the same batches as plain training."""
    runs = settings.groups("paper", "sma 16", "s-sgd 16")
    sma, plain = runs["sma 16"][0].settings, runs["s-sgd 16"][0].settings
    assert sma["workers"] == 16
    for same in ("data", "augment", "model", "descent", "rate", "batch", "workers", "order", "updates"):
        assert sma[same] == plain[same]
    assert sma["restart"]
    assert not plain["restart"]
