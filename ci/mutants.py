"""How hard the tests are: a seeded sample of mutants, each run against the tests nearest to it.

    nox -s mutants -- --seed 1
    nox -s mutants -- rudra isgd --count 40
    nox -s mutants -- suite/batch_size --tests tests/inverse_law/test_fit.py --count 20

Without --tests the mutants are of the papers' measures: of the lines that run while the values of all quantities are
found on the committed runs, with their intervals, their choice of runs and whether they decide. Notes beside a value
are no part of it. The tests are the known answers in ``NEAREST``. The table of committed values is left out, since it
would notice any change. The sample draws places of the code, and at each one mutant of cosmic-ray's. Against it run
those of the tests that come to its line. Not drawn is what no value can hang on: see ``idle`` and ``SAME``.

A mutant is never written to a file. It replaces its module in a process that is forked from this one, where torch and
what else the tests import is loaded already. So tests that start processes of their own would not meet it. Not part
of the automatic checks. The printed survivors are gaps in the tests or equivalents of the code, which is for a reader
to say.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import gc
import importlib
import multiprocessing
import os
import random
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib.machinery import SourceFileLoader
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
NEAREST = {
    "rudra": ("rudra/test_rudra_quantities.py", "rudra/test_rudra_times.py", "rudra/test_rudra_claims.py"),
    "isgd": ("isgd/test_isgd_quantities.py", "isgd/test_isgd_pairs.py", "isgd/test_isgd_cycles.py"),
    "matex_agd": ("matex/test_matex_quantities.py",),
    "crossbow": (
        "crossbow/test_crossbow_measures.py",
        "crossbow/test_crossbow_comparisons.py",
        "crossbow/test_engine_quantities.py",
        "crossbow/test_hosts_asleep.py",
    ),
    "inverse_law": (
        "inverse_law/test_law_quantities.py",
        "inverse_law/test_equivalence.py",
        "inverse_law/test_collapse.py",
        "inverse_law/test_joint_law.py",
        "inverse_law/test_law_intervals.py",
    ),
}
LOADED = (
    "hypothesis",
    "matplotlib.figure",
    "numpy",
    "pandas",
    "scipy.optimize",
    "scipy.stats",
    "torch",
    "torch.func",
)
HARNESS = ("suite.commands.check",)  # with what it imports, where only papers are mutated
# Operators that put identity for equality or back: of None, small integers and names of groups the two are the same.
SAME = {f"core/ReplaceComparisonOperator_{swap}" for swap in ("Eq_Is", "Is_Eq", "NotEq_IsNot", "IsNot_NotEq")}
# Seconds of processor time after which a mutant counts as killed: these, and so many times those of all tests.
LEAST, PATIENCE = 10.0, 3


class Mutant(NamedTuple):
    """The ``occurrence``-th change that an operator of cosmic-ray's can make to a file, at ``place``."""

    path: Path
    operator: str
    occurrence: int
    place: tuple[int, int]

    def code(self) -> str:
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator

        return str(mutate_code(self.path.read_text(encoding="utf-8"), get_operator(self.operator)(), self.occurrence))

    def difference(self) -> str:
        name = str(self.path.relative_to(ROOT))
        before, after = self.path.read_text(encoding="utf-8").split("\n"), self.code().split("\n")
        return "\n".join(difflib.unified_diff(before, after, name, name, n=1, lineterm=""))


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file."""
    from cosmic_ray.ast import ast_nodes, get_ast_from_path
    from cosmic_ray.plugins import get_operator, operator_names

    nodes, left_out = list(ast_nodes(get_ast_from_path(path))), idle(path.read_text(encoding="utf-8"))
    for name in sorted(set(operator_names()) - SAME):
        if not (operator := get_operator(name)).arguments():
            places = [start for node in nodes for start, _ in operator().mutation_positions(node)]
            for count, place in enumerate(places):
                if not any(start <= place < end for start, end in left_out):
                    yield Mutant(path, name, count, place)


def idle(code: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the parts of a file begin and end, by line and column, that no value can hang on."""
    parts: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(code)):
        # Annotations are never evaluated: every file begins with ``from __future__ import annotations``.
        if isinstance(node, ast.AnnAssign | ast.arg):
            parts.append(node.annotation)
        if isinstance(node, ast.FunctionDef):
            parts.append(node.returns)
        # An error says why there is no value. Whether it is raised hangs on the condition before it.
        if isinstance(node, ast.Raise):
            parts.append(node)
        # ``zip(strict=True)`` is the same value or an error.
        if isinstance(node, ast.keyword) and node.arg == "strict":
            parts.append(node)
    return [
        ((part.lineno, part.col_offset), (part.end_lineno, part.end_col_offset))  # type: ignore[attr-defined]
        for part in parts
        if part is not None
    ]


