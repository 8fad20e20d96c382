"""A command called as its entry point calls it, in this process, and what a walk over artifacts must never see."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from suite.commands.main import main
from suite.papers.catalogue import published

FORMS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}  # of a figure, and how the file begins


@dataclass(frozen=True)
class Done:
    """Exit code and output of a command."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    def fine(self) -> Done:
        """Itself, if it ended with 0 and without a traceback. Raises AssertionError otherwise."""
        said = f"{' '.join(self.words)} ended with {self.code}:\n{self.out[-2000:]}\n{self.err[-4000:]}"
        assert self.code == 0, said
        assert "Traceback" not in self.out + self.err, said
        return self


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def call(*words: str, terminal: bool = False) -> Done:
    """``sgd-suite WORDS``, into a pipe or to a terminal."""
    out, err = Terminal() if terminal else io.StringIO(), io.StringIO()
    code: object = 0
    with (
        mock.patch.object(sys, "argv", ["sgd-suite", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    return Done(words, int(code or 0), out.getvalue(), err.getvalue())  # type: ignore[call-overload]


def figures(folder: Path, *selectors: str, forms: Collection[str] = FORMS) -> dict[str, list[Path]]:
    """Draw into ``folder`` in the forms, and write what is drawn as CSV; returns the pictures of each artifact drawn.

    Raises AssertionError where one is not drawn for another reason than missing runs, or a file is not what its name
    says.
    """
    asked = [word for form in forms for word in ("--format", form)]
    done = call("figures", *selectors, *asked, "--data", "csv", "--out", str(folder)).fine()
    drawn: dict[str, list[Path]] = {}
    for line in done.err.splitlines():
        artifact, _, said = line.partition(": ")
        assert "not drawn" not in said, line
        if said.startswith(("not run: ", "no drawing; ")):
            continue
        drawn[artifact] = [folder / f"{artifact.replace('/', '-')}.{form}" for form in forms]
        for path in drawn[artifact]:
            assert path.read_bytes().startswith(FORMS[path.suffix[1:]]), path
        told = any(claim.artifact == artifact for claim in published(artifact.partition("/")[0]))
        assert path.with_suffix(".csv").exists() or not told, f"{artifact} has no table"
    return drawn


def judged(*selectors: str) -> str:
    """What ``check -v`` prints. Raises AssertionError where something is red."""
    return call("check", "-v", *selectors).fine().out
