"""``python -m suite`` is ``sgd-suite``."""

from suite.cli import main

main()
