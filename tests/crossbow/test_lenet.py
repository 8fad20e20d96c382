"""LeNet to 99% on all of MNIST: what is registered, and each measure on curves whose arrivals are known."""

from __future__ import annotations

import pandas as pd
import pytest

from paper_figures.crossbow import alg2, lenet, settings
from suite.claims.intervals import mean_interval
from suite.papers.artifact import Evidence, Missing

LENGTH = settings.LENET_LENGTH


class Scripted:
    """A stored run that passes 99% for good in one epoch."""

    def __init__(self, spec, passed):
        self.id, self.spec, self.files, self.environment = spec.id, spec, {}, {}
        errors = [0.02 if epoch < passed else 0.005 for epoch in range(1, LENGTH + 1)]
        self.tables = {
            "evaluations": pd.DataFrame({"update": range(LENGTH + 1), "test_error": [0.9, *errors]}),
            "models": pd.DataFrame({"epoch": range(1, LENGTH + 1), "centre_error": errors}),
        }

    def curve(self, name):
        return self.tables[name]


def evidence(groups, passed):
    """The groups whose epochs of passing are given, by seed; the metric's median follows two epochs later."""
    runs = {
        spec.id: Scripted(spec, epoch)
        for name, epochs in passed.items()
        for spec, epoch in zip(groups[name], epochs, strict=True)
    }

    class Source:
        @staticmethod
        def read(run_id):
            return runs[run_id]

        @staticmethod
        def ids():
            return set(runs)

    return Evidence(Source, groups, "paper")


def test_all_methods_read_the_same_batches_at_one_rate():
    groups = settings.lenet("paper")
    assert set(groups) == {
        *(f"sma {k}" for k in (1, 2, 4, 8, 16)),
        *(f"{rival} {k}" for rival in ("s-sgd", "ea-sgd") for k in (2, 4, 8, 16)),
    }
    for name, specs in groups.items():
        k = int(name.split()[1])
        assert [spec.seed for spec in specs] == [0, 1, 2]
        for spec in specs:
            assert spec.settings["data"] == settings.MNIST
            assert (spec.settings["rate"], spec.settings["batch"], spec.settings["workers"]) == (0.01, 16, k)
            assert spec.settings["updates"] == LENGTH * (60_000 // (16 * k))
    assert settings.lenet("reduced") == settings.lenet("smoke") == {}


def test_epochs_saved_are_paired_by_seed_and_late_arrivals_bounded():
    groups = settings.lenet("paper")
    seen = evidence(groups, {"sma 4": [3, 4, 5], "s-sgd 4": [6, 8, LENGTH], "ea-sgd 4": [3, 4, 4]})
    found = {}
    with pytest.raises(Missing, match="2 of 4 rows lack their runs"):
        found.update(lenet.measure_rivals(seen))
    assert set(found) == {"s-sgd-4", "ea-sgd-4"}
    # arrivals 5, 6, 7 against 8, 10, and two epochs after the end of the run, which counts as one
    late = LENGTH + 1
    expected = mean_interval([3.0, 4.0, late - 7.0])
    assert found["s-sgd-4"].values == (pytest.approx(expected.mean),)
    assert (found["s-sgd-4"].low, found["s-sgd-4"].high) == (
        (pytest.approx(expected.low),),
        (pytest.approx(expected.high),),
    )
    assert found["s-sgd-4"].n == 3
    assert f"SMA, k = 4: 5, 6, 7; S-SGD, k = 4: 8, 10, {late}" in found["s-sgd-4"].note
    assert found["ea-sgd-4"].values == (pytest.approx(-1 / 3),)


def test_epochs_with_many_learners_are_held_against_one_learners():
    groups = settings.lenet("paper")
    seen = evidence(groups, {"sma 1": [3, 3, 3], "sma 4": [3, 4, 3], "sma 16": [8, 8, 8]})
    found = dict(lenet.measure_kept(seen))
    assert found["epochs-kept-4"].values == (pytest.approx((1 * 6 / 5 * 1) ** (1 / 3)),)
    assert found["epochs-kept-16"].values == (pytest.approx(2.0),)
    assert not found["epochs-kept-4"].proxy


def test_each_run_is_a_dot_on_its_methods_bar():
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

    groups = settings.lenet("paper")
    passed = {"sma 1": [3, 4, 5], "sma 4": [4, 5, 6], "s-sgd 4": [6, 7, 8], "ea-sgd 4": [9, 10, 11]}
    figure = Figure()
    lenet.draw(evidence(groups, passed), figure)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    bars = [bar for container in axes.containers for bar in container if bar.get_height() > 0]
    clouds = [each.get_offsets() for each in axes.collections if isinstance(each, PathCollection)]
    clouds = [cloud for cloud in clouds if len(cloud)]
    assert len(bars) == len(clouds) == 4
    for bar in bars:
        on_it = [
            c for c in clouds if (abs(c[:, 0] - bar.get_x() - bar.get_width() / 2) < 0.2 * bar.get_width()).all()
        ]
        assert len(on_it) == 1
        assert on_it[0][:, 1].mean() == pytest.approx(bar.get_height())


def test_growing_saves_what_it_arrives_earlier():
    groups = settings.followed("paper")
    found = dict(
        alg2.measure_few_first(evidence(groups, {"growing": [3, 4, LENGTH - 1], "followed": [5, 4, LENGTH]}))
    )
    late = LENGTH + 1  # both pass too late for the run to show which was first
    assert found["few-first"].values == (pytest.approx((2 + 0 + 0) / 3),)
    assert (
        f"5 growing, 7 throughout; 6 growing, 6 throughout; {late} growing, {late} throughout"
        in found["few-first"].note
    )
    assert not found["few-first"].proxy


def test_growing_starts_with_one_learner_and_ends_with_four():
    for spec in settings.followed("paper")["growing"]:
        turns = 60_000 // 64
        assert spec.settings["learners"] == ((0, 1), (2 * turns, 2), (3 * turns, 4))
        assert spec.settings["epochs"] == LENGTH
