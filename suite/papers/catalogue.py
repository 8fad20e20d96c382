"""The catalogue: the papers there are, what they print, their evidence, and what a selector means of them.

Whoever registers a paper under the entry-point group ``sgd_suite.papers`` adds to it. An entry names a paper and the
object that holds it, ``isgd = "paper_figures.isgd:PAPER"``. The top-level package of that module is the paper's home:
its folder ``published`` holds the printed values and the register, ``evidence`` exported runs; its code counts in the
digest of the source. In a checkout that is not installed the same table is read from ``pyproject.toml``.

Nothing here imports a paper before it is asked for. So that ``list`` need not import any, each home has a committed
table of its artifacts, ``index.json``, which ``sgd-suite refresh`` renews.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from suite.claims.judge import BOARD, PROFILES, Claim, load
from suite.experiment import Experiment, lazily
from suite.runs import environment
from suite.runs.archive import Archive, Layered, Runs, open_runs
from suite.runs.environment import ROOT
from suite.runs.run import Run, StoreError

if TYPE_CHECKING:
    from suite.papers.artifact import Artifact, Paper


GROUP = "sgd_suite.papers"
INDEX = "index.json"  # in a paper's home
PLACES = "places.csv"  # in the folder of printed values


class RegistryError(ValueError):
    """A registered paper that cannot be used."""


class SelectorError(ValueError):
    """A selector that names nothing."""


# --- papers


@dataclass(frozen=True)
class Registered:
    """Where a paper comes from: what imports it, and the folder of its printed values and evidence."""

    load: Callable[[], Paper]
    home: Path


def registered() -> dict[str, Registered]:
    """All papers by short name: the checkout's in its own order, then installed ones in alphabetical order.

    Raises RegistryError for one whose package is gone.
    """
    found: dict[str, str] = {}
    if (project := ROOT / "pyproject.toml").is_file():
        found |= tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"].get(GROUP, {})
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
        found.setdefault(entry.name, entry.value)
    papers = {}
    for name, place in found.items():
        package = place.partition(":")[0].partition(".")[0]
        top = importlib.util.find_spec(package)  # finds the package without importing it
        if top is None or top.origin is None:
            raise RegistryError(
                f"the paper at {place} is registered, but its package cannot be found; install it anew, or uninstall "
                "what registers it"
            )
        papers[name] = Registered(lazily(place), Path(top.origin).parent)
    return papers


PAPERS: dict[str, Registered] = registered()

for each in PAPERS.values():
    environment.CODE_PACKAGES.setdefault(each.home.name, each.home.parent)


def papers_of(home: Path) -> list[str]:
    """The papers of a home, in their order."""
    return [name for name, each in PAPERS.items() if each.home.resolve() == home.resolve()]


def homes() -> list[Path]:
    """The folders that papers come from, each once."""
    return list(dict.fromkeys(each.home for each in PAPERS.values()))


@cache
def paper(name: str) -> Paper:
    """A paper by its short name.

    Raises KeyError for another, RegistryError for one that fails or calls itself otherwise.
    """
    which = PAPERS[name]
    try:
        found = which.load()
    except Exception as error:
        raise RegistryError(
            f"the paper {name!r} of {which.home} cannot be imported ({type(error).__name__}: {error}); mend it, or "
            "uninstall what registers it"
        ) from error
    if found.name != name:
        raise RegistryError(
            f"the entry point {name!r} of {GROUP} leads to the paper {found.name!r}; give both the same name"
        )
    return found


def experiment(name: str) -> Experiment:
    """The experiment that executes specifications of this name. Raises KeyError for another."""
    if name == "train":
        from suite.runner.cost import TRAIN

        return TRAIN
    return paper(name.partition("/")[0]).experiments[name]


# --- claims and printed numbers


@cache
def entries(paper: str) -> tuple[Claim, ...]:
    """All entries of a paper, in its order: claims, questions of ours, tests and contradictions."""
    path = PAPERS[paper].home / "published" / f"{paper}.toml"
    return tuple(load(path)) if path.exists() else ()


def published(paper: str) -> tuple[Claim, ...]:
    """The entries that stand on the board, in the paper's order."""
    return tuple([entry for entry in entries(paper) if entry.kind in BOARD])


