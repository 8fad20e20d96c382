"""Runs on disk: store, archives, what produced a run, comparison of two stores.

Imports ``spec``; everything that reads or writes results imports it.
"""
