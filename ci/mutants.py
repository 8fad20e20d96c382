"""How hard the tests are: random mutants of the code, each run against the tests that import it.

    python -m ci.mutants paper_figures --without '*/experiments/*' --count 100 --budget 7200 --log mutants.jsonl
    python -m ci.mutants reference_impls suite --count 100 ...

A mutant changes one operator, constant, comparison or call of the last commit, in a clone of its own. It is killed
when a test fails, when it takes far longer than it did without the mutant, when a committed result moves or a run is
another, or, for a paper's module, when ``falsify`` no longer passes or a figure that it has a part in is no longer
the accepted one. The tests that import the module most directly are asked first, others only about what those let
live, for ``SLOWEST`` seconds in all, and those that take long last. ``--without PATTERN`` leaves out files. Which
mutants a seed draws depends on the commit, the folders and that alone. Each is written to the log when it is done:
the same command goes on where it stopped, be it by its budget in seconds or by Ctrl-C. Not part of the automatic
checks: a hundred take an hour and more. A survivor is a gap in the tests or an equivalent of the code; that is for a
reader to say.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from suite.runs.environment import ROOT

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "abs": "float"}
# How things look or are kept, not what they say: sizes, distances and colours of drawings, indents of files, caches.
LOOKS = {
    "alpha", "borderaxespad", "bbox_to_anchor", "capsize", "color", "columnspacing", "dashes", "elinewidth",
    "figsize", "fontsize", "frozen", "grid", "height", "indent", "labelsize", "linestyle", "linewidth", "markersize",
    "maxsize", "ncols", "pad", "s", "saturation", "size", "sizes", "width", "width_ratios", "zorder",
}  # fmt: skip
PATIENCE, SLOWEST = 4.0, 240.0  # times the seconds without a mutant; seconds that the tests of a module may take
HASTY = 40.0  # seconds after which others are asked first
PYTEST = ("pytest", "-q", "-x", "-p", "no:cacheprovider")
PAPERS = ("isgd", "inverse_law", "rudra", "matex_agd", "crossbow")
# These reach the papers by no import.
INDEX, RESULTS, PICTURES = "tests/test_index.py", "tests/test_results.py", "tests/test_pictures.py"
WARM = Path(__file__).with_name("warm.py")
NEAR = 3.5  # imports between a test and a module that it may be said to test
INDEX_COUNTS = 0.1  # of an import: a package's index, which only hands on what others hold
PLACE = re.compile(r"\w+(?:\.\w+)*:\w+")  # of a definition: "package.module:name"


def imported(node: ast.Import | ast.ImportFrom, base: str) -> dict[str, tuple[str, str]]:
    """Local names that an import binds, with the module and the name there (empty: the module itself)."""
    if isinstance(node, ast.Import):
        names = (
            (a.asname or a.name.partition(".")[0], a.name if a.asname else a.name.partition(".")[0])
            for a in node.names
        )
        return {local: (module, "") for local, module in names}
    source = node.module or ""
    if node.level:
        above = base.split(".")[: len(base.split(".")) - node.level + 1]
        source = ".".join([*above, *([source] if source else [])])
    return {a.asname or a.name: (source, a.name) for a in node.names}


@dataclass(frozen=True)
class Mutant:
    """One change: between two places of a file, ``before`` becomes ``after``."""

    path: str
    line: int
    start: int  # offset in characters
    before: str
    after: str


def mutants(path: str, text: str) -> list[Mutant]:
    """All mutants of a file, in the order of its text."""
    lines = text.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return begins[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found = []
    for node, after in _changes(ast.parse(text)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)
        found.append(Mutant(path, node.lineno, start, text[start:end], after))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.before, mutant.after))


def applied(mutant: Mutant, text: str) -> str:
    """The text of the file with the change. Raises ValueError where it reads otherwise."""
    end = mutant.start + len(mutant.before)
    if text[mutant.start : end] != mutant.before:
        raise ValueError(f"{mutant.path} is another than the mutant was made from")
    return text[: mutant.start] + mutant.after + text[end:]


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Nodes with the text that replaces them; what never runs, only looks or is itself a test's world is left out."""
    if isinstance(node, ast.FunctionDef) and any(_world(decorator) for decorator in node.decorator_list):
        return
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
        return
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in LOOKS:
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        if isinstance(node.value.func, ast.Attribute) and node.value.func.attr in ("report", *LOOKS):
            return  # how far a run has come, or a look
        yield node, "pass"
    if isinstance(node, ast.expr):
        for changed in _changed(node):
            yield node, f"({ast.unparse(changed)})"
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg in {*LOOKS, "strict"}:
                continue  # how it looks, or an assertion that two lists are equally long
            if isinstance(child, ast.AST):
                yield from _changes(child)


