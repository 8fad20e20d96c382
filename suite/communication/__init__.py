"""Processes that exchange tensors: groups and their launch, sums, links with a rate.

Imports ``spec`` and ``clock``; knows neither runs nor algorithms.
"""
