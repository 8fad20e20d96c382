"""The examples in the docstrings run, and what users call says what it takes, returns and raises."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Callable

import pytest

import suite.optim
from suite.batch_size.chosen import choose, fit_knee
from suite.batch_size.law import fit_inverse_law
from suite.optim.parameter_server import Remote

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


def methods(kind: type) -> list[tuple[str, Callable[..., object]]]:
    """What users call of an optimiser, where it is written here."""
    found = [(name, each) for name, each in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]
    return [(name, each) for name, each in found if each.__module__.startswith("suite.optim")]


@pytest.mark.parametrize("kind", [*filter(inspect.isclass, PUBLIC), Remote], ids=lambda kind: kind.__name__)
def test_a_method_says_what_it_takes_and_returns(kind: type):
    for name, method in methods(kind):
        text, signature = inspect.getdoc(method) or "", inspect.signature(method)
        taken = [each for each in signature.parameters if each != "self"]
        if "Refused with" in text:
            continue
        assert not taken or "Args:" in text, name
        assert all(re.search(rf"^    {each}: ", text, re.MULTILINE) for each in taken), name
        assert signature.return_annotation in ("None", inspect.Signature.empty) or "Returns:" in text, name
