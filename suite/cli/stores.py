"""Commands between stores and benchmark documents: compare, export, merge, gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from suite.cli.options import STORE, Json, Profile, Selectors, StoreOption, a_path
from suite.cli.output import emit


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


def export(
    selector: Selectors = None,
    *,
    store: StoreOption = STORE,
    out: Annotated[Path, typer.Option(help="file to write", metavar="F", parser=a_path)] = Path("runs.zip"),
    profile: Annotated[Profile | None, typer.Option(help="only the runs of this profile")] = None,
) -> None:
    """Write stored runs into one file, and all their numbers into a table beside it, F with the ending .parquet."""
    from suite.papers.evidence import export_selection
    from suite.runs.files import check_file

    check_file(out)
    print(export_selection(selector or [], store, out, profile))


def merge(
    file: Annotated[Path, typer.Argument(help="a file that export wrote")], *, store: StoreOption = STORE
) -> None:
    """Take an exported file into a store, whole or not at all. Exit 1 when it contests a stored run."""
    from suite.papers.measurement import is_arithmetic, is_timed
    from suite.runs.archive import Archive
    from suite.runs.archive import merge as take
    from suite.runs.contest import relation
    from suite.runs.store import Run, Store

    def relate(held: Run, brought: Run) -> str:
        name = held.spec.experiment
        return relation(held, brought, timed=is_timed(name), arithmetic=is_arithmetic(name))

    done = take(Archive(file), Store(store, create=True), relate)
    other = f", {len(done.others)} kept as another execution made them" if done.others else ""
    print(f"{len(done.new)} runs added, {len(done.present)} already there{other}")
    for run_id in done.contested:
        print(f"CONTESTED {run_id}: other tables than the store's of the same execution; both are kept, see `check`")
    raise typer.Exit(1 if done.contested else 0)


def gate(
    new: Annotated[list[Path], typer.Argument(help="benchmark documents of one state of the code, one per session")],
    *,
    base: Annotated[Path | None, typer.Option(help="compare with this document instead", metavar="F")] = None,
    baselines: Annotated[
        Path | None, typer.Option(help="folder of baselines by machine class; default ci/baselines", metavar="D")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="make these the baseline of their machine class")] = False,
    add: Annotated[bool, typer.Option("--add", help="as --accept, keeping the sessions it has")] = False,
    anew: Annotated[bool, typer.Option("--anew", help="with --accept: this level is wanted")] = False,
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
        print(f"baseline written to {regression.accept(documents, folder, anew=anew)}")
        return
    measured = kept.baseline(documents)
    known = kept.read(base or kept.find_baseline(folder, measured["machine"]["class"]))
    found = regression.judged(kept.baseline([known]), measured, None if base else folder)
    if as_json:
        emit(found)
    else:
        print("\n".join(regression.lines(found)))
    raise typer.Exit(regression.exit_code(found))
