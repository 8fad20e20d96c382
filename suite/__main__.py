"""``python -m suite`` is ``sgd-suite``."""

from suite.commands.main import main

main()
