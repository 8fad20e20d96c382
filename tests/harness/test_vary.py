"""An artifact's runs with other settings: which keys there are, what is computed, and how it is drawn."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import toy
import typer
from matplotlib.figure import Figure

from suite.claims.estimate import over_seeds as exact
from suite.commands.vary import UndrawableError, command, differ, draw_side_by_side, drawn_table, show_quantities
from suite.data.catalogue import DataError
from suite.own.variation import VariationError, parse, variations, written
from suite.papers import catalogue
from suite.papers.artifact import Artifact, Frame
from suite.papers.catalogue import paper
from suite.spec import RunSpec, thaw

FIG5A = paper("isgd").artifact("isgd/fig5a").runs("smoke")


def test_a_run_takes_up_the_settings_that_it_has():
    first, second = variations(FIG5A, parse(["algorithm.zeta=1, 0.3", "algorithm.queue=literal"]))
    assert first.label == "zeta = 1, queue = literal"
    assert first.groups["sgd"] == second.groups["sgd"] == FIG5A["sgd"]
    for spec, old in zip(second.groups["isgd"], FIG5A["isgd"], strict=True):
        assert spec.seed == old.seed
        assert written(spec) == written(old) | {"algorithm.zeta": 0.3, "algorithm.queue": "literal"}


def test_what_a_part_has_that_takes_the_place_of_another_can_be_asked_for():
    (found,) = variations(
        FIG5A, parse(["descent.beta1=0.8", "descent.rule=adam", "order.kind=by-class", "order.skew=0.5"])
    )
    assert found.label == "beta1 = 0.8, rule = adam, kind = by-class, skew = 0.5"
    for spec in itertools.chain(*found.groups.values()):
        assert spec.settings["descent"]["beta1"] == 0.8
        assert spec.settings["order"]["skew"] == 0.5


def test_what_another_part_had_is_left_out():
    (found,) = variations(FIG5A, parse(["algorithm.name=sgd", "order.kind=shuffled"]))
    runs = [spec.settings for spec in itertools.chain(*found.groups.values())]
    assert {(tuple(run["algorithm"]), tuple(run["order"])) for run in runs} == {(("name",), ("kind",))}


def test_another_solver_and_a_warm_start_take_what_they_have():
    """Rudra's section 5.5: AdaGrad, which has no momentum, after hardsync."""
    softsync = paper("rudra").artifact("rudra/fig5").runs("reduced")
    asked = ["descent.rule=adagrad", "warmstart.updates=9", "warmstart.algorithm.n=0", "warmstart.descent.rule=caffe"]
    (found,) = variations(softsync, parse(asked))
    trained = [spec for spec in itertools.chain(*found.groups.values()) if spec.experiment == "rudra/train"]
    assert trained
    assert found.label.startswith("descent.rule = adagrad, warmstart.updates = 9, ")
    for spec in trained:
        assert set(spec.settings["descent"]) == {"rule", "decay"}
        warm = {"updates": 9, "algorithm": {"n": 0}, "descent": {"rule": "caffe"}}
        assert thaw(spec.settings["warmstart"]) == warm


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("zeta=1", "no run has a setting 'zeta'; did you mean algorithm.zeta"),
        ("algorithm.zta=1", "did you mean algorithm.zeta"),
        ("algorithm.optimizer=1", "there are algorithm.anchor"),  # bound by the harness, no setting
        ("algorithm.zeta=much", r"algorithm.zeta is a number \(0.01\), and 'much' is a name"),
        ("updates=1e30", r"updates is a whole number \(270\), and 1e\+30 is none"),
        ("rate=-1", "rate cannot be -1: it must be 0 or more"),
        ("rate=nan", "rate cannot be nan: it must be a finite number"),
        ("batch=[]", r"batch is no list, and \[\] holds no value for it"),
        ("algorithm.factors=1", r"algorithm.factors is a list"),
        ("batch=32", "batch = 32 changes nothing"),
        ("batch", "must be KEY=VALUE"),
        ("batch=" + ",".join(map(str, range(1, 40))), "39 combinations of values are more than 24"),
    ],
)
def test_what_cannot_be_changed_is_refused_with_what_can(asked: str, sentence: str):
    with pytest.raises(VariationError, match=sentence):
        variations(FIG5A, parse([asked]))


