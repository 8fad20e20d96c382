"""The command line. This module is the application's root: it alone, in ``suite``, knows the papers.

Exit codes: 0 nothing red, 1 something red or a regression, 2 unusable input, 3 (``gate`` alone) measured too
little to tell. stdout carries results (with ``--json`` one document and nothing else), stderr progress and errors.
Imports are made inside the commands: ``list``, ``plan`` and ``check`` must not load torch or matplotlib.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from suite.interruption import Interrupted
from suite.runner.garbage import search_rarely

search_rarely()

import typer  # noqa: E402

from suite.options import (  # noqa: E402
    STORE,
    DataOption,
    Device,
    Format,
    Json,
    Profile,
    ProfileOption,
    Selectors,
    SourceOption,
    StoreOption,
    a_path,
    a_share,
    finite,
)

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


OnlyMine = Annotated[bool, typer.Option("--only-mine", help="leave the committed evidence out")]
DatasetName = Annotated[
    str, typer.Argument(metavar="NAME", help="as `data list` calls it", autocompletion=complete_dataset)
]


def say(text: str) -> None:
    """One line on stderr; what a terminal would obey rather than show is left out."""
    print("".join(c for c in text if c.isprintable()), file=sys.stderr)


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
    from suite.commands.terminal import show

    rows = listing(selector or [], store)
    if as_json:
        emit(rows)
    else:
        show(lines(rows))


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
    from suite.commands.terminal import show
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
        show(planning.lines(planned, yours, summary))


@app.command()
def run(
    selector: Selectors = None,
    *,
    profile: ProfileOption,
    store: StoreOption = STORE,
    data: DataOption = None,
    device: Annotated[Device, typer.Option(help="where gradients are computed")] = Device.auto,
    workers: Annotated[int, typer.Option(min=1, help="parallel processes, one thread each")] = 1,
    budget: Annotated[
        float | None, typer.Option(min=1, callback=finite, help="seconds after which to stop cleanly")
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="leave what other processes compute to them")] = False,
    share: Annotated[str | None, typer.Option(help="only part I of N of the plan, I from 0", metavar="I/N")] = None,
    memory: Annotated[
        int | None, typer.Option(min=1, help="only runs that need at most so many bytes", metavar="BYTES")
    ] = None,
    on: Annotated[str | None, typer.Option("--on", help="hand the runs to this engine's workers: slurm")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="with --on: how many workers")] = None,
    engine_options: Annotated[
        Path | None, typer.Option(help="with --on: the engine's own options, TOML", metavar="F", parser=a_path)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="with --on: print what would be submitted")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="with --on: end when the workers have")] = False,
) -> None:
    """Compute and store the runs of a selection, here or by an engine; what is stored is not computed again."""
    part, chosen = a_share(share), selector or []
    if on is None:
        from suite.commands.run import run_selection

        if jobs or engine_options or dry_run or wait:
            raise typer.BadParameter("--jobs, --engine-options, --dry-run and --wait need --on")
        around = (chosen, profile, store, data, device, workers, budget)
        raise typer.Exit(run_selection(*around, wait=not no_wait, share=part, memory=memory))
    from suite.commands.submit import Request, submit_selection

    if budget or share or memory or no_wait:
        raise typer.BadParameter("--budget, --share, --memory and --no-wait do not go with --on")
    to = Request(on, jobs, engine_options, dry_run, wait)
    raise typer.Exit(submit_selection(chosen, profile, store, data, device, workers, to))


@app.command()
def status(
    *,
    store: StoreOption = STORE,
    watch: Annotated[bool, typer.Option("--watch", help="again every ten seconds, until nothing is left")] = False,
    as_json: Json = False,
) -> None:
    """What of a store's plans is stored, running (where, since when, how far), failed and queued."""
    import time

    from suite.commands import status as state

    found = state.status(store)
    while watch and not as_json and any(found["counts"][name] for name in ("queued", "running")):
        print("\n".join(state.lines(found)), flush=True)
        time.sleep(10)
        found = state.status(store)
    if as_json:
        emit(found)
    else:
        print("\n".join(state.lines(found)))


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
    from suite.runs.files import check_writable

    judged = source(store, only_mine)
    if junit:
        check_writable(junit.parent)
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


@app.command("explain")
def explain_(
    claim: Annotated[str, typer.Argument(metavar="CLAIM", help="paper/artifact/name")], *, store: SourceOption = None
) -> None:
    """One verdict: value, rule, register entry, counterfeits, power, runs and figure."""
    from suite.commands.explain import lines

    for line in lines(claim, source(store)):
        print(line)


@app.command("new-paper")
def new_paper_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="short name, as in NAME/fig1")],
    *,
    into: Annotated[
        Path | None, typer.Option(help="folder to make; default NAME", metavar="D", parser=a_path)
    ] = None,
) -> None:
    """Make a package for another paper, which registers itself: an algorithm, its claims, a figure and tests."""
    from suite.commands.new_paper import new_paper

    for line in new_paper(name, into):
        print(line)


