"""Make a package for another paper, which registers itself: an algorithm, its claims, a figure and tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from suite.commands import options
from suite.files import check_writable
from suite.papers.artifact import PaperError, check_name
from suite.papers.catalogue import PAPERS

TEMPLATE = Path(__file__).parents[1] / "papers" / "template"
EXPERIMENT = Path(__file__).parents[1] / "papers" / "experiment_template"
ENDING = ".j2"
RESERVED = ("train",)  # names of experiments that belong to no paper
HOLDS = {
    "paper": "Lookahead as an example, to be replaced file by file; its README says how",
    "experiment": "network, data, methods and settings, to be replaced",
}
TITLE = "Lookahead Optimizer: k steps forward, 1 step back"


def command(name: options.ShortName, *, into: options.Into = None) -> None:
    print("\n".join(new_package(name, into)))


def files(name: str, kind: str = "paper") -> dict[str, str]:
    """The package of a paper or an experiment called ``name``: path below its folder -> text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    template = TEMPLATE if kind == "paper" else EXPERIMENT
    engine = Environment(
        loader=FileSystemLoader(template), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    package = f"{name}_{kind}"
    made = {}
    for path in sorted(template.rglob(f"*{ENDING}")):
        source = path.relative_to(template).as_posix()
        target = source.removesuffix(ENDING).replace("PACKAGE", package).replace("NAME", name)
        made[target] = engine.get_template(source).render(name=name, package=package, title=TITLE)
    return made


def new_package(name: str, into: Path | None, kind: str = "paper") -> list[str]:
    """Write a paper's or an experiment's package into a folder that is empty or not there; returns what to say.

    Raises PaperError for a name that cannot be used and for a folder with something in it, ValueError for one that
    cannot be written.
    """
    check_name(name)
    if name in PAPERS or name in RESERVED:
        raise PaperError(f"{name!r} is taken; the papers here are {', '.join(PAPERS)}")
    if importlib.util.find_spec(f"{name}_{kind}"):
        raise PaperError(f"a package {name}_{kind} is already installed here; take another name")
    folder = into or Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PaperError(f"{folder} is not an empty folder; name another with --into")
    check_writable(folder)
    made = files(name, kind)
    for path, text in made.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    where = (
        f"{len(made)} files in {folder}" if kind == "paper" else f"{folder / f'{name}_experiment' / '__init__.py'}"
    )
    first = f'sgd-suite register {name} --because "rules as read from the paper" && ' if kind == "paper" else ""
    return [
        f"{where}: {HOLDS[kind]}",
        f"pip install --no-build-isolation -e {folder}",
        f"{first}sgd-suite run {name} --profile smoke && sgd-suite check {name} && sgd-suite figures {name}",
    ]