def printed(claim: str) -> tuple[float, ...]:
    """The printed values of a claim named in full, such as ``isgd/fig5a/gain``. Raises KeyError for another name."""
    return {entry.id: entry.printed for entry in entries(claim.partition("/")[0])}[claim]


def printed_value(claim: str) -> float:
    """The only printed value of a claim. Raises ValueError when it has none or several."""
    (number,) = printed(claim)
    return number


class Place(NamedTuple):
    """What became of an id that a claim once had.

    ``becomes`` is *claim* (``target`` is the id itself, or the claim that it is merged into), *ours* (a question of
    ours, by that id), *row* (of the claim in ``target``), *test* (``target`` is its file and function),
    *contradiction* (of the paper, told by the claim in ``target``) or *figure* (``target`` is the artifact whose
    picture shows it).
    """

    becomes: str
    target: str


@cache
def places() -> dict[str, Place]:
    """By id where each claim of before went, as ``published/places.csv`` of each home says."""
    found: dict[str, Place] = {}
    for home in homes():
        if (path := home / "published" / PLACES).exists():
            with path.open(encoding="utf-8", newline="") as stream:
                found |= {row["id"]: Place(row["becomes"], row["target"]) for row in csv.DictReader(stream)}
    return found


def moved(claim: str) -> str:
    """A sentence on an id that is no claim any more; "" for one that never was, or still is."""
    place = places().get(claim)
    if place is None or place.target == claim or place.becomes == "row":
        return ""
    what = {"claim": "is part of the claim", "test": "is held by the test", "figure": "is a line of the figure"}
    return f"{claim} {what.get(place.becomes, 'is told with the contradiction')} {place.target}"


# --- selectors


def select(selectors: Iterable[str]) -> list[tuple[Paper, list[Artifact]]]:
    """Papers with their chosen artifacts, in the papers' order; no selector means everything.

    A selector is a paper (``isgd``), an artifact (``isgd/fig5a``) or a glob of artifacts (``*/fig1?``). Raises
    SelectorError for one that matches nothing, naming what there is.
    """
    patterns = list(selectors)
    # Decided without importing a paper. A star also stands for a slash.
    heads = [pattern.partition("/")[0] for pattern in patterns] or ["*"]
    near = [paper(name) for name in PAPERS if any("*" in head or fnmatchcase(name, head) for head in heads)]
    chosen = set(matching(patterns, [artifact.id for which in near for artifact in which.artifacts]))
    found = [(which, [artifact for artifact in which.artifacts if artifact.id in chosen]) for which in near]
    return [(which, artifacts) for which, artifacts in found if artifacts]


def matching(selectors: Iterable[str], ids: Sequence[str]) -> list[str]:
    """The artifact ids that the selectors mean, in the order given. Raises SelectorError as ``select`` does."""
    patterns = list(selectors)
    for pattern in patterns:
        if not any(_means(pattern, artifact) for artifact in ids):
            raise SelectorError(f"nothing is called {pattern!r}; {_instead(pattern, ids)}")
    return [artifact for artifact in ids if not patterns or any(_means(each, artifact) for each in patterns)]


def _instead(pattern: str, ids: Sequence[str]) -> str:
    """What to name in place of a pattern that means nothing: of a claim the artifact, of a paper what it has."""
    name, (artifact, _, _) = pattern.partition("/")[0], pattern.rpartition("/")
    if artifact in ids:
        return f"name the artifact, {artifact}; a single claim is shown by `explain`"
    if own := [each.partition("/")[2] for each in ids if each.startswith(f"{name}/")]:
        return f"{name} has {', '.join(own)}"
    return f"name a paper ({', '.join(PAPERS)}), an artifact such as isgd/fig5a, or a glob such as 'isgd/fig*'"


def _means(pattern: str, artifact: str) -> bool:
    return pattern == artifact.partition("/")[0] or fnmatchcase(artifact, pattern)


# --- the committed table of artifacts


