"""The command line. This module is the application's root: it alone, in ``suite``, knows the papers.

Exit codes: 0 nothing red, 1 something red or a regression, 2 unusable input, 3 (``gate`` alone) measured too
little to tell. stdout carries results (with ``--json`` one document and nothing else), stderr progress and errors.
Imports are made inside the commands: ``list``, ``plan`` and ``check`` must not load torch or matplotlib.
"""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from suite.runner.garbage import search_rarely

search_rarely()

import typer  # noqa: E402

# typer reads arguments through pydantic, whose search for plugins among all installed packages takes a tenth of the
# time of ``list``. There are none to be found here.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

app = typer.Typer(
    name="sgd-suite",
    help="Reproduce five papers on data-parallel mini-batch SGD: run, check, draw, report.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


class Profile(StrEnum):
    smoke = "smoke"
    reduced = "reduced"
    paper = "paper"


class Device(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Format(StrEnum):
    svg = "svg"
    png = "png"
    pdf = "pdf"


def complete_selector(incomplete: str) -> list[str]:
    """Papers and artifacts that begin so, for the shell."""
    from suite.papers import index

    names = [row["id"] for row in index.rows()]
    return [n for n in dict.fromkeys([*(n.partition("/")[0] for n in names), *names]) if n.startswith(incomplete)]


def complete_dataset(incomplete: str) -> list[str]:
    """Data sets that begin so, for the shell."""
    from suite.data.catalogue import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)]


def show_version(wanted: bool) -> None:
    """What ``--version`` does."""
    if wanted:
        from suite import __version__

        print(f"sgd-suite {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="show the version and exit")
    ] = False,
) -> None:
    """Reproduce five papers on data-parallel mini-batch SGD: run, check, draw, report."""


Selectors = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTOR]...", help="paper, paper/artifact or a glob; none: all", autocompletion=complete_selector
    ),
]
OnlyMine = Annotated[bool, typer.Option("--only-mine", help="leave the committed evidence out")]
DatasetName = Annotated[
    str, typer.Argument(metavar="NAME", help="as `data list` calls it", autocompletion=complete_dataset)
]
StoreOption = Annotated[Path, typer.Option("--store", help="folder of runs", metavar="D")]
SourceOption = Annotated[
    Path | None,
    typer.Option("--store", help="folder of runs, or an exported file; committed evidence lies beneath", metavar="D"),
]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="folder of data sets in the Hub's layout", metavar="D")
]
Json = Annotated[bool, typer.Option("--json", help="one JSON document on stdout")]
ProfileOption = Annotated[Profile, typer.Option("--profile", help="size of the runs")]
STORE = Path("runs.store")


def say(text: str) -> None:
    print(text, file=sys.stderr)


def emit(document: Any) -> None:
    print(json.dumps(document, indent=1))


def source(store: Path | None, only_mine: bool = False) -> Any:
    """The store to judge from, with the committed evidence beneath it unless the user's own runs alone count."""
    from suite.papers.evidence import of_user, with_committed

    return of_user(store) if only_mine else with_committed(store)


@app.command("list")
def list_(selector: Selectors = None, *, store: SourceOption = None, as_json: Json = False) -> None:
    """Artifacts and claims, whose runs there are and what is missing."""
    from suite.commands.list_ import lines, listing

    rows = listing(selector or [], store)
    if as_json:
        emit(rows)
    else:
        print("\n".join(lines(rows)))


@app.command()
def plan(
    selector: Selectors = None,
    *,
    profile: ProfileOption,
    store: SourceOption = None,
    data: DataOption = None,
    seconds: Annotated[
        float | None,
        typer.Option("--calibrate", min=1, help="time pieces of the runs here for so long first", metavar="SECONDS"),
    ] = None,
    device: Annotated[Device, typer.Option(help="where --calibrate computes gradients")] = Device.auto,
    as_json: Json = False,
) -> None:
    """The runs a selection would make, their estimated time and memory, and the data they need.

    Times are those of one core of a reference CPU until --calibrate has measured this machine: the store keeps what
    it found, and later plans use it.
    """
    from suite.commands import plan as planning
    from suite.commands.list_ import committed_ids
    from suite.papers.evidence import ids_of_user
    from suite.papers.selection import select
    from suite.runner.calibration import known

    planned = planning.plan(select(selector or []), profile)
    kept = planning.folder_for_calibration(store or STORE) if seconds else store or STORE
    yours, shipped = ids_of_user(store, new=True), committed_ids()
    calibration = known(kept)
    if seconds:
        todo = [p for p in planned if p.spec.id not in yours]
        calibration = planning.calibrate(todo, kept, device, data, seconds)
    planned = planning.calibrated(planned, calibration)
    summary = planning.summary(planned, yours, shipped, profile, data, calibration)
    if as_json:
        emit({**summary, "plan": planning.rows(planned, yours)})
    else:
        print("\n".join(planning.lines(planned, yours, summary)))