@app.command("refresh")
def refresh_(
    papers: Annotated[list[str] | None, typer.Argument(metavar="[PAPER]...", help="papers; none: all")] = None,
    *,
    check: Annotated[bool, typer.Option("--check", help="compare only; exit 1 when a file is out of date")] = False,
) -> None:
    """Renew what is made from papers and their evidence: the index, and tables in README and docs."""
    from suite.commands.refresh import refresh

    code, said = refresh(papers or [], check=check)
    print("\n".join(said))
    raise typer.Exit(code)


@app.command()
def register(
    papers: Annotated[list[str] | None, typer.Argument(metavar="[PAPER]...", help="papers; none: all")] = None,
    *,
    because: Annotated[str, typer.Option("--because", help="why rules, measures or runs changed")],
    revision: Annotated[str, typer.Option(help="whose rules the register holds today")] = "HEAD",
    reasons: Annotated[
        Path | None, typer.Option(help="TOML: reasons of single claims, by claim or glob", metavar="F", parser=a_path)
    ] = None,
) -> None:
    """Append to the register what the rules say today, beside what those of before say of the same runs."""
    import tomllib

    from suite.commands.register import register as append

    special = tomllib.loads(reasons.read_text(encoding="utf-8")) if reasons else {}
    for sentence in append(because, revision, special, papers or []):
        print(sentence)


@app.command()
def figures(
    selector: Selectors = None,
    *,
    profile: Annotated[Profile | None, typer.Option(help="draw this profile only")] = None,
    store: SourceOption = None,
    only_mine: OnlyMine = False,
    out: Annotated[Path, typer.Option(help="folder for the figures", metavar="D", parser=a_path)] = Path("figures"),
    form: Annotated[Format, typer.Option("--format", help="file format")] = Format.svg,
) -> None:
    """Draw every figure whose runs are stored."""
    from suite.report.drawing import draw_selection
    from suite.runs.files import check_writable

    check_writable(out)
    for line in draw_selection(selector or [], source(store, only_mine), out, form, profile):
        say(line)


@app.command()
def report(
    *,
    store: SourceOption = None,
    out: Annotated[Path, typer.Option(help="folder for the report", metavar="D", parser=a_path)] = Path("report"),
    single: Annotated[bool, typer.Option("--single", help="one self-contained file, D/report.html")] = False,
) -> None:
    """Write a site of static pages with every artifact, number and verdict; only what changed is written again."""
    from suite.papers.evidence import with_committed
    from suite.report.page import write_report
    from suite.report.site.build import write_site
    from suite.runs.files import check_writable

    check_writable(out)
    if single:
        print(write_report(source(store), out))
    else:
        site = write_site(source(store), out, say, partial(with_committed, store))
        say(str(site))
        print(site.index)


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
    new: Annotated[
        list[Path] | None, typer.Argument(help="benchmark documents of one state of the code, one per session")
    ] = None,
    *,
    base: Annotated[Path | None, typer.Option(help="compare with this document instead", metavar="F")] = None,
    baselines: Annotated[
        Path | None, typer.Option(help="folder of baselines by machine class; default ci/baselines", metavar="D")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="make these the baseline of their machine class")] = False,
    add: Annotated[bool, typer.Option("--add", help="as --accept, keeping the sessions it has")] = False,
    anew: Annotated[bool, typer.Option("--anew", help="with --accept: this level is wanted")] = False,
    history: Annotated[
        Path | None,
        typer.Option("--history", help="draw all accepted sessions instead", metavar="F", parser=a_path),
    ] = None,
    as_json: Json = False,
) -> None:
    """Slowdowns against the baseline of this machine class. Exit 1 when there is one, 3 when one could hide."""
    from suite.runs.environment import machine_class
    from suite.speed import baselines as kept
    from suite.speed import gate as regression
    from suite.speed import history as memory

    folder = baselines or kept.FOLDER
    documents = [kept.read(path) for path in new or ()]
    sessions = memory.recall(folder, documents[0]["machine"]["class"] if documents else machine_class())
    if history:
        memory.draw(sessions).savefig(history)
        print("\n".join(memory.lines(sessions)))
        return
    if not documents:
        raise typer.BadParameter("name a benchmark document; `nox -s benchmark` writes one")
    if accept or add:
        memory.remember(documents, folder, anew=anew)
    if add:
        documents.insert(0, kept.read(kept.find_baseline(folder, documents[0]["machine"]["class"])))
    if accept or add:
        print(f"baseline written to {kept.accept(documents, folder)}")
        return
    measured = kept.baseline(documents)
    known = kept.read(base or kept.find_baseline(folder, measured["machine"]["class"]))
    found = regression.compare(kept.baseline([known]), measured)
    now = [memory.session(document) for document in documents]
    found["creeping"] = [str(rise) for rise in memory.rises([*sessions, *now])]
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
    out: Annotated[Path, typer.Option(help="file to write", metavar="F", parser=a_path)] = Path("runs.zip"),
    profile: Annotated[Profile | None, typer.Option(help="only the runs of this profile")] = None,
) -> None:
    """Write stored runs into one file."""
    from suite.papers.evidence import export_selection
    from suite.runs.files import check_writable

    check_writable(out.parent)
    print(export_selection(selector or [], store, out, profile))