def _world(decorator: ast.expr) -> bool:
    """Whether a function fabricates runs for ``falsify`` rather than measuring any."""
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") in ("counterfeit", "genuine")


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that one could be mistaken for."""
    made: Any = copy.deepcopy(node)
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        made.op = SWAPPED[type(node.op)]()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
        made.ops[0] = SWAPPED[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        made = made.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        made.value = not node.value if isinstance(node.value, bool) else _other(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        made.func.id = CALLS[node.func.id]
    else:
        return
    yield made


def _other(number: float) -> float:
    return number + 1 if isinstance(number, int) or number == 0 else 1.5 * number


class Imports:
    """Who imports whom, among the modules and test files below a root."""

    def __init__(self, root: Path):
        self.root = root
        self.tests = sorted((root / "tests").rglob("test_*.py"))
        self._of: dict[Path, frozenset[Path]] = {}
        self._near = {test: self._distances(test) for test in self.tests}

    def testing(self, module: str) -> list[list[str]]:
        """The test files from which at most NEAR imports lead to a module, those from which the fewest do first.

        Among equally near ones those come first whose path has most words in common with the module's, and then those
        that import the fewest files: they test little else.
        """
        away = {test: near[self.root / module] for test, near in self._near.items() if self.root / module in near}
        words = set(Path(module).with_suffix("").parts)
        special = sorted(away, key=lambda test: (-len(words & self._words(test)), len(self.of(test))))
        steps = [[test for test in special if away[test] == step] for step in sorted(set(away.values()))]
        return [[test.relative_to(self.root).as_posix() for test in step] for step in steps]

    def _words(self, test: Path) -> set[str]:
        """The folders of a test file, and what it is called after ``test_``."""
        folders = test.relative_to(self.root).parts[:-1]
        return {*folders, test.stem.removeprefix("test_")}

    def drawn(self, paper: str, module: str) -> list[str]:
        """Ids of the artifacts in whose files' imports a module stands, near or far."""
        found = []
        for file in sorted((self.root / "paper_figures" / paper).glob("*.py")):
            if self.root / module in {file} | self._reached(file):
                tops = [node for node in ast.parse(file.read_text(encoding="utf-8")).body if _artifacts(node)]
                texts = [str(node.value) for top in tops for node in ast.walk(top) if isinstance(node, ast.Constant)]
                found += [text for text in texts if re.fullmatch(rf"{paper}/[\w.-]+", text)]
        return found

    def _reached(self, path: Path) -> set[Path]:
        """Files that a file imports, and theirs; not by way of a package, which imports all that is in it."""
        seen, at = set[Path](), [path]
        while at:
            new = {file for file in self.of(at.pop()) - seen if file.name != "__init__.py"}
            seen |= new
            at += new
        return seen

    def _distances(self, test: Path) -> dict[Path, float]:
        """How many imports lie between a test and each file; its helpers count nothing, a package's index little."""
        seen: dict[Path, float] = {}
        at: list[tuple[Path, float]] = [(test, 0)]
        while at:
            path, distance = at.pop(0)
            for file in self.of(path):
                own = file.is_relative_to(self.root / "tests")
                further = distance + (0 if own else INDEX_COUNTS if file.name == "__init__.py" else 1)
                if further <= NEAR and further < seen.get(file, NEAR + 1):
                    seen[file] = further
                    at.append((file, further))
        return seen

    def of(self, path: Path) -> frozenset[Path]:
        """Files that a file imports, anywhere in it, or names as a place in the code."""
        if path not in self._of:
            base, found = ".".join(path.relative_to(self.root).parts[:-1]), set()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    found |= {file for a in node.names for file in self._files(a.name, "", path.parent)}
                elif isinstance(node, ast.ImportFrom):
                    for module, name in imported(node, base).values():
                        found |= set(self._files(module, name, path.parent))
                elif isinstance(node, ast.Constant) and PLACE.fullmatch(str(node.value)):
                    found |= set(self._files(str(node.value).partition(":")[0], "", path.parent))
            self._of[path] = frozenset(found - {path})
        return self._of[path]

    def _files(self, module: str, name: str, beside: Path) -> Iterator[Path]:
        """The file of ``module``, and of ``module.name`` where that is one too; a test's helpers lie beside it."""
        for parts in (module.split("."), f"{module}.{name}".rstrip(".").split(".")):
            for place in (self.root.joinpath(*parts), beside.joinpath(*parts)):
                candidates = (place.with_suffix(".py"), place / "__init__.py")
                yield from (file for file in candidates if file.is_file())


