"""Rudra's system: the protocol in integers, servers in virtual time, training along them, real processes.

Imports ``training`` and below.
"""
