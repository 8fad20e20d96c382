"""Data sets as device tensors, the order in which their batches are drawn, and parallel text.

``catalogue`` knows every set without importing torch; nothing here imports a neighbour until it is needed.
"""
