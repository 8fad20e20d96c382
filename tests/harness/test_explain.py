"""``explain`` says all that stands behind one verdict, and helps with a wrong name."""

from __future__ import annotations

import pytest

from suite.commands.explain import found, lines
from suite.papers.catalogue import SelectorError, committed
from suite.runs.archive import Layered

CLAIM = "rudra/fig4b/tail"


@pytest.fixture(scope="module")
def source() -> Layered:
    return Layered(committed())


def test_value_rule_register_measure_power_runs_and_figure(source: Layered):
    artifact, verdict = found(CLAIM, source)
    text = list(lines(artifact, verdict, source))
    assert text[0] == f"{CLAIM}: {verdict.verdict}"
    told = {line.split()[0] for line in text[2:]}
    assert {
        "printed",
        "ours",
        "why",
        "rule",
        "rests",
        "register",
        "measure",
        "power",
        "runs",
        "figure",
        "again",
    } <= told


@pytest.mark.parametrize(
    ("name", "helped"),
    [
        ("rudra/fig4b/nothing", CLAIM),
        ("rudra/fig99/x", "rudra has no artifact 'rudra/fig99'; it has .*rudra/fig4a"),
        ("nobody/fig1/x", "isgd/fig5b/gain"),
        ("rudra/fig4b", f"^rudra/fig4b is an artifact; its claims are .*{CLAIM}"),
        ("rudra/*", r"^no claim is called 'rudra/\*'; name one of rudra's .*rudra/fig4a"),
        ("rudra", "^no claim is called 'rudra'; name one of rudra's rudra/"),
    ],
)
def test_a_wrong_name_is_answered_with_near_ones(source: Layered, name: str, helped: str):
    with pytest.raises(SelectorError, match=helped):
        found(name, source)


def test_an_id_that_is_no_claim_any_more_says_where_it_went(source: Layered):
    with pytest.raises(SelectorError, match=r"^rudra/eq4/single is held by the test tests/algorithms/"):
        found("rudra/eq4/single", source)
