"""Which old code is known to compute the present code's numbers: ``python -m ci.same_numbers [REVISION ...]``.

For each revision behind committed runs (or each named) the canaries are trained from its own tree, by the libraries
installed here, and compared with those of the present tree. Where all canaries of an experiment end in the same bits,
the fingerprints of its code then and now go into ``evidence/same_numbers.json`` as a pair (``suite.papers.code``).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ci import canaries
from suite.papers.code import OTHER, SAME, code_of, made_by, table
from suite.papers.evidence import committed, folders
from suite.papers.registry import experiment
from suite.runs.archive import Layered, Runs
from suite.runs.comparison import identical
from suite.runs.environment import ROOT
from suite.runs.files import write_whole
from suite.runs.store import Store, StoreError

Pairs = set[tuple[str, str, str, str]]  # experiment, old fingerprint, new fingerprint, revision


def fingerprints() -> dict[str, dict[str, str]]:
    """By revision and experiment, the fingerprint of the code behind committed runs that today's did not make.

    Runs of a tree with changes, or whose revision nobody knows, have none that could be trained again.
    """
    runs = Layered(committed())
    found: dict[str, dict[str, str]] = {}
    for run_id in sorted(runs.ids()):
        run = runs.read(run_id)
        named = table().get(run_id) or ({} if run.environment.get("dirty") else run.environment)
        if (revision := named.get("revision")) and made_by(run) == OTHER:
            found.setdefault(revision, {})[run.spec.experiment] = code_of(run)
    return found


def trained(revision: str, folder: Path) -> Store:
    """The canaries of a revision, by its own code. Raises StoreError where it trains none."""
    tree = folder / "tree"
    git = ["git", "-C", str(ROOT)]
    subprocess.run([*git, "worktree", "add", "--detach", str(tree), revision], check=True, capture_output=True)
    try:
        # it ends with 1 where its own baseline is of other libraries; what it trained is stored by then
        subprocess.run([sys.executable, "-m", "ci.canaries", "--store", str(folder / "store")], cwd=tree, check=False)
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=True, capture_output=True)
    return Store(folder / "store")


def equal(then: Runs, now: Runs) -> set[str]:
    """The experiments whose present canaries are all stored on both sides, and end in the same bits."""
    held, good = then.ids(), dict[str, bool]()
    for spec in canaries.specs():
        same = spec.id in held and identical(then.read(spec.id), now.read(spec.id))
        good[spec.experiment] = good.get(spec.experiment, True) and same
    return {name for name, same in good.items() if same}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="*", help="of those behind committed runs; none: all")
    chosen = parser.parse_args().revision
    known = fingerprints()
    pairs: Pairs = set()
    with tempfile.TemporaryDirectory() as folder:
        now = canaries.train(Path(folder, "now"))
        for revision, codes in known.items():
            if chosen and not any(revision.startswith(each) for each in chosen):
                continue
            Path(folder, revision).mkdir()
            try:
                same = equal(trained(revision, Path(folder, revision)), now)
            except StoreError:
                print(f"{revision}: its tree trains no canaries", flush=True)
                continue
            pairs |= {(name, codes[name], experiment(name).code, revision) for name in same & set(codes)}
            print(f"{revision}: to the bit {', '.join(sorted(same)) or 'none'}", flush=True)
    path = folders()[0] / SAME
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    pairs |= {(row["experiment"], row["old"], row["new"], row["revision"]) for row in old}
    rows = [dict(zip(("experiment", "old", "new", "revision"), row, strict=True)) for row in sorted(pairs)]
    write_whole(path, (json.dumps(rows, indent=1) + "\n").encode())
    print(f"{len(rows)} pairs of code in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