@app.command()
def merge(
    file: Annotated[Path, typer.Argument(help="a file that export wrote")], *, store: StoreOption = STORE
) -> None:
    """Take an exported file into a store, whole or not at all. Exit 1 when it contests a stored run."""
    from suite.papers.verdicts import is_timed
    from suite.runs.archive import Archive
    from suite.runs.archive import merge as take
    from suite.runs.contest import relation
    from suite.runs.store import Store

    relate = lambda held, brought: relation(held, brought, timed=is_timed(held.spec.experiment))
    done = take(Archive(file), Store(store, create=True), relate)
    other = f", {len(done.others)} kept as another execution made them" if done.others else ""
    print(f"{len(done.new)} runs added, {len(done.present)} already there{other}")
    for run_id in done.contested:
        print(f"CONTESTED {run_id}: other tables than the store's of the same execution; both are kept, see `check`")
    raise typer.Exit(1 if done.contested else 0)


data_app = typer.Typer(help="Data sets: list, fetch, verify.", no_args_is_help=True)
app.add_typer(data_app, name="data")


@data_app.command("list")
def data_list(*, data: DataOption = None, as_json: Json = False) -> None:
    """The data sets the papers use, and whether they are here."""
    from suite.commands.terminal import show
    from suite.data.catalogue import DATASETS, available

    rows = [{"name": name, **dict(zip(("here", "where"), available(name, data), strict=True))} for name in DATASETS]
    if as_json:
        emit(rows)
    else:
        show(f"{row['name']:<16} {'here' if row['here'] else 'missing':<8} {row['where']}" for row in rows)


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
def doctor(
    *,
    data: DataOption = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", help="test the file system of this store with two processes", metavar="D", parser=a_path
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """This machine: versions, devices, data found, which profiles can run. Exit 1 where --store cannot be shared."""
    from suite.commands.doctor import diagnose, lines
    from suite.commands.terminal import show

    facts = diagnose(data, store)
    if as_json:
        emit(facts)
    else:
        show(lines(facts))
    raise typer.Exit(0 if facts.get("store", {"ok": True})["ok"] else 1)


@app.command()
def reproduce(
    selector: Selectors = None,
    *,
    profile: ProfileOption = Profile.smoke,
    store: StoreOption = STORE,
    data: DataOption = None,
    device: Annotated[Device, typer.Option(help="where gradients are computed")] = Device.auto,
    workers: Annotated[int, typer.Option(min=1, help="parallel processes, one thread each")] = 1,
    budget: Annotated[
        float | None, typer.Option(min=1, callback=finite, help="seconds after which to stop cleanly")
    ] = None,
    out: Annotated[Path, typer.Option(help="folder for figures and report", metavar="D", parser=a_path)] = Path(
        "report"
    ),
    accept: Annotated[bool, typer.Option("--accept", help="commit these verdicts as the expected ones")] = False,
) -> None:
    """The main job: run, check, figures and report. Exit 0 when every verdict equals the committed one."""
    from suite.commands.reproduce import reproduce_selection
    from suite.runs.files import check_writable

    check_writable(out)
    raise typer.Exit(reproduce_selection(selector or [], profile, store, data, device, workers, budget, out, accept))


def main() -> None:
    """Entry point: errors a user can act on end in one sentence on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)  # what typer.Exit carries
        sys.stdout.flush()
    except Interrupted as interrupted:
        say(str(interrupted))
        code = interrupted.exit_code
    except SystemExit as stop:  # click ends the process itself when the reader of stdout left, and calls it a failure
        code = _nobody_reads() if isinstance(stop.__context__, BrokenPipeError) else stop.code
    except BrokenPipeError:
        code = _nobody_reads()
    except Exception as error:
        code = explain(error)
    sys.exit(code or 0)


def _nobody_reads() -> int:
    """The exit code where the reader of stdout left, as head does; nothing more is written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 128 + signal.SIGPIPE


def explain(error: Exception) -> int:
    """Say what went wrong: a sentence for what a user can act on, a traceback for a fault of ours."""
    import traceback

    # Some versions of typer carry a click of their own, so click's errors are known by name and shape.
    kind = type(error).__name__
    if kind == "Abort":  # what click makes of Ctrl-C where no run is under way
        say(str(Interrupted(signal.SIGINT)))
        return Interrupted(signal.SIGINT).exit_code
    if kind == "NoArgsIsHelpError":
        shown: Any = error
        shown.show()
    elif hasattr(error, "format_message"):
        say(f"sgd-suite: {' '.join(error.format_message().split())}")
    elif isinstance(error, ValueError | OSError):
        say(f"sgd-suite: {' '.join(str(error).split())}")
    else:
        traceback.print_exception(error)
    return 2
