"""Engines start workers on other machines, and nothing more: the store is the queue.

A worker is ``sgd-suite run`` on the store: it claims what nobody computes, resumes what others left, and ends when
nothing is left. An engine therefore only has to start a number of equal processes and may lose any of them. It is
a class of three methods; another package adds one to ``ENGINES``, as :mod:`suite.tables` says.
"""

from suite.engines.engine import INDEX, Engine, EngineError, Job
from suite.engines.slurm import Slurm
from suite.tables import Table

__all__ = ["ENGINES", "INDEX", "Engine", "EngineError", "Job"]

ENGINES: Table[type[Engine]] = Table("engine", {"slurm": Slurm})
