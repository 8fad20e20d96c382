"""Whether updates became slower: baselines by machine class, rank tests, the gate.

Imports ``runs`` and below.
"""