@app.command()
def run(
    selector: Selectors = None,
    *,
    profile: ProfileOption,
    store: StoreOption = STORE,
    data: DataOption = None,
    device: Annotated[Device, typer.Option(help="where gradients are computed")] = Device.auto,
    workers: Annotated[int, typer.Option(min=1, help="parallel processes, one thread each")] = 1,
    budget: Annotated[float | None, typer.Option(min=1, help="seconds after which to stop cleanly")] = None,
) -> None:
    """Compute and store the runs of a selection; what is stored already is not computed again."""
    from suite.commands.run import run_selection

    raise typer.Exit(run_selection(selector or [], profile, store, data, device, workers, budget))


@app.command()
def check(
    selector: Selectors = None,
    *,
    profile: Annotated[Profile | None, typer.Option(help="judge at this profile only")] = None,
    store: SourceOption = None,
    only_mine: OnlyMine = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="the reason of every verdict")] = False,
    as_json: Json = False,
    junit: Annotated[Path | None, typer.Option(help="write JUnit XML", metavar="F")] = None,
) -> None:
    """A verdict for every claim. Exit 1 when one is red."""
    from suite.commands.check import check_selection
    from suite.papers.evidence import ids_of_user

    judged = source(store, only_mine)
    raise typer.Exit(
        check_selection(
            selector or [], profile, judged, ids_of_user(store), as_json=as_json, junit_path=junit, verbose=verbose
        )
    )


@app.command()
def falsify(selector: Selectors = None, *, store: SourceOption = None, as_json: Json = False) -> None:
    """Every counted claim against evidence from worlds in which it is false; exit 1 when a verdict does not flip."""
    from suite.commands.falsify import falsify_selection

    raise typer.Exit(falsify_selection(selector or [], source(store), as_json))


@app.command()
def register(
    because: Annotated[str, typer.Option("--because", help="why rules, measures or runs changed")],
    revision: Annotated[str, typer.Option(help="whose rules the register holds today")] = "HEAD",
) -> None:
    """Append to the register what the rules say today, beside what those of before say of the same runs."""
    from suite.commands.register import register as append

    for sentence in append(because, revision):
        print(sentence)


@app.command()
def figures(
    selector: Selectors = None,
    *,
    profile: Annotated[Profile | None, typer.Option(help="draw this profile only")] = None,
    store: SourceOption = None,
    only_mine: OnlyMine = False,
    out: Annotated[Path, typer.Option(help="folder for the figures", metavar="D")] = Path("figures"),
    form: Annotated[Format, typer.Option("--format", help="file format")] = Format.svg,
) -> None:
    """Draw every figure whose runs are stored."""
    from suite.report.drawing import draw_selection

    for line in draw_selection(selector or [], source(store, only_mine), out, form, profile):
        say(line)


@app.command()
def report(
    *,
    store: SourceOption = None,
    out: Annotated[Path, typer.Option(help="folder for the report", metavar="D")] = Path("report"),
) -> None:
    """Write one self-contained HTML file with every artifact, number and verdict."""
    from suite.report.page import write_report

    print(write_report(source(store), out))


@app.command()
def compare(
    base: Annotated[Path, typer.Argument(help="store or exported file")],
    new: Annotated[Path, typer.Argument(help="store or exported file")],
    *,
    either_way: Annotated[bool, typer.Option("--either-way", help="a fall is as red as a rise")] = False,
    as_json: Json = False,
) -> None:
    """Regressions between two stores of the same runs. Exit 1 when there is one."""
    from suite.runs.archive import open_runs
    from suite.runs.comparison import compare_runs, lines

    found = compare_runs(open_runs(base), open_runs(new), either_way=either_way)
    if as_json:
        emit(found)
    else:
        print("\n".join(lines(found)))
    raise typer.Exit(1 if found["regressions"] else 0)


@app.command()
def gate(
    new: Annotated[list[Path], typer.Argument(help="benchmark documents of one state of the code, one per session")],
    *,
    base: Annotated[Path | None, typer.Option(help="compare with this document instead", metavar="F")] = None,
    baselines: Annotated[
        Path | None, typer.Option(help="folder of baselines by machine class; default ci/baselines", metavar="D")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="make these the baseline of their machine class")] = False,
    add: Annotated[bool, typer.Option("--add", help="as --accept, keeping the sessions it has")] = False,
    as_json: Json = False,
) -> None:
    """Slowdowns against the baseline of this machine class. Exit 1 when there is one, 3 when one could hide."""
    from suite.speed import baselines as kept
    from suite.speed import gate as regression

    folder = baselines or kept.FOLDER
    documents = [kept.read(path) for path in new]
    if add:
        documents.insert(0, kept.read(kept.find_baseline(folder, documents[0]["machine"]["class"])))
    if accept or add:
        print(f"baseline written to {kept.accept(documents, folder)}")
        return
    measured = kept.baseline(documents)
    known = kept.read(base or kept.find_baseline(folder, measured["machine"]["class"]))
    found = regression.compare(kept.baseline([known]), measured)
    if as_json:
        emit(found)
    else:
        print("\n".join(regression.lines(found)))
    raise typer.Exit(regression.exit_code(found))


