"""The two axes of what a number of ours rests on: its scale, and how much of its settings the paper prints.

The *scale* is derived from the runs that a quantity reads and from the table of printed settings. In order, best
first: *whole* (contradicts nothing that the paper prints), *reduced* (less of something printed), *stand-in* (another
data set, network, rate or machine, or a computation that nobody declared), *modelled* (virtual time or a cost model),
*exact* (settings, identities and arithmetic: nothing that could have come out otherwise on the paper's data).

A quantity's scale is the worst of the runs that it reads. An experiment says by its field ``clock`` what its numbers
are; one that learns from data is held against the printed experiments; one that says nothing is a stand-in. A measure
that applies a cost model to what it reads is named in the table of printed settings (``modelled``). In which order
gradients arrive may be drawn from a virtual clock, but what a training learns is learnt. Exact runs beside a training
do not make it exact. The runs that a quantity reads are those of the groups that it declares; runs of other artifacts
that lend it their spread have no say.

*Printed* counts which of rate, batch, momentum, decay, schedule, length, seeds and preparation the paper prints for
the experiments that a quantity follows. An unprinted setting costs no scale.

Nothing here looks at a profile, at a label somebody wrote, or at a value that was measured, but for one: whether a
training came to the accuracy until which the paper trains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import isclose
from typing import Any

from suite.claims.estimate import EXACT, GRADES, MODELLED, REDUCED, STAND_IN, WHOLE
from suite.claims.intervals import at_least
from suite.data.catalogue import DATASETS
from suite.experiment import Experiment, RunSpec
from suite.papers.printed_settings import (
    SCALES,
    SETTINGS,
    Basis,
    Described,
    Printed,
    PrintedExperiment,
    describe,
    learns,
    settings,
)
from suite.runner.cost import TRAIN
from suite.runs.run import Run, digest

DIGITS = 12  # of a digest that is shown
UNSAID = ("dropout", "tested")  # settings of which a specification need not speak
TESTS = {"evaluations": "test_error", "models": "centre_error"}  # tables of a training with the tests of its model


@dataclass(frozen=True)
class Grade:
    """What a verdict rests on, and the first reason why it is no better.

    Attributes:
        rests_on: the scale.
        because: the first reason why it is no better.
        decides: False for a number that is shown without deciding the claim: all between *whole* and *exact*, unless
            the paper's own sentence speaks of that size.
        printed: of a training, how many of its settings the paper prints and which it does not; "" otherwise.
    """

    rests_on: str
    because: str
    decides: bool
    printed: str = field(default="", compare=False)


@dataclass(frozen=True)
class Rests:
    """The runs that a quantity rests on.

    Those ``beside`` (by id) belong to other artifacts: they lend a spread, and the number is not of them.
    """

    runs: tuple[Run, ...]
    beside: frozenset[str] = frozenset()

    @cached_property
    def own(self) -> list[Run]:
        """The runs that the number is of."""
        return [run for run in self.runs if run.id not in self.beside]

    @cached_property
    def began(self) -> dict[str, str]:
        """When (UTC) each run that the number is of began, by id; "" where it does not say."""
        return {run.id: str(run.environment.get("started", "")) for run in self.own}

    @cached_property
    def digest(self) -> str:
        """A digest of the contents of all runs, "" for none."""
        found = sorted(run.digest for run in self.runs)
        return digest("".join(found).encode())[:DIGITS] if found else ""


Departure = tuple[str, str]
"""A grade and the reason for it."""


def best_test(run: Run) -> float | None:
    """The highest test accuracy (share) of a training's evaluations, None without any."""
    found = [run.curve(table)[column].min() for table, column in TESTS.items() if table in run.curves]
    return 1 - float(min(found)) if found else None


def machine_of(run: Run) -> str:
    """The card or processor that computed a run."""
    environment = run.environment
    device = environment.get("device", {})
    return str(device.get("name") or environment.get("machine", {}).get("cpu", "unknown"))