def _artifacts(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "ARTIFACTS" for target in node.targets)


def git(*arguments: str, at: Path = ROOT) -> str:
    return subprocess.run(["git", *arguments], cwd=at, check=True, capture_output=True, text=True).stdout.strip()


def drawn(root: Path, folders: Sequence[str], seed: int, count: int, without: Sequence[str] = ()) -> list[Mutant]:
    """A random sample of the mutants of all Python files that are tracked below some folders, but for some."""
    files = [name for name in git("ls-files", *folders, at=root).splitlines() if name.endswith(".py")]
    files = [name for name in files if not any(fnmatch(name, pattern) for pattern in without)]
    every = [m for name in files for m in mutants(name, (root / name).read_text(encoding="utf-8"))]
    return random.Random(seed).sample(every, min(count, len(every)))


class Trial:
    """A clone in which one file at a time is mutated."""

    def __init__(self, root: Path):
        self.root, self.imports = root, Imports(root)
        self._alone: dict[tuple[str, ...], tuple[bool, float]] = {}
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._warm = subprocess.Popen([sys.executable, str(WARM)], cwd=root, env=environment, **pipes)

    def alone(self, *arguments: str) -> tuple[bool, float]:
        """Whether a command passes without a mutant, and the seconds that it takes."""
        if arguments not in self._alone:
            code, seconds = self.run(arguments, SLOWEST)
            self._alone[arguments] = code == 0, seconds
        return self._alone[arguments]

    def commands(self, module: str) -> list[tuple[str, ...]]:
        """What may kill a mutant of a module, the nearest tests first."""
        paper = next((name for name in PAPERS if module.startswith(f"paper_figures/{name}/")), "")
        steps: list[list[tuple[str, ...]]] = [[(*PYTEST, t) for t in step] for step in self.imports.testing(module)]
        results = [[(*PYTEST, INDEX), (*PYTEST, RESULTS, "-k", paper)]]
        if ids := self.imports.drawn(paper, module) if paper else []:
            results.append([(*PYTEST, PICTURES, "-k", " or ".join(ids)), ("suite", "falsify", *ids)])
        steps[1:1] = results
        return [command for step in steps for command in step]

    def ending(self, mutant: Mutant) -> dict[str, Any]:
        """What became of a mutant: killed, by whom; survived; or without any test.

        Asked are the module's commands one by one, for SLOWEST seconds in all; those that take longer than HASTY
        are put off, since another one may tell sooner, and have as long again. One that fails is asked once more
        without the mutant: what fails then too, or takes as long, kills nobody.
        """
        place = self.root / mutant.path
        text = place.read_text(encoding="utf-8")
        told, tests, spent = "no test", 0, 0.0
        queue = deque((command, True) for command in self.commands(mutant.path))
        while queue:
            command, hasty = queue.popleft()
            passes, usual = self._alone.get(command, (True, None))
            if not passes or spent > (SLOWEST if hasty else 2 * SLOWEST):
                continue
            enough = SLOWEST if usual is None else PATIENCE * usual + 60
            place.write_text(applied(mutant, text), encoding="utf-8")
            try:
                code, seconds = self.run(command, HASTY if hasty else enough)
            finally:
                place.write_text(text, encoding="utf-8")
            spent += seconds
            if hasty and code is None:
                queue.append((command, False))
                continue
            if code == 0:
                told, tests = "survived", tests + 1
                continue
            passes, usual = self.alone(*command)
            if passes and (code is not None or seconds > PATIENCE * usual):
                told, tests = "killed by time" if code is None else f"killed by {_name(command)}", tests + 1
                break
        return {"ending": told, "tests": tests, "seconds": round(spent, 1)}

    def run(self, arguments: Sequence[str], limit: float) -> tuple[int | None, float]:
        """Exit status, None past the limit, and seconds of a module with its arguments in the clone."""
        assert self._warm.stdin is not None
        assert self._warm.stdout is not None
        self._warm.stdin.write(json.dumps({"arguments": arguments, "limit": limit}) + "\n")
        self._warm.stdin.flush()
        told = json.loads(self._warm.stdout.readline())
        return told["code"], told["seconds"]

    def close(self) -> None:
        self._warm.communicate()


