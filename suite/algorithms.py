"""The reference implementations by name, one explicit import each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _isgd() -> Any:
    from reference_impls import isgd

    return isgd


def _sgd() -> Any:
    from reference_impls import inverse_law

    return inverse_law


def _rudra() -> Any:
    from reference_impls import rudra

    return rudra


def _matex() -> Any:
    from reference_impls import matex_agd

    return matex_agd


def _crossbow() -> Any:
    from reference_impls import crossbow

    return crossbow


ALGORITHMS: dict[str, Callable[[], Any]] = {
    "sgd": _sgd,
    "isgd": _isgd,
    "rudra": _rudra,
    "matex_agd": _matex,
    "crossbow": _crossbow,
}


def algorithm(name: str) -> Any:
    """The module that satisfies ``contract.Algorithm`` under this name; raises ValueError for another."""
    try:
        return ALGORITHMS[name]()
    except KeyError:
        raise ValueError(f"unknown algorithm {name!r}; there are {sorted(ALGORITHMS)}") from None
