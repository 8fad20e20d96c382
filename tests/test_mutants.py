"""Mutants of code: what is changed, what is let be, and which tests a module is said to have."""

from __future__ import annotations

import ast

import pytest

from ci import mutants

TEXT = '''"""Three 3 things."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    LIMIT = 4

def f(x: "int | 7", *, é=2) -> bool:
    """Takes 5."""
    print(f"{x + 1}")
    axes.plot(x, linewidth=0.8)
    text = json.dumps(x, indent=1)
    axes.grid(visible=0)
    zip(x, x, strict=True)
    dashes = [4, 1.5]
    context.report(1 / 2)
    return not x < max(é, 1.5) and x - 0 != -x
'''


def told(text: str) -> list[tuple[str, str]]:
    return [(m.before, m.after) for m in mutants.mutants("a.py", text)]


def test_operators_constants_comparisons_and_calls_are_changed():
    assert sorted(told(TEXT)) == sorted(
        [
            ("2", "(3)"),
            ('print(f"{x + 1}")', "pass"),
            ("axes.plot(x, linewidth=0.8)", "pass"),
            ("zip(x, x, strict=True)", "pass"),
            ("not x < max(é, 1.5) and x - 0 != -x", "(not x < max(é, 1.5) or x - 0 != -x)"),
            ("not x < max(é, 1.5)", "(x < max(é, 1.5))"),
            ("x < max(é, 1.5)", "(x <= max(é, 1.5))"),
            ("max(é, 1.5)", "(min(é, 1.5))"),
            ("1.5", "(2.25)"),
            ("x - 0 != -x", "(x - 0 == -x)"),
            ("x - 0", "(x + 0)"),
            ("0", "(1)"),
            ("-x", "(x)"),
        ]
    )


def test_each_mutant_is_another_program_of_one_change():
    for mutant in mutants.mutants("a.py", TEXT):
        changed = mutants.applied(mutant, TEXT)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(TEXT))
        assert changed.count("\n") == TEXT.count("\n")
        assert changed[: mutant.start] == TEXT[: mutant.start]
        with pytest.raises(ValueError, match="another"):
            mutants.applied(mutant, "#" + TEXT)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "is", "in"])
def test_no_operator_is_left_as_it_is(operator):
    ((before, after),) = told(f"a {operator} b\n")
    assert before == f"a {operator} b"
    assert ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))
