"""Table 1's rows on ImageNet: the whole path, on a generated folder of ImageNet's layout with three classes."""

from __future__ import annotations

import time

import pytest
import torch

from paper_figures.matex_agd import PAPER, settings
from suite.experiment import Context, OutOfTime
from suite.spec import RunSpec, thaw
from suite.training import numerics as execution
from suite.training.streaming import assemble_streamed, train

pytestmark = pytest.mark.usefixtures("small_networks")


@pytest.fixture
def root(small_imagenet, monkeypatch):
    monkeypatch.setattr("suite.training.streaming.os.cpu_count", lambda: 1)
    return small_imagenet


def small(name: str, updates: int, **more) -> RunSpec:
    """The row as declared, shrunk: a small network, side 32, crop 28, batch 8."""
    full = thaw(settings.imagenet_row(name, updates, 4).settings)
    shrunk = {
        "model": {"name": "tiny_bn", "channels": 3, "classes": 3, "input_size": 28},
        "side": 32,
        "crop": 28,
        "batch": 8 // full["workers"],
        "rate": 1e-4,
        "evaluate": {"every": 4, "examples": 8},
    }
    return RunSpec("matex_agd/imagenet", {**full, **shrunk, **more}, 0)


def context_of(spec, folder, root, **more) -> Context:
    folder.mkdir(exist_ok=True)
    return Context(folder, execution.choose(spec, "cpu", 1), root, **more)


def test_workers_read_their_own_parts_in_stored_order(root, monkeypatch):
    """Four workers, batches of two: six rows each, in a cycle, none of another's."""
    spec = small("sgd", 4)
    monkeypatch.setattr("suite.training.streaming.ImageNetStream", in_this_process)
    seen = []
    made = assemble_streamed(spec.settings, 0, execution.choose(spec, "cpu", 1), root)
    for number in (0, 1, 2, 3):
        examples = made.order.indices(torch.full((4,), number), torch.arange(4))
        inputs, targets = made.problem.fetch(examples.reshape(-1))
        assert inputs.shape == (8, 3, 28, 28)
        seen.append(targets.view(4, 2).tolist())
    rows = [
        [[row % 3 for row in range(6 * w + 2 * (n % 3), 6 * w + 2 * (n % 3) + 2)] for w in range(4)] for n in range(4)
    ]
    assert seen == rows


def in_this_process(*given, **options):
    from suite.data.imagenet import ImageNetStream

    return ImageNetStream(*given, **{**options, "processes": 0})


def test_a_delayed_row_trains_and_resumes_to_the_same_bits(root, tmp_path, monkeypatch):
    monkeypatch.setattr("suite.training.streaming.ImageNetStream", in_this_process)
    spec = small("agd2", 12)
    whole = train(spec, context_of(spec, tmp_path / "whole", root))
    assert whole.results["test_error"] <= 0.5, "colours are easy to tell"
    assert len(whole.curves["evaluations"]) == 4
    with pytest.raises(OutOfTime):
        train(spec, context_of(spec, tmp_path / "parts", root, deadline=time.monotonic() - 1))
    parts = train(spec, context_of(spec, tmp_path / "parts", root))
    assert parts.results["weights_digest"] == whole.results["weights_digest"]


def test_the_paper_profile_is_the_papers():
    rows = settings.table1("paper")
    assert set(rows) == set(settings.LABELS)
    for name, (spec,) in rows.items():
        s = spec.settings
        assert s["model"]["name"] == "caffe_alexnet"
        assert s["batch"] * s["workers"] == 256
        assert (s["updates"], s["evaluate"]["every"], s["evaluate"]["examples"]) == (5000, 1000, 50_000)
        assert s["algorithm"]["delay"] == {"serial": 0, **settings.DELAYS}[name]
        assert PAPER.experiments[spec.experiment].data(spec) == ("imagenet",)
        assert PAPER.experiments[spec.experiment].seconds(spec) > 3600
    (whole,) = settings.whole_training("paper")["agd2"]
    assert whole.settings["updates"] == 450_000
