"""A native build is compared with autograd before use; a run goes on by the build that began it, or names both."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from engine_cases import compute, digest, digits, problem, stored

from suite.experiment import Context
from suite.training.gradients import native, native_check
from suite.training.gradients.native import Native, plan


@pytest.fixture
def cut_short(tmp_path, monkeypatch):
    """A native run that was late after its first update and left a checkpoint."""
    spec = digits(0, path="native", model={"name": "linear"})
    with monkeypatch.context() as patch:
        patch.setattr(Context, "late", property(lambda self: True))
        assert [report.state for report in compute(tmp_path / "cut", spec)] == ["late"]
    return spec, tmp_path / "cut"


@pytest.mark.compiler
def test_a_native_run_is_recorded_near_the_loop_and_resumes_in_the_same_bits(tmp_path, cut_short):
    spec, cut = cut_short
    compute(tmp_path / "whole", spec)
    run = stored(tmp_path / "whole", spec)
    assert run.environment["execution"]["path"] == "native"
    assert run.environment["execution"]["build"] == Native(problem("linear", dtype=torch.float32)).library.build
    looped = digits(0, path="looped", model={"name": "linear"})
    compute(tmp_path / "loop", looped)
    assert run.results["test_loss"] == pytest.approx(stored(tmp_path / "loop", looped).results["test_loss"], rel=1e-4)
    assert [report.state for report in compute(cut, spec)] == ["stored"]
    assert digest(cut, spec) == run.results["weights_digest"]


@pytest.fixture
def another_build(cut_short, fresh, monkeypatch):
    """From here on this machine makes other builds than the one that the run began with, which is returned."""
    first = native.SOURCE.build(native._definitions(plan(problem("linear").flat.module), "float"))
    native.library.cache_clear()
    monkeypatch.setattr(native, "SOURCE", replace(native.SOURCE, flags=(*native.SOURCE.flags, "-O1")))
    return first


@pytest.mark.compiler
def test_a_run_goes_on_with_another_build_that_agrees_with_autograd_and_names_both(
    cut_short, another_build, monkeypatch
):
    spec, cut = cut_short
    with monkeypatch.context() as patch:
        patch.setattr(native_check, "bound", lambda d, reference: -1.0)
        (report,) = compute(cut, spec)
    assert report.state == "failed"
    assert "does not agree with autograd" in report.why
    assert "to begin anew" in report.why
    (report,) = compute(cut, spec)
    assert report.state == "stored"
    execution = stored(cut, spec).environment["execution"]
    assert execution["builds"] == [another_build, execution["build"]]
    assert execution["build"] != another_build
    assert all(build in report.why for build in execution["builds"])


@pytest.mark.compiler
@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("native.cpp", "(c == targets[m])) / M", "(c == targets[m])) / (M + (M > 5))"),
        ("native_layers.h", "x[i] - rule.outer * v[i]", "x[i] - v[i]"),
        ("native_layers.h", "rule.inner * (gradient[i] + rule.decay * x[i]);", "rule.inner * gradient[i];"),
    ],
)
def test_what_is_wrong_for_some_batches_or_updates_alone_is_not_used(monkeypatch, tmp_path, name, right, wrong):
    case = problem("linear")
    for path in (native.SOURCE.file, *native.SOURCE.headers):
        text = path.read_text()
        assert path.name != name or right in text
        (tmp_path / path.name).write_text(text.replace(right, wrong) if path.name == name else text)
    headers = tuple(tmp_path / path.name for path in native.SOURCE.headers)
    changes = {"file": tmp_path / "native.cpp", "headers": headers, "flags": (*native.SOURCE.flags, "-O0")}
    monkeypatch.setattr(native, "SOURCE", replace(native.SOURCE, **changes))
    assert "does not agree with autograd" in (Native.refusal(case) or "")
