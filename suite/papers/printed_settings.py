"""What the papers print about their experiments: ``published/settings/PAPER.toml``, read once and checked.

A file reads like a paper's experimental set-up. ``[groups.NAME]`` is one experiment, ``like`` another one but for
the fields it states itself. Every field says what is printed and where, or that it is not::

    [groups.hardsync]
    like = "cifar"
    epochs = { is = 140, where = "4.2" }
    seeds = "not printed"
    [artifacts.table2]                      from = ["hardsync"]      the experiments behind a table or figure
    [artifacts.fig1a.epoch400-b4]           epochs = { ... }         where one of its claims differs
    [exact]                                 "isgd/trace" = "why its outcome rests on no data and no clock"
    [artifacts.eq3]                         modelled = "which cost model its measures apply, to what they read"

``is`` may list alternatives. ``range`` must be covered from end to end by the runs of one quantity, ``share`` is of
the training data. ``times`` scales a rate by one of SCALES, ``total`` compares batch x workers. ``every`` asks for
runs of all the groups named. A claim with a ``from`` of its own is held against it even where a run is exact.
``drops`` are pairs of an epoch and a factor of the rate, with ``when = "loss below"`` of a mean loss and a factor;
or the rate is multiplied ``by`` a factor ``every`` so many epochs.
``speaks_of`` says why a claim is decided at a smaller size than its figure's.
``script`` in place of ``where`` names a public script of the authors that sets what the text does not say. Runs are
held against it, and it is not counted as printed.
A length is ``epochs``, ``updates`` or ``until`` (train until this test accuracy, a share).

A specification says the same of a run: :func:`describe` puts it in these words, and ``suite.papers.grades`` compares.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from suite.data.catalogue import DATASETS
from suite.models.table import networks
from suite.papers import catalogue
from suite.runs.run import digest
from suite.spec import RunSpec, trainings

NOT_PRINTED = "not printed"
LENGTHS = ("epochs", "updates", "until")
SETTINGS = ("rate", "batch", "momentum", "decay", "drops", "length", "seeds", "preparation")  # that are counted
NEEDED = ("data", "preparation", "network", "batch", "rate", "momentum", "decay", "drops", "seeds", "sample")
OTHERS = ("labels", "rule", "splitting", "workers", "dropout", "warmstart", "tested", "recorded", "hardware")
FIELDS = (*NEEDED, *LENGTHS, *OTHERS)
ABOUT_A_FIELD = {"is", "range", "share", "where", "script", "times", "total", "every", "by", "when"}
DIGITS = 12  # of the digest of a table
LOSS_BELOW = "loss below"  # what drops may hang on instead of the epoch
SCALES: Mapping[str, Callable[[float, float, float], float]] = {  # of (mu, lambda, n)
    "sqrt(mu lambda / 128)": lambda batch, learners, n: math.sqrt(batch * learners / 128),
    "sqrt(mu lambda / 256)": lambda batch, learners, n: math.sqrt(batch * learners / 256),
    "1 / n": lambda batch, learners, n: 1 / n if n else math.nan,
}


class SettingsError(ValueError):
    """A table of printed settings that cannot be used; the message names file, entry and what is wrong."""


@dataclass(frozen=True)
class Printed:
    """One printed field: the values it may have, or the ends of a range, or a share; and its place in the paper."""

    where: str
    values: tuple[Any, ...] = ()
    ends: tuple[float, float] | None = None
    share: float | None = None
    times: str = ""
    total: bool = False
    periodic: tuple[float, float] | None = None  # of drops: epochs from one to the next, and the factor of each
    by_loss: bool = False  # drops hang on the mean loss
    script: bool = False  # set by the authors' public scripts, not by the text


@dataclass(frozen=True)
class PrintedExperiment:
    """A printed experiment; a field that is absent, or None, is not printed."""

    name: str
    fields: Mapping[str, Printed | None]

    def __getitem__(self, name: str) -> Printed | None:
        return self.fields.get(name)

    @property
    def trains(self) -> bool:
        """Whether it learns from a data set, rather than naming a network or a machine alone."""
        return self["data"] is not None

    @cached_property
    def settings(self) -> list[str]:
        """Those of SETTINGS that the text prints, and not a script alone."""
        by_text = {name for name, printed in self.fields.items() if printed is not None and not printed.script}
        return [name for name in SETTINGS if by_text.intersection(LENGTHS if name == "length" else (name,))]


@dataclass(frozen=True, eq=False)
class Basis:
    """What a claim rests on in the paper: experiments, any of which a run may follow, and the machine."""

    experiments: tuple[PrintedExperiment, ...]
    machine: Printed | None
    every: bool = False  # the claim needs runs of all experiments
    speaks_of: str = ""
    named: bool = False  # the claim itself names its experiments
    modelled: str = ""  # the cost model that the claim's measure applies


@dataclass(frozen=True)
class PrintedSettings:
    """One paper's table.

    Attributes:
        experiments: by name.
        bases: by artifact (``fig1``), and by claim (``fig1/gain``) where one differs from its artifact; under the
            empty name that of a statement which the paper makes in general.
        exact: experiments whose outcome rests on no data and no clock, and why.
        digest: of all that the file says, but for comments and order.
    """

    experiments: Mapping[str, PrintedExperiment] = field(default_factory=dict)
    bases: Mapping[str, Basis] = field(default_factory=lambda: {"": Basis((), None)})
    exact: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""

    def basis(self, claim_id: str) -> Basis:
        """What the paper prints for a claim."""
        place = claim_id.partition("/")[2]
        return self.bases.get(place) or self.bases.get(place.partition("/")[0]) or self.bases[""]


def missing(experiment: PrintedExperiment) -> list[str]:
    """Fields that an experiment says nothing of, neither a value nor that it is not printed."""
    absent = [name for name in NEEDED if name not in experiment.fields]
    return absent if any(name in experiment.fields for name in LENGTHS) else [*absent, " or ".join(LENGTHS)]


@cache
def settings(paper: str) -> PrintedSettings:
    """The table of a paper, empty where it has none. Raises SettingsError."""
    path = catalogue.PAPERS[paper].home / "published" / "settings" / f"{paper}.toml"
    if not path.exists():
        return PrintedSettings()
    return load(path, frozenset(claim.id for claim in catalogue.entries(paper)))


def load(path: Path, ids: frozenset[str]) -> PrintedSettings:
    """Read and check a table against the ids of the paper's claims. Raises SettingsError naming the bad entry."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path.name}: {error}") from error
    _known(document, {"hardware", "groups", "artifacts", "exact"}, path.name)
    paper = path.stem
    groups = document.get("groups", {})
    experiments = {name: PrintedExperiment(name, _inherited(groups, name, path.name)) for name in groups}
    machine = _field(document["hardware"], f"{path.name}: hardware") if "hardware" in document else None
    bases = {"": _basis("", {}, experiments, machine, path.name)}
    for name, table in document.get("artifacts", {}).items():
        where = f"{path.name} [artifacts.{name}]"
        names = {claim.rpartition("/")[2] for claim in ids if claim.startswith(f"{paper}/{name}/")}
        if not names:
            raise SettingsError(f"{where}: the paper has no such artifact")
        claims = {claim: own for claim, own in table.items() if claim in names and isinstance(own, dict)}
        shared = {key: value for key, value in table.items() if key not in claims}
        if bare := sorted((set(shared) & names) - set(FIELDS)):
            raise SettingsError(f"{where}: what is said of the claims {bare} must be tables")
        bases[name] = _basis(name, shared, experiments, machine, where)
        for claim, own in claims.items():  # whose own entry stands over their artifact's
            basis = _basis(name, {**shared, **own}, experiments, machine, f"{path.name} [artifacts.{name}.{claim}]")
            bases[f"{name}/{claim}"] = replace(basis, named="from" in own)
    exact = document.get("exact", {})
    for name, why in exact.items():
        if not isinstance(why, str) or not why:
            raise SettingsError(f"{path.name} {name}: it must say why")
    return PrintedSettings(experiments, bases, exact, digest_of(document))