@pytest.mark.parametrize(
    ("artifact", "asked", "sentence"),
    [
        ("isgd/fig5a", "algorithm.name=nope", "no algorithm is called 'nope'; there are sgd"),
        ("isgd/fig5a", "algorithm.name=rudra", "algorithm rudra: missing a required argument: 'workers'"),
        ("isgd/fig5a", "evaluate.every=0", "evaluate.every=0 must be a whole number, 1 or more"),
        ("isgd/fig5a", "descent.momentum=7", r"momentum=7.0 must lie in \[0, 1\)"),
        ("isgd/fig5a", "algorithm.factors=[1,0.5]", "one before each and one after the last; got 2"),
        ("isgd/fig5a", "warmstart.rate=0.1", "warmstart has no updates"),
        ("isgd/fig5a", "data.size=7", "size=7 is not offered"),
        ("isgd/eq21", "runs=0", "runs=0 must be a whole number, 1 or more"),
        ("together/mnist", "rate=0.1", "each trial has its own rate, in study.trials"),
        ("rudra/fig5", "descent.rule=adagrad", r"no runs here, .* at reduced and paper \(--profile reduced\)$"),
    ],
)
def test_settings_that_no_run_could_have_are_refused_before_any_runs(
    artifact: str, asked: str, sentence: str, tmp_path: Path
):
    with pytest.raises((VariationError, DataError), match=sentence):
        command(artifact, changes=[asked], store=tmp_path / "store", seeds=1, out=tmp_path)
    assert not list(tmp_path.iterdir())


def drawn(settings: list[float], draw) -> tuple[Figure, pd.DataFrame]:
    """A run at value 1 drawn by ``draw`` beside others, and the table of what is drawn."""
    specs = {"unchanged": RunSpec("toy/run", {"value": 1.0})}
    specs |= {f"value = {value:g}": RunSpec("toy/run", {"value": value}) for value in settings}
    artifact = Artifact("toy/fig", "", draw=lambda frame, figure: draw(frame, figure.subplots()))
    frames = {label: Frame([{"value": spec.settings["value"]}]) for label, spec in specs.items()}
    figure = Figure()
    draw_side_by_side(artifact, frames, figure)
    return figure, drawn_table(artifact, frames, figure, {"value = 5": {"value": 5.0, "steps": [3, 4, 5]}})


def value(frame: Frame) -> float:
    return float(frame.rows[0]["value"])


def test_drawings_stand_side_by_side_on_common_axes():
    figure, table = drawn([5.0, 3.0], lambda frame, axes: axes.bar([0, 1], [1, value(frame)]))
    panels = figure.axes
    assert [[patch.get_height() for patch in axes.patches] for axes in panels] == [[1, 1], [1, 5], [1, 3]]
    assert len({axes.get_ylim() for axes in panels}) == 1
    assert [part.get_suptitle() for part in figure.subfigs[:3]] == ["unchanged", "value = 5", "value = 3"]
    assert table[table["setting"] == "value = 5"][["value", "steps"]].values.tolist() == [[5.0, "[3, 4, 5]"]] * 2


def test_a_drawing_that_fails_on_a_setting_is_named_with_it():
    def draw(frame, axes):
        {1.0: "one"}[value(frame)]

    with pytest.raises(UndrawableError, match=r"toy/fig does not take runs with value = 2 \(KeyError: 2.0\)"):
        drawn([2.0], draw)


@pytest.mark.parametrize(
    ("one", "other", "another"),
    [(0.5, 0.25, True), (0.0, 1.4e-17, False), (2e9, 2e9 * (1 + 1e-15), False), (math.nan, math.nan, False)],
)
def test_rounding_is_no_difference(one: float, other: float, another: bool):
    assert differ([exact(one), exact(other)]) is another
    assert differ([exact(one), exact((one, other))])


def test_where_nothing_differs_a_sentence_says_so(capsys):
    show_quantities(paper("isgd").artifact("isgd/fig5a"), {})
    assert "measures nothing that differs" in capsys.readouterr().out


def test_the_command_computes_what_is_not_there_and_writes_figure_and_table(papers, tmp_path: Path, capsys):
    own = Artifact("toy/fig9", "Draws", lambda profile: {"draws": toy.specs(value=1.0)}, quantities=toy.QUANTITIES)
    own.drawing(lambda frame, figure: figure.subplots().plot(frame["draws"]["value"].to_numpy()))
    whole = replace(toy.PAPER, artifacts=(*toy.PAPER.artifacts, own))
    catalogue.PAPERS["toy"] = catalogue.Registered(lambda: whole, toy.HERE)
    catalogue.paper.cache_clear()

    def vary(seeds: int | None = None) -> None:
        with pytest.raises(typer.Exit) as end:
            command("toy/fig9", changes=["value=5"], name="mine", store=tmp_path / "store", seeds=seeds, out=tmp_path)
        assert end.value.exit_code == 0

    vary(2)
    table = pd.read_csv(tmp_path / "toy-fig9-mine.csv")
    rise = table.groupby("setting")["y"].mean()
    assert rise["value = 5"] - rise["unchanged"] == pytest.approx(4)
    assert "value = 5" in (tmp_path / "toy-fig9-mine.svg").read_text()
    printed, told = capsys.readouterr()
    assert "judged by nothing" in printed
    assert "mean" in printed
    assert "seven" not in printed  # the same for both
    assert "4 runs stored" in told
    vary()
    assert "2 runs stored, 4 already there" in capsys.readouterr().err
