"""How hard the tests are: a seeded sample of cosmic-ray's mutants of some code, each run against some tests.

    nox -s mutants -- paper_figures/rudra --tests tests/rudra --count 100

The mutants are of the last commit, in a clone that is thrown away. The sample draws places of the code, and at each
one mutant. Not part of the automatic checks: a mutant takes as long as its tests take to fail. The printed survivors
are gaps in the tests or equivalents of the code, which is for a reader to say.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from suite.runs.environment import ROOT

CONFIG = """\
[cosmic-ray]
module-path = {modules}
timeout = {timeout}
excluded-modules = []
test-command = "{python} -m pytest -q -x -p no:cacheprovider {tests}"
[cosmic-ray.distributor]
name = "local"
"""


def sample(session: Path, count: int, seed: int) -> None:
    """Leave in a session one mutant at each of ``count`` places."""
    from cosmic_ray.work_db import use_db

    draw = random.Random(seed)
    with use_db(str(session)) as work:
        places: dict[tuple[str, tuple[int, int]], list[object]] = {}
        for item in sorted(work.work_items, key=lambda item: repr(item.mutations)):
            at = item.mutations[0]
            if (at.definition_name or "").startswith("draw"):
                continue  # drawings have tests of their own: the structure of every picture
            places.setdefault((str(at.module_path), at.start_pos), []).append(item)
        chosen = [draw.choice(places[place]) for place in draw.sample(sorted(places), min(count, len(places)))]
        work.clear()
        work.add_work_items(chosen)


def told(session: Path) -> Iterable[str]:
    """How many mutants were killed, and what each survivor changed."""
    from cosmic_ray.work_db import use_db
    from cosmic_ray.work_item import TestOutcome

    with use_db(str(session)) as work:
        done = [result for _, result in work.completed_work_items]
    alive = [result for result in done if result.test_outcome == TestOutcome.SURVIVED]
    yield f"{len(done) - len(alive)} of {len(done)} mutants killed"
    yield from (f"\nsurvived:\n{result.diff}" for result in alive)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ci.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="+", help="files or folders of the repository")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest runs against each mutant")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds of a mutant's tests")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        clone, session = Path(folder) / "clone", Path(folder) / "session.sqlite"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        modules = [str(clone / name) for name in chosen.modules]  # a folder means all its files
        config, tests = Path(folder) / "mutants.toml", " ".join(chosen.tests)
        config.write_text(CONFIG.format(modules=modules, timeout=chosen.timeout, tests=tests, python=sys.executable))
        path = os.pathsep.join(filter(None, (str(clone), os.environ.get("PYTHONPATH"))))  # before what is installed
        tool = partial(subprocess.run, check=True, cwd=clone, env={**os.environ, "PYTHONPATH": path})
        command = [sys.executable, "-m", "cosmic_ray.cli"]
        tool([*command, "baseline", str(config)])  # the tests pass without a mutant
        tool([*command, "init", str(config), str(session)])
        sample(session, chosen.count, chosen.seed)
        tool([*command, "exec", str(config), str(session)])
        print(*told(session), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