class Grading:
    """Grades of a paper's claims; ``experiments`` are those of the paper.

    A run is described once, and its kind is held once against what a claim's basis prints.
    """

    def __init__(self, paper: str, experiments: Mapping[str, Experiment]):
        self.table, self.experiments = settings(paper), {"train": TRAIN, **experiments}
        self.training = cache(self._training)
        self.nearest: dict[tuple[Basis, str], tuple[PrintedExperiment, list[Departure]]] = {}

    def grade(self, claim_id: str, rests: Rests) -> Grade:
        """What a claim's number rests on."""
        basis = self.table.basis(claim_id)
        found: list[Departure] = [(MODELLED, basis.modelled)] if basis.modelled else []
        trainings: list[tuple[Run, Described]] = []
        for run in rests.own:
            if run.spec.experiment in self.table.exact and not basis.named:
                continue
            if ours := self.training(run.spec):
                trainings.append((run, ours))
            else:
                found += _of_body(run, self.experiments.get(run.spec.experiment), basis)
        followed: list[PrintedExperiment] = []
        if trainings:
            departed, followed = self.against(trainings, basis)
            found.append(_worst(departed) or (WHOLE, ""))
        scale, because = _worst(found) or (EXACT, "")
        decides = scale in (WHOLE, EXACT) or bool(basis.speaks_of)
        return Grade(scale, because, decides, told_of(followed))

    def _training(self, spec: RunSpec) -> Described | None:
        """What a specification says of its training; None where it learns nothing."""
        experiment = self.experiments.get(spec.experiment)
        data = experiment.data(spec) if experiment else ()
        return describe(spec, data) if learns(spec, data) else None

    def against(
        self, trainings: list[tuple[Run, Described]], basis: Basis
    ) -> tuple[list[Departure], list[PrintedExperiment]]:
        """Departures of trainings from the printed experiments, each held against the nearest, and those followed."""
        if not basis.experiments:
            return [(STAND_IN, "the paper prints no experiment")], []
        found: list[Departure] = []
        followed: dict[str, list[Described]] = {printed.name: [] for printed in basis.experiments}
        for run, ours in trainings:
            if (basis, ours.kind) not in self.nearest:
                self.nearest[basis, ours.kind] = _nearest(ours, basis)
            printed, departed = self.nearest[basis, ours.kind]
            followed[printed.name].append(ours)
            found += [*departed, *_arrival(run, printed)]
        taken = [printed for printed in basis.experiments if followed[printed.name]]
        for printed in taken:
            found += _together(followed[printed.name], printed)
        if basis.every and len(taken) < len(basis.experiments):
            found.append((REDUCED, f"{len(taken)} of {len(basis.experiments)} printed experiments"))
        return found, taken


def told_of(experiments: list[PrintedExperiment]) -> str:
    """How many of the settings are printed for all of these experiments, and which are not: ``5 of 8, not rate``."""
    if not experiments:
        return ""
    printed = set(SETTINGS).intersection(*(each.settings for each in experiments))
    count = f"{len(printed)} of {len(SETTINGS)}"
    lacking = [name for name in SETTINGS if name not in printed]
    return f"{count}, not {', '.join(lacking)}" if lacking else count


def _worst(found: Iterable[Departure]) -> Departure | None:
    """The first of the worst grade."""
    return max(found, key=lambda departure: GRADES.index(departure[0]), default=None)


def _of_body(run: Run, experiment: Experiment | None, basis: Basis) -> Iterator[Departure]:
    """What a run that learns nothing is: modelled, seconds of a machine, or exact (nothing)."""
    if experiment is not None and experiment.clock == "virtual":
        yield MODELLED, f"virtual time of {run.spec.experiment}"
    elif experiment is not None and experiment.clock == "asleep":
        yield MODELLED, "modelled compute, real exchange"
    elif experiment is not None and experiment.timed:
        machine, names = machine_of(run), basis.machine.values if basis.machine else ()
        if not any(str(name).lower() in machine.lower() for name in names):
            yield STAND_IN, f"seconds of {machine} for {' or '.join(map(str, names)) or 'a machine not printed'}"
        ours = describe(run.spec)
        for printed in basis.experiments:
            yield from _network(ours, printed)
        yield WHOLE, ""
    elif experiment is None or experiment.clock != "none":
        yield STAND_IN, f"nobody says what {run.spec.experiment} computes"


