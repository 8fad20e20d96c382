"""How hard the tests are: a seeded sample of cosmic-ray's mutants, each run against the tests nearest to it.

    nox -s mutants -- --seed 1
    nox -s mutants -- rudra isgd --count 40
    nox -s mutants -- suite/batch_size --tests tests/inverse_law/test_fit.py --count 20

Without --tests the mutants are of papers, and the tests are the known answers in ``NEAREST``. The table of committed
values is left out, since it would notice any change. The sample draws places of the code, and at each one mutant.

Mutants are of the last commit, in a clone of it. Not part of the automatic checks. The printed survivors are gaps in
the tests, code that only draws, or equivalents of the code, which is for a reader to say.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
CONFIGURATION = """\
[cosmic-ray]
module-path = {modules}
timeout = 600.0
excluded-modules = []
test-command = "{python} -m pytest -q -x -p no:cacheprovider {tests}"
[cosmic-ray.distributor]
name = "local"
[cosmic-ray.filters.operators-filter]
exclude-operators = {same}
"""
# Identity for equality, or back: of None, small integers and names of groups the two are the same. And annotations,
# which are never evaluated: every file begins with ``from __future__ import annotations``.
SAME = [
    "core/ReplaceComparisonOperator_(Eq_Is|Is_Eq|NotEq_IsNot|IsNot_NotEq)",
    "core/ReplaceBinaryOperator_BitOr_.*",
]


def sample(items: Sequence[Any], count: int, seed: int) -> list[Any]:
    """One of cosmic-ray's work items at each of ``count`` places."""
    draw, places = random.Random(seed), defaultdict(list)
    for item in items:
        (mutation,) = item.mutations
        places[str(mutation.module_path), mutation.start_pos].append(item)
    chosen = draw.sample(sorted(places), min(count, len(places)))
    return [draw.choice(sorted(places[at], key=lambda item: str(item.mutations))) for at in chosen]


def survivors(clone: Path, modules: Sequence[str], tests: Sequence[str], count: int, seed: int) -> None:
    """Run the tests on a sample of mutants, and print what was killed and what survived."""
    from cosmic_ray.work_db import WorkDB, use_db

    names = {"modules": list(modules), "tests": " ".join(tests), "python": sys.executable, "same": SAME}
    (clone / "mutants.toml").write_text(CONFIGURATION.format(**names), encoding="utf-8")

    def call(*command: str) -> None:
        around = {**os.environ, "PYTHONPATH": str(clone)}
        subprocess.run([*command], cwd=clone, env=around, check=True)

    call("cosmic-ray", "baseline", "mutants.toml")
    call("cosmic-ray", "init", "mutants.toml", "mutants.sqlite", "--force")
    call("cr-filter-operators", "mutants.sqlite", "mutants.toml")
    with use_db(clone / "mutants.sqlite", WorkDB.Mode.open) as found:
        chosen = sample(found.pending_work_items, count, seed)
        found.clear()
        found.add_work_items(chosen)
    call("cosmic-ray", "exec", "mutants.toml", "mutants.sqlite")
    call("cr-report", "mutants.sqlite", "--surviving-only", "--show-diff")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ci.mutants", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "of", nargs="*", default=[*NEAREST], help="papers (none: all), or with --tests files or folders"
    )
    parser.add_argument("--tests", nargs="+", default=(), help="pytest's arguments for these files")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    if not chosen.tests and (other := set(chosen.of) - NEAREST.keys()):
        parser.error(f"{', '.join(sorted(other))}: name papers ({', '.join(NEAREST)}), or give --tests for files")
    targets = [
        ([f"paper_figures/{name}"], [f"tests/{test}" for test in NEAREST[name]])
        for name in NEAREST
        if name in chosen.of
    ]
    if chosen.tests:
        targets = [(chosen.of, chosen.tests)]
    with TemporaryDirectory() as folder:
        clone = Path(folder, "project")
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        for modules, tests in targets:
            print(", ".join(modules), flush=True)
            survivors(clone, modules, tests, chosen.count // len(targets), chosen.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
