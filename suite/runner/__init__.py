"""From specifications to stored runs: worker processes, the choice of an execution, expected cost.

Imports ``training`` and ``runs``; knows no paper.
"""