def digest_of(said: Any) -> str:
    """A digest of what a table or a list says, whatever the order of a table's keys."""
    return digest(json.dumps(said, sort_keys=True).encode())[:DIGITS]


def _known(table: Mapping[str, Any], known: set[str], where: str) -> None:
    if unknown := set(table) - known:
        raise SettingsError(f"{where}: unknown {sorted(unknown)}; known are {sorted(known)}")


def _inherited(groups: Mapping[str, Any], name: str, file: str, below: tuple[str, ...] = ()) -> dict[str, Any]:
    """A group's fields over those of the group that it is like."""
    where = f"{file} [groups.{name}]"
    if name not in groups or name in below:
        raise SettingsError(f"{file} [groups.{below[-1]}]: there is no group {name!r} that it could be like")
    _known(groups[name], {*FIELDS, "like"}, where)
    own = {key: _field(value, f"{where} {key}") for key, value in groups[name].items() if key != "like"}
    model = groups[name].get("like")
    return {**(_inherited(groups, model, file, (*below, name)) if model else {}), **own}


def _basis(
    artifact: str,
    entry: Mapping[str, Any],
    experiments: Mapping[str, PrintedExperiment],
    machine: Printed | None,
    where: str,
) -> Basis:
    """The experiments that an entry names, with the fields that it changes. Without a name: all that train."""
    _known(entry, {*FIELDS, "from", "every", "speaks_of", "modelled"}, where)
    for group in entry.get("from", ()):
        if group not in experiments:
            raise SettingsError(f"{where}: there is no group {group!r}; there are {sorted(experiments)}")
        if absent := missing(experiments[group]):
            raise SettingsError(f"{where}: group {group!r} does not say {absent}: a place, or {NOT_PRINTED!r}")
    changed = {key: _field(entry[key], f"{where} {key}") for key in FIELDS if key in entry}
    found = [experiments[group] for group in entry.get("from", ())]
    if not found and changed and "data" not in changed:
        found = [PrintedExperiment(artifact, {})]
    if not found:
        found = [each for each in experiments.values() if each.trains and not missing(each)]
    return Basis(
        tuple(replace(each, fields={**each.fields, **changed}) for each in found),
        changed.get("hardware", machine),
        entry.get("every", False),
        entry.get("speaks_of", ""),
        modelled=entry.get("modelled", ""),
    )


