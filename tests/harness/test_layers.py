"""A reference file needs torch and the contract alone, and the quick commands load nothing slow.

That imports point one way is checked by import-linter (``nox -s lint``).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
import toy

STANDARD = set(sys.stdlib_module_names)
PAPERS = ("isgd", "inverse_law", "rudra", "matex_agd", "crossbow")


def imported(path: Path) -> set[str]:
    """Full names of what a module imports anywhere in its body, relative imports resolved."""
    package = path.relative_to(toy.CHECKOUT).with_suffix("").parts[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def modules(layer: str) -> list[Path]:
    found = sorted((toy.CHECKOUT / layer).rglob("*.py"))
    assert found, layer
    return found


def owner(module: str) -> str | None:
    return next((name for name in sorted(PAPERS, key=len, reverse=True) if module.startswith(name)), None)


@pytest.mark.parametrize("path", modules("reference_impls"), ids=lambda path: path.stem)
def test_a_reference_file_imports_torch_what_all_share_and_its_own_paper(path: Path):
    for name in imported(path):
        top, _, rest = name.partition(".")
        if top == "reference_impls" and rest:
            module = rest.split(".")[0]
            assert module in ("contract", "numbers") or owner(module) == owner(path.stem) is not None, (
                f"{path.name}: {name}"
            )
        else:
            assert top in STANDARD | {"torch", "reference_impls"}, f"{path.name} imports {name}"


def test_torch_stays_in_the_papers_experiments():
    users = [path for path in modules("paper_figures") if "torch" in {name.split(".")[0] for name in imported(path)}]
    assert users, "some experiment trains something"
    assert {path.parent.name for path in users} == {"experiments"}


SLOW = ("torch", "matplotlib", "scipy", "sklearn", "datasets", "jinja2")
ARRAYS = ("numpy", "pandas", "pyarrow")


@pytest.mark.processes
def test_the_quick_commands_load_nothing_slow(tmp_path: Path):
    """tests/journeys/test_artifacts.py holds ``check`` to the same."""
    script = f"""
import sys
from suite.commands.main import main
for command in ("list", "plan --profile paper", "data list"):
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, stop.code
    print([name for name in {SLOW + ARRAYS!r} if name in sys.modules], command, file=sys.stderr)
"""
    (tmp_path / "runs.store" / "runs").mkdir(parents=True)
    options = {"cwd": tmp_path, "env": toy.environment(), "capture_output": True, "text": True, "timeout": 600}
    done = subprocess.run([sys.executable, "-c", script], **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["[] list", "[] plan --profile paper", "[] data list"]
