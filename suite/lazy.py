"""Libraries that take long to import, loaded when the first name of theirs is used.

``list``, ``plan`` and ``run`` import every figure's module and draw nothing: these libraries would cost them seconds.
``Axes`` and ``Figure`` are for annotations alone.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["Axes", "Figure", "np", "pd", "scipy", "sns", "torch"]
TESTED = (2, 16)  # releases of torch below it; the oldest stands in pyproject.toml


class Lazy(ModuleType):
    """A module that is imported at the first look at one of its names."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__), name)
        setattr(self, name, value)  # the next look finds it here
        return value


if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import scipy
    import seaborn as sns
    import torch
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:
    np, pd, scipy, sns, torch = map(Lazy, ("numpy", "pandas", "scipy", "seaborn", "torch"))
    Axes = Figure = Any
