"""What a paper is to the suite: artifacts, their evidence and verdicts, and who registers one.

Imports ``claims``, ``runs`` and ``experiment``; papers themselves come by entry point.
"""
