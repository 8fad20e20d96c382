"""Make a package for an experiment of one's own: a network, data, methods and settings in forty lines."""

from __future__ import annotations

from suite.commands import options
from suite.commands.new_paper import new_package


def command(name: options.ShortName, *, into: options.Into = None) -> None:
    print("\n".join(new_package(name, into, "experiment")))