def _nearest(ours: Described, basis: Basis) -> tuple[PrintedExperiment, list[Departure]]:
    """The printed experiment from which a training departs least, and how; of equals one on its own data."""
    ways = [(printed, list(departures(ours, printed))) for printed in basis.experiments]
    rank = lambda found: max((GRADES.index(grade) for grade, _ in found), default=0)
    return min(ways, key=lambda way: (rank(way[1]), len(way[1]), any(_data(ours, way[0]))))


def departures(ours: Described, printed: PrintedExperiment) -> Iterator[Departure]:
    """Where one training differs from a printed experiment: what is another first, then what is less."""
    yield from _data(ours, printed)
    yield from _network(ours, printed)
    for name in ("labels", "rule", "splitting", "workers", "momentum", "decay", "warmstart", *UNSAID):
        if (asked := printed[name]) and (name not in UNSAID or getattr(ours, name) is not None):
            yield from _same(asked, getattr(ours, name), name)
    if (batch := printed["batch"]) is not None:
        yield from _same(batch, ours.total if batch.total else ours.batch, "batch")
    if (rate := printed["rate"]) is not None:
        yield from _rate(ours, rate)
    if (preparation := printed["preparation"]) is not None:
        yield from _same(preparation, ours.preparation, "preparation")
    for name in ("epochs", "updates"):
        if (length := printed[name]) is not None:
            yield from _length(getattr(ours, name), length.values[0], name)
    yield from _drops(ours, printed)
    yield from _sample(ours, printed)


def _data(ours: Described, printed: PrintedExperiment) -> Iterator[Departure]:
    if (data := printed["data"]) is None:
        return
    known = DATASETS.get(ours.data)
    if known and (whole := known.part_of) in data.values:
        yield REDUCED, f"{ours.subset or ours.images:,} of {DATASETS[whole].sizes['train']:,} examples"
    elif ours.data not in data.values:
        yield STAND_IN, f"{ours.data} for {_either(data)}"
    elif ours.subset and ours.images and ours.subset < ours.images:
        yield REDUCED, f"{ours.subset:,} of {ours.images:,} images"


def _network(ours: Described, printed: PrintedExperiment) -> Iterator[Departure]:
    if (network := printed["network"]) is not None and ours.network not in network.values:
        yield STAND_IN, f"{ours.network or 'another network'} for {_either(network)}"


def _either(printed: Printed) -> str:
    return " or ".join(map(str, printed.values))


def _same(printed: Printed, ours: Any, name: str) -> Iterator[Departure]:
    """One value against the printed ones; within the ends of a range, which ``_together`` asks to be covered."""
    if printed.ends:
        low, high = printed.ends
        if ours is None or not low <= ours <= high:
            yield STAND_IN, f"{name} {ours} outside {low:g} to {high:g}"
    elif not _among(ours, printed.values):
        source = " of the authors' script" if printed.script else ""
        yield STAND_IN, f"{name} {ours} for {_either(printed)}{source}"


def _among(ours: Any, printed: Sequence[Any]) -> bool:
    """Whether a value is printed; a number may differ by rounding."""
    if ours in printed or type(ours) not in (int, float):
        return ours in printed
    return any(type(value) in (int, float) and isclose(ours, value, rel_tol=1e-9) for value in printed)


def _rate(ours: Described, printed: Printed) -> Iterator[Departure]:
    """The learning rate, which may be printed as so many times another."""
    if not printed.times:
        yield from _same(printed, ours.rate, "rate")
        return
    scale = SCALES[printed.times](ours.batch or 0, ours.workers, ours.splitting or 0)
    if not _among(ours.rate, [value * scale for value in printed.values]):
        rate = "no rate" if ours.rate is None else f"rate {ours.rate:g}"
        yield STAND_IN, f"{rate} for {printed.values[0]:g} x {printed.times}"


