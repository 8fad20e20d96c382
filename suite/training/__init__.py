"""One training run from plain settings: data, network, gradients, optimizer, loop, tests, checkpoints.

Imports ``reference_impls`` and the rooms below (``data``, ``models``, ``communication``, ``runs``), no paper.
"""
