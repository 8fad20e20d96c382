"""Seconds that a machine would need, without the machine: overlap of exchange and computation, printed hardware.

Numbers from here are simulated, whoever imports them.
"""
