"""The options that commands share, what their values must be, and what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

Profile = StrEnum("Profile", ("smoke", "reduced", "paper"))
Device = StrEnum("Device", ("auto", "cpu", "cuda"))
Format = StrEnum("Format", ("svg", "png", "pdf"))
TableFormat = StrEnum("TableFormat", ("csv", "parquet"))
SVG = [Format.svg]


def complete_selector(incomplete: str) -> list[str]:
    """Papers and artifacts that begin so, for the shell."""
    from suite.papers import catalogue

    names = [row["id"] for row in catalogue.index()]
    return [n for n in dict.fromkeys([*(n.partition("/")[0] for n in names), *names]) if n.startswith(incomplete)]


def complete_dataset(incomplete: str) -> list[str]:
    """Data sets that begin so, for the shell."""
    from suite.data.catalogue import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)]


Selectors = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SELECTOR]...",
        help="paper, paper/artifact or a glob; none: all",
        autocompletion=complete_selector,
    ),
]
_DATASET = typer.Argument(metavar="NAME", help="as `data list` calls it", autocompletion=complete_dataset)
DatasetName = Annotated[str, _DATASET]
DatasetNames = Annotated[list[str] | None, _DATASET]


def a_path(text: str | Path) -> Path:
    """The value of an option that names a place. Raises BadParameter for an empty one: it would mean this folder."""
    if not str(text).strip():
        raise typer.BadParameter("the name is empty; name a place, or leave the option out")
    return Path(text)


def place(text: str, *names: str, metavar: str = "D") -> Any:
    """An option that names a place, with this help."""
    return typer.Option(*names, help=text, metavar=metavar, parser=a_path)


def finite(seconds: float | None) -> float | None:
    """A number of seconds that an option gave. Raises BadParameter for one that is no time."""
    if seconds is not None and not math.isfinite(seconds):
        raise typer.BadParameter(f"{seconds} is no number of seconds; leave the option out for no limit")
    return seconds


def seconds(text: str, *names: str) -> Any:
    """An option for a number of seconds, with this help."""
    return typer.Option(*names, min=1, callback=finite, help=text, metavar="SECONDS")


def a_share(text: str | None) -> tuple[int, int] | None:
    """``I/N`` as two numbers. Raises BadParameter for anything else."""
    if text is None:
        return None
    first, _, second = text.partition("/")
    if not (first.isdecimal() and second.isdecimal() and int(first) < int(second)):
        raise typer.BadParameter(f"--share {text!r} must be I/N with I from 0 to N - 1")
    return int(first), int(second)


STORE = Path("runs.store")
StoreOption = Annotated[Path, place("folder of runs", "--store")]
SourceOption = Annotated[
    Path | None, place("folder of runs, or an exported file; committed evidence lies beneath", "--store")
]
DataOption = Annotated[Path | None, place("folder of data sets as the Hub or torchvision lays them out", "--data")]
Formats = Annotated[list[Format], typer.Option("--format", help="file format; give it again for more")]
Json = Annotated[bool, typer.Option("--json", help="one JSON document on stdout")]
DeviceOption = Annotated[Device, typer.Option(help="where gradients are computed")]
Workers = Annotated[int, typer.Option(min=1, help="parallel processes, one thread each")]
Budget = Annotated[float | None, typer.Option(min=1, callback=finite, help="seconds after which to stop cleanly")]
Calibrate = Annotated[float | None, seconds("time pieces of the runs here for so long first", "--calibrate")]
ProfileOption = Annotated[Profile, typer.Option("--profile", help="size of the runs")]
OnlyMine = Annotated[bool, typer.Option("--only-mine", help="leave the committed evidence out")]
Only = Annotated[
    str | None, typer.Option(help="only groups of this name or glob, as `plan` quotes them", metavar="GROUP")
]
Seeds = Annotated[int | None, typer.Option(min=1, help="only the first so many seeds of every group", metavar="N")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="leave what other processes compute to them")]
Memory = Annotated[int | None, typer.Option(min=1, help="only runs that need at most so many bytes", metavar="BYTES")]
On = Annotated[str | None, typer.Option("--on", help="hand the runs to this engine's workers: slurm")]
Jobs = Annotated[int | None, typer.Option(min=1, help="with --on: how many workers")]
EngineOptions = Annotated[Path | None, place("with --on: the engine's own options, TOML", metavar="F")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="with --on: print what would be submitted")]
WaitForWorkers = Annotated[bool, typer.Option("--wait", help="with --on: end when the workers have")]
Papers = Annotated[list[str] | None, typer.Argument(metavar="[PAPER]...", help="papers; none: all")]
ShortName = Annotated[str, typer.Argument(metavar="NAME", help="short name, as in NAME/fig1")]
Into = Annotated[Path | None, place("folder to make; default NAME")]


@dataclass(frozen=True)
class RunOptions:
    """How the runs of a selection are to be computed.

    Attributes:
        profile: whose runs.
        store: folder that they go to.
        data: folder of data sets.
        device: "auto", "cpu" or "cuda".
        workers: processes side by side.
        budget: seconds after which what is left, with its checkpoint, is the next call's; the order within it is that
            of ``suite.commands.planning``.
        wait: for runs that another process is computing, instead of leaving them to it.
        share: (i, n): the i-th of n parts of the plan alone.
        memory: only runs that need no more bytes.
        seeds: the first so many of each group alone.
        only: groups of this name or glob alone.
        track: the tracker that is told each run it stores.
        missing: only runs that the suite comes without.
    """

    profile: str
    store: Path
    data: Path | None = None
    device: str = "auto"
    workers: int = 1
    budget: float | None = None
    wait: bool = True
    share: tuple[int, int] | None = None
    memory: int | None = None
    seeds: int | None = None
    track: str | None = None
    missing: bool = False
    only: str | None = None


class Request(NamedTuple):
    """What the user asked of an engine, beside the selection; ``on`` is its name, None for no engine."""

    on: str | None
    jobs: int | None = None
    options: Path | None = None  # a TOML file
    dry_run: bool = False
    wait: bool = False

    def check(self, others: Mapping[str, object]) -> None:
        """Raise BadParameter for an engine's options without --on, and for ``others``, by name and value, with it."""
        own = {"--jobs": self.jobs, "--engine-options": self.options, "--dry-run": self.dry_run, "--wait": self.wait}
        wrong, how = (own, "need --on") if self.on is None else (others, "do not go with --on")
        if any(wrong.values()):
            raise typer.BadParameter(f"{', '.join(list(wrong)[:-1])} and {list(wrong)[-1]} {how}")
