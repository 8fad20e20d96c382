"""Renew what is made from papers and their evidence: the index, and tables in README and docs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from suite.commands import options
from suite.lazy import pd
from suite.models import table
from suite.papers import catalogue, register
from suite.papers.catalogue import PAPERS, SelectorError, committed, experiment, homes, papers_of
from suite.papers.grades import DIGITS
from suite.report import data, readme
from suite.report.numerals import alike
from suite.runs.archive import Layered
from suite.runs.run import Run

HOURS = "hours.csv"
RUNS = Path("evidence", "runs.txt")
SCRIPTS = {  # generated file -> the tests' script that prints it
    "docs/support-matrix.md": "tests/optim/matrix.py",
    "tests/networks.txt": "tests/test_models_in_words.py",
}
BY = ["experiment", "network", "data", "width", "machine", "path"]


def command(
    papers: options.Papers = None,
    *,
    check: Annotated[bool, typer.Option("--check", help="compare only; exit 1 when a file is out of date")] = False,
) -> None:
    said, stale, moved = [], 0, 0
    for home in homes_of(papers or []):
        if (root := project(home)) is None:
            said.append(f"{home}: installed without its project; nothing to renew")
            continue
        for path, made in generated(home, root).items():
            text, owed = kept(path, made, home)
            said += owed
            moved += len(owed)
            if path.exists() and alike(path.read_text(encoding="utf-8"), text):
                continue
            stale += 1
            if not check:
                path.write_text(text, encoding="utf-8")
            said.append(f"{path}: {'out of date' if check else 'renewed'}")
        if home.resolve() == readme.OWN:
            told = pictures(root, check=check)
            stale += len(told)
            said += told
    print("\n".join(said or ["all generated files are up to date"]))
    raise typer.Exit(1 if moved or (check and stale) else 0)


def homes_of(papers: Sequence[str]) -> dict[Path, list[str]]:
    """By home with printed values, those of its papers that were named, or all.

    Raises SelectorError for an unknown paper, and where none that was named has printed values.
    """
    if unknown := [name for name in papers if name not in PAPERS]:
        raise SelectorError(f"nothing is called {unknown[0]!r}; the papers are {', '.join(PAPERS)}")
    found = {home: [name for name in papers_of(home) if not papers or name in papers] for home in homes()}
    found = {home: names for home, names in found.items() if names and (home / "published").is_dir()}
    if papers and not found:  # an experiment of one's own
        raise SelectorError(f"{papers[0]} has no folder `published` of printed values: nothing of it is generated")
    return found


def project(home: Path) -> Path | None:
    """The folder of the project that a home belongs to; None for one that was installed without it."""
    return next(
        (folder for folder in (home.parent, home.parent.parent) if (folder / "pyproject.toml").is_file()), None
    )


def generated(home: Path, root: Path) -> dict[Path, str]:
    """What the generated files of a home's project must hold. Raises ReadmeError where markers are missing.

    In the project that holds a paper's package: the index that ``list`` reads, every claim's value with its interval
    and verdict as one table (``results.csv``), hours planned and spent by runs that counted them (``hours.csv``), the
    committed runs (``evidence/runs.txt``), and what stands between the markers of its README. In this project also
    the tables in ``docs``, what became of the claims of before, what the optimisers support, counts and layers of the
    networks, and beside these texts every picture of the documentation.

    A text is up to date when its numbers differ by one in the last digit at most, and a picture when it shows what
    would be drawn: another processor rounds otherwise. Values of claims are compared as ``suite.report.data`` says.
    """
    own, source, evidence = home.resolve() == readme.OWN, Layered(committed()), Layered(committed(home))
    judged = readme.judged_of(papers_of(home), source)
    made = {home / catalogue.INDEX: catalogue.index_text(home), home / data.FILE: data.written(data.rows(judged))}
    if planned := hours(evidence.read(run_id) for run_id in sorted(evidence.ids())):
        made[home / HOURS] = planned
    if (held := stored(home)) or (home / RUNS).exists():
        made[home / RUNS] = held
    if own:
        made[table.PATH] = table.regenerate()
        made |= {root / path: printed_by(root, script) for path, script in SCRIPTS.items()}
        pages = readme.blocks(judged, source)
    else:  # the README of a project with papers of its own
        pages = {"README.md": {"verdicts": readme.first_table(judged), "results": readme.results(judged)}}
    for name, blocks in pages.items():
        if (path := root / name).exists():
            text = path.read_text(encoding="utf-8")
            for block, wanted in blocks.items():
                text = readme.rewritten(text, block, wanted)
            made[path] = text
    return made


def printed_by(root: Path, script: str) -> str:
    """What a script of the project prints, in a process of its own."""
    around = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, root / script], env=around, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def stored(home: Path) -> str:
    """A line for each run that a home's evidence holds: its id, and a digest of its contents."""
    runs = {f"{run} {digest[:DIGITS]}\n" for archive in committed(home) for run, digest in archive.sealed.items()}
    return "".join(sorted(runs))


