"""The inverse law's tools: fit, threshold search, knee of the update time, choice of a batch size.

Imports ``training`` and below.
"""
