"""What ``list`` and ``doctor`` say, and how a mistake or a fault is told."""

from __future__ import annotations

import pytest

from suite.commands import output
from suite.runs.run import DamagedRun


@pytest.mark.parametrize(
    ("error", "code"), [(ValueError("a\n  b"), 2), (OSError("a b"), 2), (DamagedRun("a b"), 1)], ids=repr
)
def test_what_a_user_can_act_on_is_one_sentence(error: Exception, code: int, capsys: pytest.CaptureFixture[str]):
    assert output.explain(error) == code
    assert tuple(capsys.readouterr()) == ("", "sgd-suite: a b\n")


@pytest.mark.parametrize(
    ("module", "wanted", "told"),
    [
        ("suite.commands", "absent_package.part", "sgd-suite: this needs the Python package absent_package.part"),
        ("my_paper.fig1", "absent_package", "sgd-suite: my_paper needs the Python package absent_package"),
        ("my_paper.fig1", "my_paper.fig9", "Traceback"),
    ],
)
def test_a_missing_package_is_told_with_who_needs_it(
    module: str, wanted: str, told: str, capsys: pytest.CaptureFixture[str]
):
    """No extra of the suite has what a paper of one's own imports; its own missing module is a fault."""
    with pytest.raises(ModuleNotFoundError) as fault:
        exec(f"raise ModuleNotFoundError('none', name={wanted!r})", {"__name__": module})
    assert output.explain(fault.value) == 2
    text = capsys.readouterr().err
    assert text.startswith(told)
    if told != "Traceback":
        assert text.rstrip().endswith(output.ALL if module == "suite.commands" else "pip install absent_package")
