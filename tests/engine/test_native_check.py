"""A build is compared with autograd at the batches and the updates that trainings use."""

from __future__ import annotations

from dataclasses import replace

import pytest
from engine_cases import problem

from suite.training.gradients import native
from suite.training.gradients.native import Native


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
    case = problem("digits_lenet")
    for path in (native.SOURCE.file, *native.SOURCE.headers):
        text = path.read_text()
        assert path.name != name or right in text
        (tmp_path / path.name).write_text(text.replace(right, wrong) if path.name == name else text)
    headers = tuple(tmp_path / path.name for path in native.SOURCE.headers)
    changes = {"file": tmp_path / "native.cpp", "headers": headers, "flags": (*native.SOURCE.flags, "-O0")}
    monkeypatch.setattr(native, "SOURCE", replace(native.SOURCE, **changes))
    assert "does not agree with autograd" in (Native.refusal(case) or "")
