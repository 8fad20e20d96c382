"""The printed values as a test suite: every claim of a published file is one test item.

    pytest paper_figures/published --profile smoke --store D

A red verdict fails, *not run* skips with what is missing, any other passes; the judge is the one that ``check``
and the report use. Without ``--profile`` each claim is judged at the largest profile with evidence, without
``--store`` on the committed evidence (and ``runs.store`` of the working folder, if there is one).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from suite.claims.board import board, lines, word
from suite.claims.judge import PROFILES, Verdict
from suite.commands.check import judge_selection
from suite.papers.catalogue import PAPERS, with_committed
from suite.report.numerals import basis, compared, few, ours
from suite.runs.archive import Runs

pytest.register_assert_rewrite("suite.battery")

SOURCE = pytest.StashKey[Runs]()
FOUND = pytest.StashKey[list[Verdict]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("claims", "claims of the papers")
    group.addoption("--profile", choices=PROFILES, default=None, help="judge claims at this profile only")
    group.addoption("--store", type=Path, default=None, metavar="D", help="runs to judge claims from")


def pytest_configure(config: pytest.Config) -> None:
    """Open the store that was named: a wrong name is a mistake on the command line. Raises UsageError."""
    if (store := config.getoption("--store")) is not None:
        try:
            config.stash[SOURCE] = with_committed(store)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from error


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> PublishedFile | None:
    registered = PAPERS.get(file_path.stem)
    if registered and file_path == registered.home / "published" / f"{file_path.stem}.toml":
        return PublishedFile.from_parent(parent, path=file_path)
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The two boards of all claims that were collected."""
    if found := config.stash.get(FOUND, []):
        terminalreporter.section("claims by what they rest on")
        for line in lines(board(found)):
            terminalreporter.write_line(line)


class PublishedFile(pytest.File):
    """The published values of one paper."""

    def collect(self) -> Iterator[ClaimItem]:
        stash = self.config.stash
        if SOURCE not in stash:
            try:
                stash[SOURCE] = with_committed(None)
            except ValueError as error:
                raise self.CollectError(str(error)) from error
        found = judge_selection([self.path.stem], self.config.getoption("--profile"), stash[SOURCE])
        stash.setdefault(FOUND, []).extend(found)
        for verdict in found:
            yield ClaimItem.from_parent(self, name=verdict.claim.id.partition("/")[2], verdict=verdict)


class RedVerdict(Exception):
    """A claim whose verdict is red."""


class ClaimItem(pytest.Item):
    """One claim."""

    def __init__(self, *, verdict: Verdict, **rest: Any):
        super().__init__(**rest)
        self.verdict = verdict

    def runtest(self) -> None:
        verdict = self.verdict
        self.user_properties.append(("verdict", verdict.verdict))
        self.user_properties.append(("rests on", verdict.rests_on))
        if verdict.red:
            raise RedVerdict
        if verdict.verdict == "not run":
            pytest.skip(verdict.why)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if not isinstance(excinfo.value, RedVerdict):
            return str(super().repr_failure(excinfo))
        claim, found = self.verdict.claim, self.verdict.measured
        return (
            f"{claim.id}: {self.verdict.verdict}: {self.verdict.why}\n  {claim.says} ({claim.where})\n"
            f"  {basis(claim)} {few(compared(claim))}, measured {few(ours(found, claim)) if found else 'nothing'}; "
            f"rule {claim.rule}, because {claim.because}"
        )

    def reportinfo(self) -> tuple[Path, None, str]:
        rests = f", {self.verdict.rests_on}" if self.verdict.rests_on else ""
        return self.path, None, f"{self.verdict.claim.id} ({word(self.verdict)}{rests})"
