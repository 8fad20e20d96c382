"""The examples in the docstrings run, and what users call says what it takes, returns and raises."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

import suite.optim
from suite.batch_size.chosen import choose
from suite.batch_size.knee import fit_knee
from suite.batch_size.law import fit_inverse_law

PUBLIC = [getattr(suite.optim, name) for name in suite.optim.__all__ if name != "WorkerLost"]
PUBLIC += [choose, fit_knee, fit_inverse_law]


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.__name__)
def test_a_public_name_is_documented_with_an_example_that_runs(public):
    text = inspect.getdoc(public) or ""
    assert text.partition("\n")[0].endswith("."), "the first line is a sentence"
    assert "Example:" in text or "for an example" in text
    if len(inspect.signature(public).parameters):
        assert "Args:" in text or public in (fit_knee, fit_inverse_law)
        assert "Raises:" in text
    module = importlib.import_module(public.__module__)
    for test in doctest.DocTestFinder(recurse=False).find(public, public.__name__, globs=vars(module).copy()):
        outcome = doctest.DocTestRunner(verbose=False).run(test)
        assert outcome.failed == 0
