"""Training one's own module over processes, with checkpoints that resume to the same bits.

Imports ``training`` and ``communication``.
"""
