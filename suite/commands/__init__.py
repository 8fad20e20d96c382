"""One module per command of ``sgd-suite``, and the pytest plug-in.

Imports everything below; only ``cli`` imports it.
"""
