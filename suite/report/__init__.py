"""What people see: drawings, the report, the tables of the README, speed.

Imports ``papers`` and below.
"""
