"""The command ``sgd-suite``: it stands outside ``suite``, so that it can tell where another package has that name."""

from __future__ import annotations

import sys

NAME = "sgd-scaling-suite"


def main() -> None:
    """Run the command line. Ends with exit code 2 and a sentence where the installation cannot run it."""
    try:
        if reason := hindrance():
            print(f"sgd-suite: {reason}", file=sys.stderr)
            sys.exit(2)
        from suite.commands.main import main as command

        command()
    except KeyboardInterrupt:  # while modules are imported; later ones are the command's to answer
        print("interrupted by SIGINT: nothing was begun", file=sys.stderr)
        sys.exit(130)


def hindrance() -> str | None:
    """Why the command line cannot be imported here, and the cure."""
    try:
        import suite
    except ImportError as error:
        return f"{error}; install it with: pip install {NAME}[all]"
    if getattr(suite, "DISTRIBUTION", None) != NAME:
        return (
            f"{suite.__file__} is another package of the name suite, or a file of yours, and hides that of {NAME}; "
            f"rename the file, or uninstall the other package and reinstall this one"
        )
    try:
        import suite.commands.main
    except ModuleNotFoundError as error:
        return f"this needs the Python package {error.name}, which is not installed here: pip install {NAME}[all]"
    return None
