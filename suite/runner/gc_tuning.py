"""Python's garbage collector, kept from searching modules again and again. Import before anything large."""

from __future__ import annotations

import gc
from functools import cache

USUAL = gc.get_threshold()
RARE = (100_000, 10, 10)


def search_rarely() -> None:
    """While modules are imported, which stay: searching them took a tenth of the time of ``sgd-suite list``."""
    gc.set_threshold(*RARE)


@cache
def spare_imports(experiment: str) -> None:
    """Once an experiment: take what its imports made out of the collector's view, where it stays for good.

    A simulation of thousands of learners otherwise has torch's modules searched again and again. From here on
    garbage is looked for as often as Python does by itself.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*USUAL)
