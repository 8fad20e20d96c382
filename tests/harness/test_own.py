"""An experiment of one's own: the package that ``new-experiment`` writes, taken through the commands as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
from fabricated_frames import frame_of
from PIL import Image

import suite
from suite.commands import check
from suite.commands.new_paper import new_package
from suite.commands.options import RunOptions
from suite.commands.run import run_artifacts
from suite.commands.status import status
from suite.data.catalogue import DATASETS, DataError
from suite.data.images import _of_ones_own
from suite.models.registry import CLASSIFIERS
from suite.models.table import measure
from suite.own import figure
from suite.own.experiment import arrays, facts
from suite.own.variation import variations
from suite.papers import catalogue
from suite.papers.catalogue import of_user, select
from suite.report.drawing import draw_selection
from suite.report.site.build import write_site

NAME = "mine"


@pytest.fixture
def package(papers: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The package, and a call that imports it anew and registers it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SGD_SUITE_CACHE", str(tmp_path / "cache"))
    new_package(NAME, None, "experiment")
    code = tmp_path / NAME / f"{NAME}_experiment" / "__init__.py"

    def load() -> SimpleNamespace:
        module = SimpleNamespace()
        exec(compile(code.read_text(), str(code), "exec"), vars(module))
        catalogue.PAPERS[NAME] = catalogue.Registered(lambda: module.PAPER, code.parent)
        catalogue.paper.cache_clear()
        _of_ones_own.cache_clear()
        measure.cache_clear()
        return module

    yield SimpleNamespace(code=code, load=load)
    for table in (DATASETS, CLASSIFIERS):
        if NAME in table:
            del table[NAME]
    _of_ones_own.cache_clear()


def run() -> int:
    return run_artifacts(select([NAME]), [NAME], RunOptions("smoke", Path("runs.store"), device="cpu"))


def test_the_package_runs_is_measured_drawn_and_read(package, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    paper = package.load().PAPER
    digest = json.loads(package.code.with_name("data.json").read_text())["digest"] if run() == 0 else ""
    assert "8 runs stored" in capsys.readouterr().err
    groups = paper.artifacts[0].runs("smoke")
    assert {spec.settings["data"]["digest"] for specs in groups.values() for spec in specs} == {digest}
    assert {spec.settings["model"]["width"] for specs in groups.values() for spec in specs} == {16}
    (wider,) = variations(groups, {"model.width": [4]})
    assert {spec.settings["model"]["width"] for specs in wider.groups.values() for spec in specs} == {4}
    assert list(groups) == ["SGD", *(f"SMA, 4 learners, alpha = {alpha}" for alpha in ("0.05", "0.1", "0.25"))]

    mine = of_user(None)
    with pytest.raises(typer.Exit):
        check.command([NAME], only_mine=True)
    shown = capsys.readouterr().out
    assert "mine/curves at smoke" in shown
    assert "SMA, 4 learners, alpha = 0.1 minus SGD (points)" in shown

    (line,) = draw_selection([NAME], mine, tmp_path / "figures", data="csv")
    assert "8 runs" in line
    found = suite.results(NAME)
    curves = found[found.table == "evaluations"].pivot_table(
        index=["group", "seed", "row"], columns="name", values="value"
    )
    d = 16 * 9 + 16 + 36 * 16 * 10 + 10
    ends = curves.groupby("group").last()
    assert ends.loc["SGD", "sent"] == 0
    assert (
        ends.loc["SMA, 4 learners, alpha = 0.1", "sent"] == 4 * d * ends.loc["SMA, 4 learners, alpha = 0.1", "update"]
    )
    assert set(found["algorithm.alpha"].dropna()) == {0.05, 0.1, 0.25}

    _, built = write_site(mine, tmp_path / "report", selectors=[NAME])
    assert built.artifacts == 1
    assert (tmp_path / "report" / NAME / "curves.html").exists()


def test_methods_are_compared_over_the_seeds_that_both_finished():
    """One seed of the second diverged and one is not stored; the third diverged on all."""
    ended = lambda error: {"test_error": error}
    lost = {"test_error": 0.9, "status": "diverged"}
    frame = frame_of(
        {
            "a": [ended(0.1), ended(0.2), ended(0.4), ended(0.3)],
            "b": [lost, ended(0.1), ended(0.2), None],
            "c": [lost],
        }
    )
    asked = figure.quantities(frame)
    assert list(asked) == ["a: test error (%)", "b: test error (%)", "b minus a (points)"]
    found = {name: each.of(frame) for name, each in asked.items()}
    assert [each.values[0] for each in found.values()] == [pytest.approx(25), pytest.approx(15), pytest.approx(-15)]
    assert [each.n for each in found.values()] == [4, 2, 2]
    assert found["b: test error (%)"].runs == ("b seed 0", "b seed 1", "b seed 2")
    assert figure.label(frame, "b") == "b\n3 of 4 seeds\n1 diverged"


def test_other_data_are_refused_until_they_are_planned_anew(package, capsys: pytest.CaptureFixture[str]):
    first = package.load().PAPER.artifacts[0].runs("smoke")
    package.code.write_text(package.code.read_text().replace('"float32") / 16', '"float32") / 17'))
    package.load()
    assert run() == 1
    assert "its content is" in capsys.readouterr().err
    package.code.with_name("data.json").unlink()
    other = package.load().PAPER.artifacts[0].runs("smoke")
    assert {spec.id for spec in first["SGD"]}.isdisjoint(spec.id for spec in other["SGD"])


def test_a_setting_that_was_taken_out_leaves_no_failed_run(package, capsys: pytest.CaptureFixture[str]):
    text = package.code.read_text().replace('"algorithm.alpha": [0.05, 0.1, 0.25]', '"order.batches": [1, 46]')
    text = text.replace('"batch": 16', '"batch": 30, "order": {"kind": "balanced", "batches": 1}')
    package.code.write_text(text)  # of one class there are too few examples, as its data alone tell
    package.load()
    assert run() == 1
    assert status(Path("runs.store"))["counts"]["failed"] == 4
    package.code.write_text(text.replace("[1, 46]", "[1]"))
    package.load()
    assert run() == 0
    assert status(Path("runs.store"))["counts"]["failed"] == 0


MISTYPED = {
    '{"momentum": 0.0}': "mine, 'SGD': there is no setting 'momentum'; did you mean descent.momentum",
    '{"evaluate": {"test_exampels": 10}}': "did you mean evaluate.test_examples",
    '{"stop": {"metric": "tset_error", "below": 0.5}}': "did you mean test_error",
    '{"stop": {"below": 0.5}}': "stop has no metric; set stop.metric",
    '{"drops": [[20, 0.01], [10, 0.1]]}': "must be pairs of a turn, later than the one before",
    '{"drops": [[10, -1.0]]}': "multiplies the rate from there on, 0 or more",
    '{"rate": "0.1"}': "rate='0.1' must be a number, 0 or more",
    '{"batch": 1500}': "mine, 'SGD': batch=1500 does not fit 1,400 examples",
    '{"data": {"subset": 10}}': "does not fit 10 examples",
    '{"data": {"transform": "sclae"}}': "transform 'sclae' does not exist; choose one of",
    '{"rate": Ellipsis}': "settings.rate: Ellipsis is not a plain finite value",
    '{"descent": "torch"}': "descent='torch' must be settings by name",
    '{"algorithm": {"name": "crossbow", "alhpa": 0.1}}': "unexpected keyword argument 'alhpa'",
    '{"algorithm": {"name": "crossbow", "alpha": "0.1"}}': "algorithm crossbow: alpha='0.1' must be a number or none",
    '{"descent": {"momentum": True}}': "descent torch: momentum=True must be a number",
    '{"descent": {"multipliers": "no"}}': "descent.multipliers='no' must be true or false",
    '{"schedule": {"warmup": "10"}}': "schedule: warmup='10' must be a whole number",
    '{"model": {"width": 16.0}}': "network mine: width=16.0 must be a whole number",
    '{"model": {"width": 0}}': "mine, 'SGD': network mine: width=0 must be at least 1",
    '{"descent": {"rule": "adam", "beta1": 2.0}}': "mine, 'SGD': Adam: beta1=2.0 must lie in [0, 1)",
    '{"algorithm": {"name": "crossbow", "alpha": 7.0}}': "mine, 'SGD': crossbow: alpha=7.0 must lie in (0, 1]",
    '{"augment": {"crop": 9}}': "mine, 'SGD': crop=9 exceeds pictures of 8x8",
    '{"order": {"kind": "partitioned", "share": "pool"}}': "order partitioned gives each worker its own part of",
    '{"order": {"kind": "shuffled", "without": {"batches": [0]}}}': "order without: missing a required argument",
    '{"order": {"kind": "by-class", "skew": 2.0}}': "mine, 'SGD': skew=2.0 must lie in [0, 1]",
    '{"order": {"knid": "shuffled"}}': "order shuffled: got an unexpected keyword argument 'knid'",
}


@pytest.mark.parametrize(("method", "sentence"), MISTYPED.items())
def test_settings_that_no_training_has_are_refused_before_anything_is_computed(package, method: str, sentence: str):
    text = package.code.read_text().replace('{"algorithm": {"name": "sgd"}}', method, 1)
    package.code.write_text(text)
    package.load()
    with pytest.raises(ValueError, match=re.escape(sentence)):
        run()
    assert not Path("runs.store").exists()


def test_an_experiment_that_would_train_nothing_is_refused(package):
    package.code.write_text(re.sub(r"epochs=[\d.]+", "epochs=0", package.code.read_text()))
    package.load()
    with pytest.raises(ValueError, match=r"mine: methods=.* and epochs=0 leave nothing to train"):
        run()


def test_of_a_part_the_settings_that_a_method_does_not_name_stay(package):
    package.code.write_text(
        package.code.read_text().replace('{"algorithm": {"name": "sgd"}}', '{"descent": {"momentum": 0.5}}')
    )
    sgd = package.load().PAPER.artifacts[0].runs("smoke")["SGD"][0]
    assert sgd.settings["descent"] == {"rule": "torch", "momentum": 0.5, "decay": 0.0}


def test_an_epoch_of_a_subset_has_as_many_examples(package):
    text, updates = package.code.read_text(), []
    for method in ('{"data": {"subset": 1400}}', '{"data": {"subset": 700}}'):
        package.code.write_text(text.replace('{"algorithm": {"name": "sgd"}}', method))
        updates.append(package.load().PAPER.artifacts[0].runs("paper")["SGD"][0].settings["updates"])
    assert updates == [875, 438]  # half of them, rounded up


def test_pictures_pairs_and_tables_of_the_hub_become_arrays():
    picture = Image.fromarray(np.arange(24, dtype=np.uint8).reshape(2, 4, 3))
    inputs, targets = arrays([(picture, 1), (picture, 0)])
    assert (inputs.shape, inputs.dtype, targets.tolist()) == ((2, 3, 2, 4), np.uint8, [1, 0])
    assert inputs[0, 1, 0].tolist() == [1, 4, 7, 10]

    class Hub(list):
        """What ``datasets`` hands out."""

    hub = Hub([{"picture": picture, "kind": 3}])
    hub.features = {"picture": type("Image", (), {})(), "kind": type("ClassLabel", (), {})()}
    assert arrays(hub)[1].tolist() == [3]
    assert arrays((np.zeros((5, 7)), np.arange(5)))[0].dtype == np.float32
    other = Image.fromarray(np.zeros((3, 3), np.uint8))
    for examples, sentence in (
        ([(picture, 0), (other, 1)], "its examples cannot be stacked .* give pairs of one shape"),
        (np.zeros((5, 7)), "a split is one array"),
        ((np.zeros((5, 7)), np.arange(4)), r"5 inputs have targets of shape \(4,\)"),
        ((np.zeros((5, 7)), np.arange(5) / 2), "a target is no class"),
        ((np.zeros((2, 7)), ["cat", "dog"]), "a target is no class"),
        ((np.zeros((0, 7)), []), "a target is no class, or there is none"),
        (5, "its examples cannot be stacked"),
        ({"x": np.zeros((5, 7))}, "its examples cannot be stacked"),
        ([(np.zeros(7), 0.7)], "a target is no class"),
        ([(np.zeros(7), None)], "a target is no class"),
        ([(np.zeros(7), np.eye(3)[0])], r"1 inputs have targets of shape \(1, 3\)"),
    ):
        with pytest.raises(DataError, match=f"mine: {sentence}"):
            arrays(examples, "mine")
    rows = Hub([(np.zeros(7), np.array([2]))])
    rows.features = np.zeros((1, 7))  # of a table, as a data set of pairs may hold it
    assert arrays(rows)[1].tolist() == [2]


@pytest.mark.parametrize("other", [np.zeros((5, 7), np.uint8), np.zeros((5, 8))])
def test_splits_whose_examples_are_of_another_kind_are_refused(other, tmp_path: Path):
    splits = (np.zeros((5, 7)), np.arange(5)), (other, np.arange(5))
    with pytest.raises(DataError, match=r"mine: a training example is float32 of shape .*; prepare both alike"):
        facts("mine", lambda: splits, tmp_path / "data.json")


def test_a_network_may_read_values_where_it_is_made_and_in_its_forward_pass(package):
    text = package.code.read_text().replace("return nn.Sequential(", "return Net(nn.Dropout(torch.zeros(1).item()), ")
    net = "class Net(nn.Sequential):\n        def forward(self, x):\n            "
    reads = "return super().forward(x if x.max() <= 1 else x / 255)"
    package.code.write_text(
        text.replace("    from torch import nn\n", f"    import torch\n    from torch import nn\n    {net}{reads}\n")
    )
    package.load()
    assert run() == 0


def test_a_network_that_does_not_take_the_examples_is_named(package):
    package.code.write_text(package.code.read_text().replace("36 * width", "35 * width"))
    package.load()
    with pytest.raises(ValueError, match=r"the network mine does not take examples of shape \(1, 8, 8\)"):
        run()
