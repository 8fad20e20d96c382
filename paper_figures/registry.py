"""The papers of the suite, one explicit import each; adding a paper is adding a line here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paper_figures.artifact import Paper
    from suite.experiments import Experiment


def _isgd() -> Paper:
    from paper_figures import isgd

    return isgd.PAPER


def _inverse_law() -> Paper:
    from paper_figures import inverse_law

    return inverse_law.PAPER


def _rudra() -> Paper:
    from paper_figures import rudra

    return rudra.PAPER


def _matex_agd() -> Paper:
    from paper_figures import matex_agd

    return matex_agd.PAPER


def _crossbow() -> Paper:
    from paper_figures import crossbow

    return crossbow.PAPER


PAPERS: dict[str, Callable[[], Paper]] = {
    "isgd": _isgd,
    "inverse_law": _inverse_law,
    "rudra": _rudra,
    "matex_agd": _matex_agd,
    "crossbow": _crossbow,
}


@cache
def paper(name: str) -> Paper:
    """A paper by its short name. Raises KeyError for another."""
    return PAPERS[name]()


def experiment(name: str) -> Experiment:
    """The experiment that executes specifications of this name. Raises KeyError for another."""
    if name == "train":
        from suite.training_cost import TRAIN

        return TRAIN
    return paper(name.partition("/")[0]).experiments[name]
