"""Data sets as device tensors, the order in which their batches are drawn, and parallel text.

Importing this package costs nothing: ``catalogue`` knows every set without torch, the rest is imported on use.
"""
