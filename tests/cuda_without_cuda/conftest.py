"""The GPU that is not there, for whoever asks for it."""

from __future__ import annotations

import pytest
from fake_cuda import absent_gpu


@pytest.fixture
def gpu(monkeypatch):
    with absent_gpu(monkeypatch):
        yield
