"""From a network, data and methods to what the harness runs, measures and draws.

Any data set of labelled examples as arrays, and what is known of it without reading it again.
"""

from __future__ import annotations

import inspect
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.data.catalogue import DATASETS, DataError, DatasetInfo
from suite.experiment import Experiment
from suite.lazy import np
from suite.own.figure import panel
from suite.own.variation import Variation, changed, checked, written
from suite.papers.artifact import Groups, Paper
from suite.runner.cost import TRAIN
from suite.spec import RunSpec, SpecError, check_plain, overlaid, trainings
from suite.training.settings import TRAINING, check_kind, check_run, check_settings

if TYPE_CHECKING:
    from torch import nn


SPLITS = ("train", "test")
Splits = Callable[[], tuple[Any, Any]]  # training and test examples


@dataclass(frozen=True)
class Facts:
    """What plans need of a data set: digest of its content, examples by split, shape and kind of one, classes."""

    digest: str
    sizes: dict[str, int]
    shape: tuple[int, ...]
    kind: str  # "uint8" or "float32"
    classes: int


def facts(name: str, data: Splits, kept: Path) -> Facts:
    """The facts in the file ``kept``, or else those of the data, which are then written there.

    Raises DataError where the data cannot be read, the splits differ in kind, or the file is none of these.
    """
    if kept.exists():
        try:
            found = Facts(**json.loads(kept.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{kept} does not hold the facts of {name}; delete it, they are found anew") from error
        return replace(found, shape=tuple(found.shape))
    from suite.data.images import content_digest

    train, test = (arrays(split, name) for split in _called(name, data))
    made, tried = (f"{inputs.dtype} of shape {inputs.shape[1:]}" for inputs, _ in (train, test))
    if made != tried:
        raise DataError(f"{name}: a training example is {made} and a test example {tried}; prepare both alike")
    sizes = {split: len(targets) for split, (_, targets) in zip(SPLITS, (train, test), strict=True)}
    classes = int(max(train[1].max(), test[1].max())) + 1
    found = Facts("", sizes, train[0].shape[1:], str(train[0].dtype), classes)
    register(name, data, found)
    found = replace(found, digest=content_digest(name))
    kept.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    return found


def register(name: str, data: Splits, known: Facts) -> None:
    """Let settings name the data set."""
    load = lambda split: arrays(_called(name, data)[SPLITS.index(split)], name)
    shape: Any = known.shape
    DATASETS[name] = DatasetInfo(
        name, name, "images", known.sizes, embedded=True, shape=shape, classes=known.classes, load=load
    )


def _called(name: str, data: Splits) -> tuple[Any, Any]:
    try:
        train, test = data()
    except Exception as error:
        raise DataError(f"{name}: its data cannot be read ({type(error).__name__}: {error})") from error
    return train, test


def arrays(examples: Any, name: str = "the data set") -> tuple[np.ndarray, np.ndarray]:
    """Inputs uint8 or float32 [N, ...] and targets int64 [N] of one split.

    Args:
        examples: A pair (inputs, targets) of tensors or arrays; a data set of torchvision's kind, of such pairs; or
            one of ``datasets``, whose first image and first label are taken. Pictures become [C, H, W].
        name: For messages.

    Raises:
        DataError: It is none of these, its examples differ in shape, or a target is no class.
    """
    if isinstance(getattr(examples, "features", None), Mapping):
        examples = _of_hub(examples, name)
    if hasattr(examples, "shape"):
        raise DataError(f"{name}: a split is one array; data are training and test examples, each pairs with targets")
    if isinstance(examples, tuple | list) and len(examples) == 2 and hasattr(examples[0], "shape"):
        inputs, targets = (np.asarray(each) for each in examples)
    else:
        try:
            pairs = [examples[i] for i in range(len(examples))]
            inputs = np.stack([_picture(each) for each, _ in pairs])
            targets = np.asarray([np.squeeze(target) for _, target in pairs])  # a label may be an array of one
        except (ValueError, TypeError, LookupError) as error:
            said = f"{type(error).__name__}: {error}"
            raise DataError(f"{name}: its examples cannot be stacked ({said}); give pairs of one shape") from error
    if targets.shape != (len(inputs),):
        raise DataError(f"{name}: {len(inputs)} inputs have targets of shape {targets.shape}; each needs one class")
    if not len(inputs) or targets.dtype.kind not in "biuf" or (targets % 1).any() or (targets < 0).any():
        raise DataError(f"{name}: a target is no class, or there is none; they must be whole numbers from 0")
    if inputs.dtype != np.uint8:
        inputs = inputs.astype(np.float32)
    return inputs, targets.astype(np.int64)


def _of_hub(examples: Any, name: str) -> list[tuple[Any, Any]]:
    """The pairs of a data set of the Hub's library."""
    kinds = {column: type(feature).__name__ for column, feature in examples.features.items()}
    image = next((column for column, kind in kinds.items() if kind in ("Image", "Sequence", "List", "Array2D")), None)
    label = next((column for column, kind in kinds.items() if kind == "ClassLabel"), None)
    if image is None or label is None:
        raise DataError(f"{name}: of its columns {', '.join(kinds)} none is an image, or none a label; give pairs")
    return [(row[image], row[label]) for row in examples]


def _picture(example: Any) -> np.ndarray:
    """One example as an array; a picture of PIL's as [C, H, W]."""
    values = np.asarray(example)
    if hasattr(example, "getbands"):
        return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
    return values


SETTINGS: Mapping[str, Any] = {
    "algorithm": {"name": "sgd"},
    "descent": {"rule": "torch", "momentum": 0.9, "decay": 0.0},
    "order": {"kind": "shuffled", "share": "pool"},
    "exchange": {"name": "sums"},
    "rate": 0.05,
    "batch": 32,
    "workers": 1,
}
TESTS = 10  # of a run
LENGTH = {"updates": 1, "evaluate": {"every": 1}}  # of what a run is checked as, before its own length is known
TRIED = {"smoke": (2, 0.1), "reduced": (2, 1.0)}  # seeds, and the share of the epochs; ``paper`` has all


def experiment(
    name: str,
    *,
    network: Callable[..., nn.Module],
    data: Splits,
    methods: Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    epochs: float = 10,
    seeds: int = 5,
    transform: str = "",
    title: str = "",
) -> Paper:
    """An experiment for every command of ``sgd-suite``: methods on a task, at equal numbers of examples.

    Args:
        name: Short, of small letters, digits and underscores; a selector for all commands.
        network: Returns a module, [B, *shape of an example] -> logits [B, classes]. Its keyword arguments are
            settings (``model.width``), each with its default. Its own constructor draws the initial values, by the
            run's seed.
        data: Returns training and test examples: pairs (inputs, targets) of tensors, data sets of torchvision's kind,
            or of ``datasets``. The digest of their content is part of every run's name.
        methods: By label, the settings that make the method, each in place of the common ones. Of a part such as
            ``descent`` those that are not given stay, unless its name, rule or kind is among those given.
        settings: In place of the defaults: ``algorithm``, ``descent``, ``order``, ``rate``, ``batch``, ``workers``
            and whatever else :mod:`suite.training.loop` knows.
        sweep: By path (``algorithm.alpha``, ``rate``), the values that each method which has the setting is run with.
        epochs: Passes over the training examples, all workers together.
        seeds: Runs of each method and setting.
        transform: How inputs are scaled (:data:`suite.data.transforms.RULES`); x / 255 for bytes, nothing for floats.
        title: Of the figure.

    Returns:
        A paper of one artifact, ``NAME/curves``. Profile ``paper`` is the experiment, ``reduced`` its first two
        seeds, ``smoke`` a tenth of the epochs of these.

    Raises:
        PaperError: The name cannot be used.
        SpecError: Once its runs are asked for, a setting that no training has, or a value that it cannot have.
    """
    kept = Path(inspect.getfile(data)).with_name("data.json")

    @cache
    def known() -> Facts:
        """The facts; from then on settings can name these data and this network."""
        from suite.models.network import own_network
        from suite.models.registry import CLASSIFIERS

        found = facts(name, data, kept)
        register(name, data, found)
        CLASSIFIERS[name] = own_network(network, found.shape, found.classes)
        return found

    def plan(profile: str) -> Groups:
        from suite.training.build import training_examples

        for part, by_name in (("methods", methods), ("sweep", sweep or {})):
            if not isinstance(by_name, Mapping) or not all(isinstance(key, str) and key for key in by_name):
                raise SpecError(f"{name}: {part} must be a dict whose keys are names, not {by_name!r}")
        with _said_of(name):
            check_kind("seeds", seeds, 1)
            check_kind("epochs", epochs, 0.0)
        if not methods or epochs == 0:
            raise SpecError(f"{name}: methods={dict(methods)!r} and epochs={epochs} leave nothing to train")
        count, share = TRIED.get(profile, (seeds, 1.0))
        scaled = transform or {"uint8": "unit", "float32": "as-is"}[known().kind]
        model = {**arguments(network), "name": name}
        given = {"name": name, "digest": known().digest, "transform": scaled}
        common = _overlaid(f"{name}, settings", {**SETTINGS, "model": model, "data": given}, settings or {})
        specs = {
            label: RunSpec(f"{name}/train", _overlaid(f"{name}, {label!r}", common, method))
            for label, method in methods.items()
        }
        for label, spec in specs.items():
            _check(f"{name}, {label!r}", spec)
        _check_sweep(name, sweep or {}, list(specs.values()))
        found: dict[str, tuple[RunSpec, ...]] = {}
        for label, spec in specs.items():
            for variant, each in _swept(spec, sweep or {}):
                full = label
                if variant:
                    full = f"{label}, {variant}"
                    _check(f"{name}, {full!r}", each)
                found[full] = _runs(each, training_examples(each.settings["data"]), share * epochs, min(count, seeds))
        return found

    whole = panel(f"{name}/curves", title or f"{name}: test error of each method", plan)
    return Paper(name, title or name, "", (whole,), {f"{name}/train": _trained(known)})


def _overlaid(place: str, settings: Mapping[str, Any], changes: Any) -> dict[str, Any]:
    """Settings with others in their place. Raises SpecError for those that no training has."""
    if not isinstance(changes, Mapping):
        raise SpecError(f"{place} must be settings by name, not {changes!r}")
    found = overlaid(settings, changes)
    with _said_of(place):
        check_plain(found)
        check_settings(overlaid(LENGTH, found), TRAINING)
    return found


def _check(place: str, spec: RunSpec) -> None:
    """Raise SpecError for settings that a run cannot have, or that its algorithm, solver, network or data has not."""
    from suite.training.build import check_parts
    from suite.training.numerics import choose

    with _said_of(place):
        whole = RunSpec(spec.experiment, overlaid(LENGTH, spec.settings))
        check_run(whole, TRAINING)
        choose(whole, "cpu", 1)
        for stage in trainings(whole):
            check_parts(stage.settings)


def _check_sweep(name: str, sweep: Mapping[str, Sequence[Any]], specs: Sequence[RunSpec]) -> None:
    """Raise SpecError for a setting that no method has, and for values of another kind."""
    for path, values in sweep.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise SpecError(f"{name}, sweep: {path} must be a list of values, not {values!r}")
        with _said_of(f"{name}, sweep"):
            checked(path, values, specs, [written(spec) for spec in specs])


@contextmanager
def _said_of(place: str) -> Iterator[None]:
    """Let what is wrong be said with its place."""
    try:
        yield
    except ValueError as error:
        raise SpecError(f"{place}: {error}") from None


def arguments(network: Callable[..., nn.Module]) -> dict[str, Any]:
    """The arguments of a network that have a plain value by default, with these values."""
    defaults = ((each.name, each.default) for each in inspect.signature(network).parameters.values())
    return {name: value for name, value in defaults if isinstance(value, bool | int | float | str)}


def _swept(spec: RunSpec, sweep: Mapping[str, Sequence[Any]]) -> list[tuple[str, RunSpec]]:
    """The specification with every combination of those settings that it has, labelled; each once."""
    found: dict[str, tuple[str, RunSpec]] = {}
    for values in itertools.product(*sweep.values()):
        each = changed(spec, dict(zip(sweep, values, strict=True)))
        has = {path: value for path, value in written(each).items() if path in sweep}
        found.setdefault(each.id, (Variation(has, {}).label, each))
    return list(found.values())


def _runs(spec: RunSpec, examples: int, epochs: float, seeds: int) -> tuple[RunSpec, ...]:
    """The runs of a setting: as many updates as its batch and workers need for the epochs, tested ten times."""
    settings = dict(spec.settings)
    updates = max(1, math.ceil(epochs * examples / (settings["batch"] * settings["workers"])))
    length = {"updates": updates, "evaluate": {"every": max(1, updates // TESTS)}}
    return tuple(RunSpec(spec.experiment, overlaid(length, settings), seed) for seed in range(seeds))


def _trained(known: Callable[[], Facts]) -> Experiment:
    """The common training, which knows this network and these data from its first use on."""

    def after(part: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            known()
            return part(*given)

        return call

    parts: dict[str, Any] = {each.name: getattr(TRAIN, each.name) for each in fields(TRAIN)}
    bound: dict[str, Any] = {part: after(value) for part, value in parts.items() if callable(value)}
    return replace(TRAIN, **bound)