@app.command()
def export(
    selector: Selectors = None,
    *,
    store: StoreOption = STORE,
    out: Annotated[Path, typer.Option(help="file to write", metavar="F")] = Path("runs.zip"),
    profile: Annotated[Profile | None, typer.Option(help="only the runs of this profile")] = None,
) -> None:
    """Write stored runs into one file."""
    from suite.papers.evidence import export_selection

    print(export_selection(selector or [], store, out, profile))


@app.command()
def merge(
    file: Annotated[Path, typer.Argument(help="a file that export wrote")], *, store: StoreOption = STORE
) -> None:
    """Take an exported file into a store; nothing is taken from one that does not verify."""
    from suite.runs.archive import Archive
    from suite.runs.archive import merge as take
    from suite.runs.store import Store

    new, present = take(Archive(file), Store(store, create=True))
    print(f"{new} runs added, {present} already there")


data_app = typer.Typer(help="Data sets: list, fetch, verify.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@data_app.command("list")
def data_list(*, data: DataOption = None, as_json: Json = False) -> None:
    """The data sets the papers use, and whether they are here."""
    from suite.data.catalogue import DATASETS, available

    rows = [{"name": name, **dict(zip(("here", "where"), available(name, data), strict=True))} for name in DATASETS]
    if as_json:
        emit(rows)
    else:
        for row in rows:
            print(f"{row['name']:<16} {'here' if row['here'] else 'missing':<8} {row['where']}")


@data_app.command("fetch")
def data_fetch(name: DatasetName, *, data: DataOption = None) -> None:
    """Download a data set at its pinned revision."""
    from suite.data.catalogue import fetch

    print(fetch(name, data) or f"{name} is embedded: nothing to download")


@data_app.command("verify")
def data_verify(name: DatasetName | None = None, *, data: DataOption = None) -> None:
    """Read data sets and compare sizes, labels and statistics with what they must be. Exit 1 when one differs."""
    from suite.data.catalogue import DATASETS, available
    from suite.data.verify import verify

    reports = [verify(each, data) for each in ([name] if name else [n for n in DATASETS if available(n, data)[0]])]
    for found in reports:
        for part in found.checks:
            print(f"{found.name:<16} {'ok' if part.passed else 'WRONG':<6} {part.name}: {part.detail}")
    raise typer.Exit(0 if all(found.passed for found in reports) else 1)


@app.command()
def doctor(*, data: DataOption = None, as_json: Json = False) -> None:
    """This machine: versions, devices, data found, and which profiles can run."""
    from suite.commands.doctor import diagnose, lines

    facts = diagnose(data)
    if as_json:
        emit(facts)
    else:
        print("\n".join(lines(facts)))


@app.command()
def reproduce(
    selector: Selectors = None,
    *,
    profile: ProfileOption = Profile.smoke,
    store: StoreOption = STORE,
    data: DataOption = None,
    device: Annotated[Device, typer.Option(help="where gradients are computed")] = Device.auto,
    workers: Annotated[int, typer.Option(min=1, help="parallel processes, one thread each")] = 1,
    budget: Annotated[float | None, typer.Option(min=1, help="seconds after which to stop cleanly")] = None,
    out: Annotated[Path, typer.Option(help="folder for figures and report", metavar="D")] = Path("report"),
    accept: Annotated[bool, typer.Option("--accept", help="commit these verdicts as the expected ones")] = False,
) -> None:
    """The main job: run, check, figures and report. Exit 0 when every verdict equals the committed one."""
    from suite.commands.reproduce import reproduce_selection

    raise typer.Exit(reproduce_selection(selector or [], profile, store, data, device, workers, budget, out, accept))


def main() -> None:
    """Entry point: errors a user can act on end in one sentence on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)  # what typer.Exit carries
        sys.stdout.flush()
    except KeyboardInterrupt:
        say("interrupted; finished runs are stored, the one under way resumes from its checkpoint")
        code = 130
    except BrokenPipeError:  # the reader of stdout left, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except Exception as error:
        code = explain(error)
    sys.exit(code or 0)


def explain(error: Exception) -> int:
    """Say what went wrong: a sentence for what a user can act on, a traceback for a fault of ours."""
    import traceback

    # Some versions of typer carry a click of their own, so click's errors are known by name and shape.
    kind = type(error).__name__
    if kind == "Abort":
        return 130
    if kind == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
    elif hasattr(error, "format_message"):
        say(f"sgd-suite: {' '.join(error.format_message().split())}")
    elif isinstance(error, ValueError | OSError):
        say(f"sgd-suite: {' '.join(str(error).split())}")
    else:
        traceback.print_exception(error)
    return 2