def index_rows(names: Iterable[str]) -> list[dict[str, Any]]:
    """A row per artifact of these papers: id, title, whether it is drawn, ids of its runs by profile, its claims."""
    return [
        {
            "id": artifact.id,
            "title": artifact.title,
            "drawn": artifact.draw is not None,
            "runs": {profile: sorted(artifact.ids(profile)) for profile in PROFILES},
            "claims": [
                {key: getattr(claim, key) for key in ("id", "says", "where", "profile", "needs")}
                for claim in published(name)
                if claim.artifact == artifact.id
            ],
        }
        for name in names
        for artifact in paper(name).artifacts
    ]


def index_text(home: Path) -> str:
    """The committed form of ``index_rows`` for one home: one line per artifact."""
    names = papers_of(home)
    lines = ",\n".join(json.dumps(row) for row in index_rows(names))
    return f'{{"papers": {json.dumps(names)}, "artifacts": [\n{lines}\n]}}\n'


def index() -> list[dict[str, Any]]:
    """The committed rows of each home, or fresh ones where its papers are not those of the committed table."""
    found: list[dict[str, Any]] = []
    for home in homes():
        path = home / INDEX
        table = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"papers": []}
        names = papers_of(home)
        found += table["artifacts"] if table["papers"] == names else index_rows(names)
    return found


# --- evidence

UNNAMED = Path("runs.store")  # where runs go, in the working folder, unless a store is named


def committed(home: Path | None = None) -> list[Archive]:
    """The exported files that the papers come with, or those of one home."""
    paths = [path for folder in ([home / "evidence"] if home else folders()) for path in sorted(folder.glob("*.zip"))]
    return [_opened(path, (found := path.stat()).st_mtime_ns, found.st_size) for path in paths]


@cache
def _opened(path: Path, written: int, size: int) -> Archive:
    """An exported file, opened once for each state of it: it remembers what it verified."""
    return Archive(path)


def folders() -> list[Path]:
    """Where papers keep evidence."""
    return [home / "evidence" for home in homes()]


def with_committed(store: Path | None) -> Runs:
    """The runs of ``store`` first, the committed evidence beneath; ``None`` means the store of this folder.

    A store that was named must exist, and must be one: raises StoreError otherwise. The unnamed one may be
    missing when there is committed evidence, which is installed apart.
    """
    if store is None and not UNNAMED.exists():
        if shipped := committed():
            return Layered(shipped)
        raise StoreError(
            f"no store at {UNNAMED}, and the committed runs are not installed: run something first, name a store "
            "with --store, or install the wheel sgd_scaling_suite_evidence that was built with this one"
        )
    store = store or UNNAMED
    if store.resolve() in [folder.resolve() for folder in folders()]:
        return open_runs(store)
    return Layered([open_runs(store), *committed()])


def committed_ids() -> set[str]:
    """Ids of the runs that the papers come with, unverified."""
    return set().union(*(runs.ids() for runs in committed()))


def of_user(store: Path | None) -> Runs:
    """The runs of ``store`` alone; ``None`` means the store of this folder. Raises StoreError where there is none."""
    return open_runs(store or UNNAMED)


def ids_of_user(store: Path | None, *, new: bool = False) -> set[str]:
    """Ids of the user's own runs, which ``run`` would not compute again; committed evidence is not among them.

    The store of this folder may be missing, and with ``new`` a named one too. Raises StoreError for a named one
    that is none.
    """
    place = store or UNNAMED
    if not place.exists() and (store is None or new):
        return set()
    if place.resolve() in [folder.resolve() for folder in folders()]:
        return set()
    return open_runs(place).ids()


class ReadOnce:
    """A source that reads each run once: verdicts, drawings and the list of runs share what was verified."""

    def __init__(self, source: Runs):
        self.ids = cache(source.ids)
        self.versions = cache(source.versions)

    def read(self, run_id: str) -> Run:
        return self.versions(run_id)[0]


def read_once(source: Runs) -> Runs:
    """The same source, which verifies each of the user's runs once; committed evidence remembers by itself."""
    if isinstance(source, Layered):
        return Layered(layer if isinstance(layer, Archive) else ReadOnce(layer) for layer in source.sources)
    return source if isinstance(source, Archive) else ReadOnce(source)