def hours(runs: Iterable[Run]) -> str:
    """CSV: per experiment, network, data set, runs computed together, machine and path, hours planned and spent.

    ``planned_hours`` are the plan's, of one core of the reference CPU; ``spent_hours`` those of a processor, all
    sessions of a run together. The plan is today's, with the native step where a network has one, whichever ``path``
    computed the runs. The name of a processor covers hosts that differ by two or three times. So ``ratio`` is that of
    the ``calibrated`` runs alone, which recorded the factor of their host when they ended: their spent hours over
    their planned hours times that factor. It is left out where there are none. Runs on a GPU, on several processes,
    that sleep to compute, or that did not count their seconds have no row; empty without any.
    """
    rows = []
    for run in runs:
        spent, settings = run.environment.get("processor_seconds"), run.spec.settings
        execution = run.environment["execution"]
        if not spent or {"processes", "devices"} & settings.keys() or execution.get("device") == "cuda":
            continue
        made = experiment(run.spec.experiment)
        if made.clock == "asleep":
            continue
        planned, factor = made.seconds(run.spec) / 3600, run.environment.get("host_factor")
        rows.append(
            {
                "experiment": run.spec.experiment,
                "network": _name(settings.get("model")),
                "data": _name(settings.get("data", settings.get("corpus"))),
                "width": execution.get("width", 1),
                "machine": run.environment["machine"].get("cpu", ""),
                "path": execution.get("path", ""),
                "planned_hours": planned,
                "spent_hours": spent / 3600,
                "here": planned * factor if factor else None,  # planned, on the host that computed it
            }
        )
    if not rows:
        return ""
    table = pd.DataFrame(rows).astype({"here": float})
    kinds = table.groupby(BY)
    found = kinds.agg(runs=("here", "size"), calibrated=("here", "count")).join(
        kinds[["planned_hours", "spent_hours"]].sum()
    )
    known = table.dropna(subset="here").groupby(BY)[["spent_hours", "here"]].sum()
    found["ratio"] = known["spent_hours"] / known["here"]
    return str(found.to_csv(lineterminator="\n", float_format="%.3g"))


def _name(setting: Any) -> str:
    """A setting's name, or its sizes where it has none."""
    if not isinstance(setting, Mapping):
        return str(setting or "")
    return str(setting["name"] if "name" in setting else " ".join(f"{key} {setting[key]}" for key in sorted(setting)))


def kept(path: Path, text: str, home: Path) -> tuple[str, list[str]]:
    """A generated text as it is written, and a sentence for each number that may not move and each run that is lost.

    A run that the evidence held and holds no more, or with other contents, stays in the list of runs until somebody
    takes its line away. In the table of results a row that says the same to rounding stays as it is. So does a
    number that moved while its runs did not, until the register gives a reason.
    """
    if not path.exists():
        return text, []
    if path == home / RUNS:
        known, held = path.read_text(encoding="utf-8").splitlines(), text.splitlines()
        lost = sorted(set(known).difference(held))
        said = [f"{path}: the evidence holds {run} no more; delete its line if that is meant" for run in lost]
        return "".join(f"{line}\n" for line in sorted({*known, *held})), said
    if path.name != data.FILE:
        return text, []
    before, now = data.read(path.read_text(encoding="utf-8")), data.read(text)
    owed = unexplained(home, before, now)
    said = [
        f"{claim}: its number moved while its runs did not; `sgd-suite register --because` records why"
        for claim in owed
    ]
    return data.written(data.merged(before, now, owed)), said


def unexplained(home: Path, before: list[data.Row], now: list[data.Row]) -> dict[str, dict[str, Any]]:
    """The committed numbers that moved while their runs did not, and of which the register gives no reason."""
    numbers = {claim: data.number_of(old) for claim, old in data.moved(before, now).items()}
    noted = register.read(home).moved
    return {
        claim: number
        for claim, number in numbers.items()
        if number not in [line["moved"] for line in noted.get(claim, [])]
    }


def pictures(root: Path, *, check: bool) -> list[str]:
    """Draw the pictures of the documentation that are out of date, or only name them; a sentence for each."""
    from suite.report.illustrations import illustrations, unmentioned

    said = []
    for picture in illustrations(root, Layered(committed())):
        if not (why := picture.stale):
            continue
        said.append(f"{picture.path}: {'out of date' if check else 'drawn'} ({why})")
        if not check:
            picture.write()
    for path in unmentioned(root):
        said.append(f"{path}: {'no page shows it' if check else 'deleted, no page shows it'}")
        if not check:
            path.unlink()
    return said
