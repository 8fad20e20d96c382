"""Equations 1 and 3, plain SGD and SGD with momentum."""

from __future__ import annotations

from paper_figures.crossbow import settings
from paper_figures.crossbow.readings import told
from suite.papers.panel import Panel

RUNS = {"algebra": (settings.ALGEBRA,)}
EQ1 = Panel("crossbow/eq1", "SGD update with a mini-batch gradient", lambda profile: RUNS)
EQ3 = Panel("crossbow/eq3", "SGD with momentum", lambda profile: RUNS)
ARTIFACTS = (EQ1, EQ3)

told(EQ1, "algebra", mean="mean_gradient")
told(EQ3, "algebra", two_forms="two_forms", first_step="first_step")
