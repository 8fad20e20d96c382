"""``python -m suite`` is ``sgd-suite``."""

from sgd_scaling_suite import main

main()
