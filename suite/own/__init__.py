"""An experiment of one's own: a network, a data set, methods, settings and seeds; the harness does the rest."""

from suite.own.experiment import experiment

__all__ = ["experiment"]