def _field(raw: Any, where: str) -> Printed | None:
    if raw == NOT_PRINTED:
        return None
    if not isinstance(raw, dict):
        raise SettingsError(f"{where} = {raw!r}: it must be a table with `is` and `where`, or {NOT_PRINTED!r}")
    _known(raw, ABOUT_A_FIELD, where)
    places = [raw[key] for key in ("where", "script") if key in raw]
    if len(places) != 1 or not isinstance(places[0], str) or not places[0]:
        raise SettingsError(
            f"{where}: it does not say where the paper prints it, or which script of the authors sets it"
        )
    if len({"is", "range", "share", "every"} & set(raw)) != 1 or ("every" in raw) != ("by" in raw):
        raise SettingsError(f"{where}: it needs one of `is`, `range` and `share`, or `every` with `by`")
    if raw.get("when", LOSS_BELOW) != LOSS_BELOW or ({"when", "every"} & set(raw) and not where.endswith("drops")):
        raise SettingsError(f"{where}: `every` and `when = {LOSS_BELOW!r}` are said of drops alone")
    if raw.get("times", "") not in ("", *SCALES):
        raise SettingsError(f"{where}: times = {raw['times']!r} must be one of {list(SCALES)}")
    values = raw.get("is", ())
    if where.endswith("drops") and "is" in raw:
        values = [values]  # a schedule is one value
    return Printed(
        places[0],
        tuple(values) if isinstance(values, list | tuple) else (values,),
        tuple(raw["range"]) if "range" in raw else None,
        raw.get("share"),
        raw.get("times", ""),
        raw.get("total", False),
        (raw["every"], raw["by"]) if "every" in raw else None,
        "when" in raw,
        "script" in raw,
    )