def _name(command: Sequence[str]) -> str:
    return "falsify" if command[0] == "suite" else command[len(PYTEST)]


def summary(entries: Iterable[dict[str, Any]]) -> list[str]:
    """How many were killed, by what, and each survivor."""
    rows = list(entries)
    killed = [row for row in rows if row["ending"].startswith("killed")]
    by = ", ".join(f"{count} {ending}" for ending, count in Counter(row["ending"] for row in killed).most_common())
    told = [f"{len(killed)} of {len(rows)} mutants killed", *([f"  {by}"] if by else [])]
    left = [row for row in rows if not row["ending"].startswith("killed")]
    return told + [
        f"  {row['path']}:{row['line']}: {row['before']} -> {row['after']}  ({row['ending']})" for row in left
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ci.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", help="whose mutants: paper_figures, reference_impls, suite, a file")
    parser.add_argument("--without", action="append", default=[], metavar="PATTERN", help="files to leave alone")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=3600, help="seconds, after which no further mutant is begun")
    parser.add_argument("--log", type=Path, default=Path("mutants.jsonl"))
    given = parser.parse_args(arguments)
    until, key = time.monotonic() + given.budget, [git("rev-parse", "HEAD"), given.seed, given.folders, given.without]
    logged = [json.loads(line) for line in given.log.read_text().splitlines()] if given.log.exists() else []
    done = {row["number"]: row for row in logged if row["key"] == key}
    with contextlib.ExitStack() as stack:
        clone = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "clone"
        git("clone", "--quiet", "--shared", str(ROOT), str(clone))
        trial = stack.enter_context(contextlib.closing(Trial(clone)))
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        for number, mutant in enumerate(drawn(clone, given.folders, given.seed, given.count, given.without)):
            if number in done or time.monotonic() > until:
                continue
            done[number] = {"key": key, "number": number, **asdict(mutant), **trial.ending(mutant)}
            with given.log.open("a") as log:
                log.write(json.dumps(done[number]) + "\n")
            print(
                f"{mutant.path}:{mutant.line}: {mutant.before} -> {mutant.after}: {done[number]['ending']}",
                flush=True,
            )
    print("\n".join(summary(done[number] for number in sorted(done) if number < given.count)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
