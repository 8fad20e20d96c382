"""The harness: trains the papers' models by the papers' algorithms, stores runs, judges claims, draws figures."""

__version__ = "0.2.0"
DISTRIBUTION = "sgd-scaling-suite"  # tells this package from others of its name