# --- what a specification says of its training

Described = SimpleNamespace  # what a specification says of its training, by the names of the printed fields
LEARNING = {"updates", "epochs", "limit"}  # settings that say how long a run learns


def learns(spec: RunSpec, data: tuple[str, ...] = ()) -> bool:
    """Whether a specification names a data set and for how long to learn from it.

    ``data`` are the data sets that the experiment says it needs, for specifications that do not name theirs.
    """
    settings = _settings(spec)
    return bool(data or {"data", "corpus"} & settings.keys()) and bool(LEARNING & settings.keys())


def _settings(spec: RunSpec) -> Mapping[str, Any]:
    """The settings, those of a ``problem`` inside them taken up."""
    return {**spec.settings.get("problem", {}), **spec.settings}


def describe(spec: RunSpec, data: tuple[str, ...] = ()) -> Described:
    """What a specification says of its training; None where it says nothing.

    The names are those of the printed fields. ``images`` counts the whole training set and ``subset`` what the run
    learns from, ``batch`` is of one worker and ``total`` of all, ``splitting`` is Rudra's n, ``drops`` are (epoch,
    factor), ``falls`` are (mean loss below which, factor), ``warmstart`` is in epochs, ``share`` is the part of the
    training data on which the loss is measured, ``growth`` that of the grid of tests. ``kind`` is everything but the
    seed, as text.

    Args:
        spec: the specification.
        data: as in :func:`learns`.
    """
    s = _settings(spec)
    of_data, algorithm, descent, evaluate = (s.get(key, {}) for key in ("data", "algorithm", "descent", "evaluate"))
    name = of_data.get("name") or s.get("corpus") or (data[0] if data else None)
    model, known = s.get("model"), DATASETS.get(name or "")
    network = model.get("name") if isinstance(model, Mapping) else model
    sizes = networks().get(network or "")
    ours = Described(
        **{key: s.get(key) for key in ("rate", "updates", "epochs", "share", "every")},
        **{key: descent.get(key) for key in ("rule", "momentum", "decay")},
        data=name,
        images=known.sizes.get("train") if known else None,
        subset=of_data.get("subset") or s.get("sentences"),
        labels=of_data.get("labels"),
        preparation=of_data.get("transform"),
        network=network,
        dropout=sizes.has_dropout if sizes else None,
        workers=s.get("workers") or most_learners(s.get("learners", ())),
        splitting=algorithm.get("n") if algorithm.get("name") == "rudra" else None,
        batch=s.get("batch", s.get("words")),
        falls=tuple(zip(algorithm.get("thresholds", ()), algorithm.get("factors", ())[1:], strict=True)),
        tested=s.get("test_corpus"),
        sample=evaluate.get("test_examples", evaluate.get("examples")) or s.get("sample"),
        growth=s.get("growth", 0.0),
        seed=spec.seed,
    )
    ours.total = None if ours.batch is None else ours.batch * ours.workers
    before = describe(trainings(spec)[0], data).epochs if "warmstart" in s else None
    ours.warmstart = None if before is None else round(before, 1)
    if ours.epochs is None and ours.updates and ours.batch and ours.images:
        each = ours.batch * (ours.workers // (ours.splitting or 1))  # floor(lambda / n) gradients an update
        cycle = s.get("order", {}).get("batches", 0) * ours.batch  # of the only batches that are trained on
        ours.epochs = ours.updates * each / (cycle or ours.subset or ours.images)
    drops = s.get("drops", ()) if ours.updates and ours.epochs else ()
    ours.drops = tuple((turn / ours.updates * ours.epochs, factor) for turn, factor in drops)
    ours.kind = repr({**vars(ours), "seed": 0})
    return ours


def most_learners(learners: int | Sequence[Any]) -> int:
    """One count; or the most of a schedule, of counts or of (update, count from there on)."""
    schedule = (learners,) if isinstance(learners, int) else learners
    return max((entry if isinstance(entry, int) else entry[1] for entry in schedule), default=1)
