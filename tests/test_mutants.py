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


def test_a_world_made_up_for_falsify_is_no_code_to_test():
    assert told('@genuine("p/fig1/a")\ndef world(evidence):\n    return 1 + 1\n') == []
    assert told("@cache\ndef measure(evidence):\n    return 1 + 2\n")


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


def test_of_equally_near_tests_those_named_like_the_module_are_asked_first(root):
    for name in ("tests/near/test_b.py", "tests/test_near.py", "tests/test_a.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("import suite.near\nimport suite.nobody" if "near" in name else "import suite.near")
    asked = mutants.Imports(root).testing("suite/near.py")
    assert asked == [["tests/a/test_near.py", "tests/near/test_b.py", "tests/test_near.py", "tests/test_a.py"]]


def test_the_index_of_a_package_hands_on_its_modules_to_the_tests_that_import_it(root):
    """Three modules lie between the last one and a test of the package; a fourth would be too many."""
    chain = {"__init__": "one", "one": "two", "two": "three", "three": "four", "four": ""}
    for name, imported in chain.items():
        path = root / "suite" / "packed" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(imported and f"from suite.packed.{imported} import body")
    (root / "tests" / "test_packed.py").write_text("from suite.packed import body")
    (root / "tests" / "test_three.py").write_text("import suite.packed.three")
    imports = mutants.Imports(root)
    assert imports.testing("suite/packed/three.py") == [["tests/test_three.py"], ["tests/test_packed.py"]]
    assert imports.testing("suite/packed/four.py") == [["tests/test_three.py"]]


def test_a_module_has_a_part_in_the_figures_of_all_files_that_import_it_but_through_a_package(root):
    paper, artifact = root / "paper_figures/p", 'ARTIFACTS = (Artifact("p/{}", "p/not a name"),)\n'
    paper.mkdir(parents=True)
    (paper / "__init__.py").write_text("from paper_figures.p import fig1, fig2, fig3\n")
    (paper / "deep.py").write_text("OTHER = 'p/fig9'\n")
    (paper / "shared.py").write_text("from paper_figures.p import deep\n")
    (paper / "fig1.py").write_text("from paper_figures.p.shared import x\n" + artifact.format("fig1"))
    (paper / "fig2.py").write_text("from paper_figures.p import deep\n" + artifact.format("fig2"))
    (paper / "fig3.py").write_text(artifact.format("fig3"))
    imports = mutants.Imports(root)
    assert imports.drawn("p", "paper_figures/p/deep.py") == ["p/fig1", "p/fig2"]
    assert imports.drawn("p", "paper_figures/p/shared.py") == ["p/fig1"]
    assert imports.drawn("p", "paper_figures/p/fig3.py") == ["p/fig3"]


MODULES = {
    "good": "",
    "bad": "raise SystemExit(3)",
    "says": "raise SystemExit('why')",
    "fails": "1 / 0",
    "given": "import sys\nassert sys.argv[1:] == ['a', 'b'] and __name__ == '__main__'",
    "long": "import time\ntime.sleep(600)",
    "changed": "raise SystemExit(5)",
}


@pytest.mark.processes
def test_each_module_runs_afresh_in_a_fork_that_has_the_libraries(tmp_path):
    """One that changed since, too; and none beyond its limit, nor what it started."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    with contextlib.closing(mutants.Trial(tmp_path)) as trial:
        assert [trial.run([name, "a", "b"], 60)[0] for name in MODULES if name != "long"] == [0, 3, 1, 1, 0, 5]
        (tmp_path / "changed.py").write_text("import sys; assert 'torch' in sys.modules")
        assert trial.run(["changed"], 60)[0] == 0
        code, seconds = trial.run(["long"], 0.5)
        assert code is None
        assert seconds < 60
        assert trial.run(["good"], 60)[0] == 0


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


def test_the_summary_counts_and_names_survivors():
    rows = [
        {"path": "a.py", "line": 1, "before": "1", "after": "(2)", "ending": ending}
        for ending in ("killed by tests/test_a.py", "killed by time", "killed by time", "survived", "no test")
    ]
    assert mutants.summary(rows) == [
        "3 of 5 mutants killed",
        "  2 killed by time, 1 killed by tests/test_a.py",
        "  a.py:1: 1 -> (2)  (survived)",
        "  a.py:1: 1 -> (2)  (no test)",
    ]