def _length(made: float | None, asked: float, unit: str) -> Iterator[Departure]:
    count = "" if made is None else f"{made:,.1f}".removesuffix(".0")
    if made is None:
        yield REDUCED, f"no number of {unit} for {asked:,}"
    elif made < 0.99 * asked:
        yield REDUCED, f"{count} of {asked:,} {unit}"
    elif made > 1.01 * asked:
        yield STAND_IN, f"{count} {unit} for {asked:,}"


def _arrival(run: Run, printed: PrintedExperiment) -> Iterator[Departure]:
    """Whether a training came as far as the accuracy until which the paper trains."""
    if (until := printed["until"]) is None:
        return
    if (best := best_test(run)) is None:
        yield REDUCED, f"no test accuracy for {until.values[0]:.0%}"
    elif not at_least(best, until.values[0]):
        yield REDUCED, f"ends at {best:.1%} for {until.values[0]:.0%}"


def _drops(ours: Described, printed: PrintedExperiment) -> Iterator[Departure]:
    """The drops of the rate, as far as the run goes; a shortened schedule is told by its length alone."""
    if (drops := printed["drops"]) is None:
        return
    if drops.by_loss:
        asked = [(below, factor) for below, factor in drops.values[0]]
        if [*ours.falls] != asked or ours.drops:
            yield STAND_IN, f"drops {[*ours.falls, *ours.drops]} for {asked} by mean loss"
        return
    epochs = ours.epochs or 0
    asked = [(epoch, factor) for epoch, factor in (drops.values[0] if drops.values else ())]
    if drops.periodic:  # again and again, as often as the epochs hold
        every, factor = drops.periodic
        asked = [(every * k, factor**k) for k in range(1, int(epochs // every) + 1)]
    length = printed["epochs"]
    if length is not None and epochs < 0.99 * length.values[0] and len(ours.drops) == len(asked):
        return
    asked = [drop for drop in asked if ours.epochs is None or drop[0] < epochs]
    alike = all(abs(a - b) <= 1 and isclose(f, g) for (a, f), (b, g) in zip(asked, ours.drops, strict=False))
    if not (alike and len(asked) == len(ours.drops)):
        yield STAND_IN, f"drops {[(round(e), f) for e, f in ours.drops]} for {asked}"


def _sample(ours: Described, printed: PrintedExperiment) -> Iterator[Departure]:
    if (sample := printed["sample"]) is not None:
        whole = round(sample.share * (ours.images or 0)) if sample.share else sample.values[0]
        if sample.share and (ours.share or 0) < sample.share:
            yield REDUCED, f"a share of {ours.share or 0:g} of {sample.share:g} tested"
        if ours.sample is not None and ours.sample < whole:
            yield REDUCED, f"{ours.sample:,} of {whole:,} test examples"
    if (recorded := printed["recorded"]) is not None:
        if ours.growth:
            yield REDUCED, f"tested on a grid that grows by {ours.growth:.0%}"
        elif (ours.every or 0) > recorded.values[0]:
            yield REDUCED, f"tested every {ours.every} updates for {recorded.values[0]}"


def _together(runs: list[Described], printed: PrintedExperiment) -> Iterator[Departure]:
    """What runs of one printed experiment lack together: seeds of one of them, ends of a range."""
    if (seeds := printed["seeds"]) is not None:
        each: dict[str, set[int]] = defaultdict(set)
        for run in runs:
            each[run.kind].add(run.seed)
        if (fewest := min(map(len, each.values()))) < seeds.values[0]:
            yield REDUCED, f"{fewest} of {seeds.values[0]} seeds"
    if (batch := printed["batch"]) is not None and batch.ends:
        sizes = [size for run in runs if (size := run.total if batch.total else run.batch) is not None]
        if sizes and (min(sizes) > batch.ends[0] or max(sizes) < batch.ends[1]):
            yield REDUCED, f"batches {min(sizes)} to {max(sizes)} of {batch.ends[0]:g} to {batch.ends[1]:g}"
