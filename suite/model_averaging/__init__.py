"""Crossbow's system: learners on one device, the tuner, task schedules, memory plans.

Imports ``training`` and below.
"""
