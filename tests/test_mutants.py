"""Mutants of code: what is changed, what is let be, and which tests a module is said to have."""

from __future__ import annotations

import ast
import contextlib

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


@pytest.fixture
def root(tmp_path):
    files = {
        "suite/__init__.py": "",
        "suite/near.py": "from suite import far",
        "suite/far.py": "BODY = 'suite.named:body'",
        "suite/named.py": "",
        "suite/nobody.py": "",
        "tests/a/helper.py": "import suite.near",
        "tests/a/test_near.py": "def test():\n    import helper\n",
        "tests/test_far.py": "from suite.far import BODY",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_tests_of_a_module_are_those_that_few_imports_lead_from_the_fewest_first(root):
    imports = mutants.Imports(root)
    assert imports.testing("suite/near.py") == [["tests/a/test_near.py"]]
    assert imports.testing("suite/far.py") == [["tests/test_far.py"], ["tests/a/test_near.py"]]
    assert imports.testing("suite/named.py") == [["tests/test_far.py"], ["tests/a/test_near.py"]]
    assert imports.testing("suite/nobody.py") == []


@pytest.mark.processes
@pytest.mark.parametrize("hasty", [mutants.HASTY, 0.0], ids=["at once", "when all were put off"])
def test_a_mutant_is_killed_by_the_test_that_fails_and_by_no_other(root, monkeypatch, hasty):
    monkeypatch.setattr(mutants, "HASTY", hasty)
    (root / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (root / "suite/near.py").write_text("def twice(x, unused=7):\n    return 2 * x\n")
    (root / "tests/a/helper.py").write_text("")
    (root / "tests/a/test_near.py").write_text(
        "import sys; sys.path.insert(0, '.')\nfrom suite.near import twice\ndef test():\n    assert twice(3) == 6\n"
    )
    (root / "tests/test_far.py").write_text("from suite.near import twice\nassert False\n")  # fails without a mutant
    text = (root / "suite/near.py").read_text()
    with contextlib.closing(mutants.Trial(root)) as trial:
        endings = {m.before: trial.ending(m) for m in mutants.mutants("suite/near.py", text)}
    assert {name: found["ending"] for name, found in endings.items()} == {
        "7": "survived",
        "2 * x": "killed by tests/a/test_near.py",
        "2": "killed by tests/a/test_near.py",
    }
    assert {found["tests"] for found in endings.values()} == {1}
    assert (root / "suite/near.py").read_text() == text
