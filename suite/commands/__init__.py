"""The command line: one module a command, which declares its options and does its work, and the pytest plug-in.

Imports everything below; no other room imports it.

Exit codes: 0 nothing red, 1 something red or a regression, 2 unusable input, 3 (``gate`` alone) measured too
little to tell. stdout carries results (with ``--json`` one document and nothing else), stderr progress and errors.
"""
