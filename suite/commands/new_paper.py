"""The command ``new-paper``: a package of its own for a paper, which works before a line of it is changed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from suite.papers.artifact import PaperError, check_name
from suite.papers.registry import PAPERS
from suite.runs.files import check_writable

TEMPLATE = Path(__file__).parents[1] / "papers" / "template"
ENDING = ".j2"
RESERVED = ("train",)  # names of experiments that belong to no paper
TITLE = "Lookahead Optimizer: k steps forward, 1 step back"


def files(name: str) -> dict[str, str]:
    """The package of a paper called ``name``: path below its folder -> text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    engine = Environment(
        loader=FileSystemLoader(TEMPLATE), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    package = f"{name}_paper"
    made = {}
    for path in sorted(TEMPLATE.rglob(f"*{ENDING}")):
        source = path.relative_to(TEMPLATE).as_posix()
        target = source.removesuffix(ENDING).replace("PACKAGE", package).replace("NAME", name)
        made[target] = engine.get_template(source).render(name=name, package=package, title=TITLE)
    return made


def check_free(name: str) -> None:
    """Raise PaperError for a name that no paper can have, or that is taken."""
    check_name(name)
    if name in PAPERS or name in RESERVED:
        raise PaperError(f"{name!r} is taken; the papers here are {', '.join(PAPERS)}")
    if importlib.util.find_spec(f"{name}_paper"):
        raise PaperError(f"a package {name}_paper is already installed here; take another name")


def new_paper(name: str, into: Path | None) -> list[str]:
    """Write the package into a folder that is empty or not there; returns what to say.

    Raises PaperError for a name that cannot be used and for a folder with something in it, ValueError for one that
    cannot be written.
    """
    check_free(name)
    folder = into or Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PaperError(f"{folder} is not an empty folder; name another with --into")
    check_writable(folder)
    made = files(name)
    for path, text in made.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return [
        f"{len(made)} files in {folder}: Lookahead as an example, to be replaced file by file; its README says how",
        f"pip install --no-build-isolation -e {folder}",
        f"sgd-suite run {name} --profile smoke && sgd-suite check {name} && sgd-suite figures {name}",
    ]