def sample(found: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """One mutant at each of ``count`` places."""
    draw = random.Random(seed)
    places: dict[tuple[Path, tuple[int, int]], list[Mutant]] = defaultdict(list)
    for mutant in found:
        places[mutant.path, mutant.place].append(mutant)
    return [draw.choice(places[place]) for place in draw.sample(sorted(places), min(count, len(places)))]


# ---------------------------------------------------------------- in a forked process


def measured_lines(name: str) -> dict[Path, set[int]]:
    """The lines of a paper's files that run while the values of its quantities are found on the committed runs."""
    from suite.claims.judge import PROFILES
    from suite.papers.artifact import Missing, Quantity
    from suite.papers.catalogue import paper
    from suite.papers.evidence import committed
    from suite.runs.archive import Layered

    source = Layered(committed())
    # No note is made of a quantity that is found by way of others, either.
    Quantity.note = property(lambda self: "", lambda self, note: None)  # type: ignore[assignment, misc]
    run = coverage([f"{ROOT}/paper_figures/{name}/*"])
    for artifact in paper(name).artifacts:
        for profile in PROFILES:
            frame = artifact.read(source, profile)
            for quantity in {**artifact.quantities, **artifact.more(frame)}.values():
                with suppress(Missing), run.collect():
                    quantity.of(frame)
    return {Path(file): set(run.get_data().lines(file)) for file in run.get_data().measured_files()}


def coverage(files: Sequence[str]) -> Any:
    """What notes which lines of some files run."""
    from coverage import Coverage

    return Coverage(data_file=None, config_file=False, include=files)


def silent(tests: Sequence[str], *plugins: object) -> bool:
    """Whether tests pass, run in this process without a word."""
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    given = ["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning", *tests]
    return pytest.main(given, [*plugins]) == pytest.ExitCode.OK


class Run(NamedTuple):
    """Of a run without a mutant: by file and line the tests that come to it, "" where they are collected; seconds."""

    tests: dict[str, dict[int, list[str]]]
    seconds: float

    def nearest(self, mutant: Mutant) -> list[str]:
        """The tests that come to a mutant's line, or to the last one before it that any comes to; none for all."""
        lines = self.tests.get(str(mutant.path), {})
        found = lines.get(max((line for line in lines if line <= mutant.place[0]), default=0), [""])
        return [] if "" in found else sorted(found)


class Contexts:
    """A plugin of pytest that tells a measurement of lines which test runs."""

    def __init__(self, run: Any):
        self.run = run

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.run.switch_context(nodeid)

    def pytest_runtest_logfinish(self) -> None:
        self.run.switch_context("")


def without_mutant(tests: Sequence[str], files: Iterable[Path]) -> Run | None:
    """What comes to which lines; None where the tests fail."""
    run = coverage([str(file) for file in files])
    begun = time.process_time()
    with run.collect():
        passed = silent(tests, Contexts(run))
    data = run.get_data()
    lines = {file: data.contexts_by_lineno(file) for file in data.measured_files()}
    return Run(lines, time.process_time() - begun) if passed else None


def survives(mutant: Mutant, tests: Sequence[str], limit: float) -> bool:
    """Whether tests pass with a mutant in place of its module, within ``limit`` seconds of processor time."""
    code, read = mutant.code(), SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> Any:
        return compile(code, loader.path, "exec") if Path(loader.path) == mutant.path else read(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    signal.signal(signal.SIGVTALRM, signal.default_int_handler)  # pytest ends at a KeyboardInterrupt
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    return silent(tests)


# ---------------------------------------------------------------- the command


def forked(tasks: Sequence[Callable[[], Any]], workers: int) -> list[Any]:
    """What these functions return, each called in a fork of this process; None for one whose process died."""
    fork = multiprocessing.get_context("fork")
    results: list[Any] = [None] * len(tasks)
    running: dict[Connection, int] = {}
    waiting = list(enumerate(tasks))[::-1]
    while waiting or running:
        while waiting and len(running) < workers:
            at, task = waiting.pop()
            ours, theirs = fork.Pipe(duplex=False)
            fork.Process(target=lambda task=task, theirs=theirs: theirs.send(task())).start()
            theirs.close()
            running[ours] = at
        for each in wait(running):
            with suppress(EOFError):
                results[running[each]] = each.recv()
            del running[each]
    return results


class Target(NamedTuple):
    """Files to mutate, at these lines where they are named, the tests for them, and how many mutants."""

    name: str
    lines: dict[Path, Container[int] | None]
    tests: list[str]
    count: int


def of_papers(papers: Sequence[str], count: int, workers: int) -> list[Target]:
    """The measures of papers, with as many mutants of each as of the others."""
    lines = forked([partial(measured_lines, name) for name in papers], workers)
    tests = [[str(ROOT / "tests" / test) for test in NEAREST[name]] for name in papers]
    return [Target(*each, count // len(papers)) for each in zip(papers, lines, tests, strict=True)]


def of_modules(modules: Sequence[str], tests: Sequence[str], count: int) -> list[Target]:
    """Files, or all files of folders, as one target."""
    paths = [ROOT / name for name in modules]
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    return [Target(", ".join(modules), dict.fromkeys(files), list(tests), count)]


def survivors(target: Target, seed: int, workers: int) -> list[Mutant]:
    """Run the tests on each mutant of a sample; prints a line. Raises SystemExit where they fail without a mutant."""
    found: list[Mutant] = []
    for path, lines in sorted(target.lines.items()):
        found += (mutant for mutant in mutants(path) if lines is None or mutant.place[0] in lines)
    chosen = sample(found, target.count, seed)
    (run,) = forked([partial(without_mutant, target.tests, [*target.lines])], 1)
    if run is None:
        sys.exit(f"{' '.join(target.tests)} fail without a mutant: run them with pytest")
    limit = LEAST + PATIENCE * run.seconds
    outcomes = forked(
        [partial(survives, mutant, run.nearest(mutant) or target.tests, limit) for mutant in chosen], workers
    )
    alive = [mutant for mutant, survived in zip(chosen, outcomes, strict=True) if survived]
    print(f"{target.name}: {len(chosen) - len(alive)} of {len(chosen)} killed", flush=True)
    return alive


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ci.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "of", nargs="*", default=[*NEAREST], help="papers (none: all), or with --tests files or folders"
    )
    parser.add_argument("--tests", nargs="+", default=(), help="pytest's arguments for these files")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    chosen = parser.parse_args(arguments)
    if not chosen.tests and (other := set(chosen.of) - NEAREST.keys()):
        parser.error(f"{', '.join(sorted(other))}: name papers ({', '.join(NEAREST)}), or give --tests for files")
    begun = time.monotonic()
    os.chdir(ROOT)
    for name in LOADED if chosen.tests else LOADED + HARNESS:
        importlib.import_module(name)
    gc.freeze()  # a fork need not look through what is loaded, again and again, for what it could free
    if chosen.tests:
        targets = of_modules(chosen.of, chosen.tests, chosen.count)
    else:
        targets = of_papers(chosen.of, chosen.count, chosen.workers)
    alive = [mutant for target in targets for mutant in survivors(target, chosen.seed, chosen.workers)]
    spent = sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{len(alive)} survived; {time.monotonic() - begun:.0f} s, of a processor {spent:.0f} s")
    print(*(mutant.difference() for mutant in alive), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
