"""Which definitions of the project a function's code leads to: how a time model or a clock behind a number is found.

Level of detail: definitions, so a function that merely shares a file with a time model does not reach it. References
are followed by :mod:`suite.runs.fingerprint` through calls, constants, classes and imports, those inside functions
included. What a function was handed when it was made (closures, partial arguments, defaults) is followed too.
Code behind an attribute of an object that is handed in at call time is not seen.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from suite.runs.fingerprint import PLACE, Place, Reader, present

# Definitions that say what time something takes that was not run, or in which order it then happens: all of a module,
# or one definition. A paper's own are named in its table of printed settings.
TIME_MODELS = (
    "suite.clock:Link",
    "suite.clock:Compute",
    "suite.cost_models.overlap",
    "suite.cost_models.machines:network",
    "suite.cost_models.machines:exchange",
    "suite.parameter_server.protocol:play",
    "suite.parameter_server.protocol:GammaDurations",
    "suite.parameter_server.flat",
    "suite.model_averaging.task_schedule:schedule",
    "suite.model_averaging.time_to_accuracy:Server",
)
OURS = ("suite", "reference_impls")
CLOCKS = ("perf_counter", "thread_time", "process_time")
TRAINING_CLOCKS = frozenset({"suite.clock:WallClock"})  # a training's own seconds, which no result rests on


@functools.cache
def definitions(function: Callable[..., Any]) -> frozenset[Place]:
    """Every definition of the project that a function's code reaches, the function's own included."""
    return _definitions(function, set())


def _definitions(function: Callable[..., Any], met: set[int]) -> frozenset[Place]:
    if id(function) in met:
        return frozenset()
    met.add(id(function))
    code = present()
    found: set[Place] = set()
    for handed in _handed(function):
        if isinstance(handed, str) and PLACE.fullmatch(handed):
            if place := code.resolve(*handed.split(":")):
                found |= code.closure(place)
        elif callable(handed):
            found |= _definitions(handed, met)
        elif place := code.resolve(type(handed).__module__, type(handed).__qualname__):
            found |= code.closure(place)
    if (plain := inspect.unwrap(function)) is not function:
        return frozenset(found) | _definitions(plain, met)
    for place in _references(function):
        found |= code.closure(place)
    return frozenset(found)


def _handed(function: Callable[..., Any]) -> Iterator[Any]:
    """What a function carries with it: values of its closure, defaults, a partial's arguments, an object's fields."""
    if isinstance(function, functools.partial):
        yield function.func
        yield from function.args
        yield from function.keywords.values()
        return
    if not hasattr(function, "__code__") and not inspect.isclass(function):
        yield from vars(function).values()
        return
    for cell in getattr(function, "__closure__", None) or ():
        held = cell.cell_contents
        yield from held if isinstance(held, list | tuple) else (held,)
    yield from getattr(function, "__defaults__", None) or ()
    yield from (getattr(function, "__kwdefaults__", None) or {}).values()


def _references(function: Callable[..., Any]) -> list[Place]:
    """What the text of a function itself refers to; several functions on its line count together."""
    kind = function if hasattr(function, "__code__") or inspect.isclass(function) else type(function)
    module = present().module(kind.__module__) if _ours(kind.__module__) else None
    if module is None:
        return []
    if inspect.isclass(kind) or "<" not in kind.__qualname__:
        place = present().resolve(kind.__module__, kind.__qualname__.partition(".")[0])
        return [place] if place else []
    line = kind.__code__.co_firstlineno
    nodes: list[ast.AST] = [
        node
        for nodes in module.definitions.values()
        for root in nodes
        for node in ast.walk(root)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and line in (node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ())))
    ]
    return Reader(present(), module).local(nodes).references


def _ours(module: str) -> bool:
    return present().resolve(module, "") is not None


def reaches(function: Callable[..., Any], places: Iterable[str]) -> str:
    """The first of ``places`` that a function's code leads to, as "module:name"; empty if it leads to none.

    A place is a module, a definition ("module:name"), or a definition of that name in any paper's package (":name").
    """
    wanted = frozenset(places)
    for module, name in sorted(definitions(function)):
        anywhere = "" if module.partition(".")[0] in OURS else f":{name}"
        if wanted & {module, f"{module}:{name}", anywhere}:
            return f"{module}:{name}"
    return ""


def reads_a_clock(function: Callable[..., Any]) -> bool:
    """Whether a function's code measures seconds, those that a training merely notes left out."""
    return any(
        f"{clock!r}" in present().local(place).text
        for place in definitions(function)
        if ":".join(place) not in TRAINING_CLOCKS
        for clock in CLOCKS
    )
