"""One self-contained HTML page: every artifact, printed numbers beside ours, verdicts, and what stands behind them.

The page is read from stored files only. Everything that was stored is escaped by the template; the drawings, which
this package makes itself, are the one thing inserted as markup. No script, no request, no font from elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from suite.claims.board import MEANINGS as GRADE_MEANINGS
from suite.claims.board import WORDS, board, word
from suite.claims.families import corrected
from suite.claims.judge import PROFILES, VERDICTS, Verdict
from suite.claims.measured import Measured
from suite.papers.artifact import Artifact, Missing, Paper
from suite.papers.published import published
from suite.papers.register import read
from suite.papers.registry import PAPERS, paper
from suite.papers.verdicts import Measurement, besides, verdicts
from suite.report.drawing import Drawing, DrawingError, drawing, inline_svg, write
from suite.report.numerals import number
from suite.report.provenance import departures, runs_and_environments
from suite.report.speed import COLUMNS
from suite.report.speed_figures import measured_speed
from suite.report.templates import engine
from suite.runs.archive import Runs, versions
from suite.runs.contest import Survey
from suite.runs.environment import ROOT, revision
from suite.runs.store import Run, UnusableRun

SYMBOLS = dict(zip(VERDICTS, ("✓", "✗", "≈", "○", "=", "?", "⌂", "≠", "!"), strict=True))
MEANINGS = {
    "reproduced": "Our whole interval satisfies the claim's rule.",
    "not reproduced": "Our whole interval violates the rule. What the failure teaches stands beside it as a finding.",
    "inconclusive": "Our interval straddles the bound: neither holds nor fails at the confidence we ask for.",
    "not run": "The evidence that would decide the claim is not stored; the row says what is missing.",
    "no visible difference": "Our whole interval lies within the margin, fixed before, that counts as no difference.",
    "undetermined": "The quantity hangs on a setting that the paper does not print.",
    "bound to the paper's machine": "The quantity belongs to the paper's own machine: no other can decide it.",
    "known difference": "The claim fails at its own profile, we name the cause, and a second experiment shows it.",
    "paper contradicts itself": "Exact arithmetic on other numbers printed in the same paper excludes this one.",
}
PROFILE_MEANINGS = {
    "smoke": "Embedded data, minutes on two processor cores. Decides exact, analytic and simulated claims.",
    "reduced": "The papers' data sets with fewer epochs, seeds and grid points. Decides orderings and shapes.",
    "paper": "The papers' settings to the letter. Decides the printed values.",
}
SHORT = 8  # digits of a run id shown; the whole id is in the table of runs


@dataclass
class Shown:
    """One artifact on the page. ``drawn`` is its figure, ``undrawn`` says why there is none.

    ``fault`` is the programming error that kept it from being drawn, if there was one.
    """

    id: str
    title: str
    verdicts: list[Verdict]
    drawn: Drawing | None = None
    svg: str = ""
    inches: float = 0.0  # width of the drawing
    alt: str = ""
    profiled: bool = False  # whether any profile runs something for it
    undrawn: str = ""
    fault: str = ""
    command: str = ""
    runs: list[str] = field(default_factory=list)
    besides: list[tuple[str, str, Measured]] = field(
        default_factory=list
    )  # name, profile and value of other quantities

    def not_drawn(self, error: DrawingError) -> None:
        self.drawn, self.svg, self.fault, self.undrawn = None, "", str(error), f"Not drawn: {error}."

    @property
    def tally(self) -> Counter[str]:
        return Counter(v.verdict for v in self.verdicts)


class WithVerdicts(Protocol):
    verdicts: list[Verdict]


Listed = TypeVar("Listed", bound=WithVerdicts)


@dataclass
class Section(Generic[Listed]):
    """One paper on the page."""

    paper: Paper
    artifacts: list[Listed]
    survey: Survey = field(default_factory=Survey)  # of the runs that the source holds in several versions

    @property
    def verdicts(self) -> list[Verdict]:
        return [v for shown in self.artifacts for v in shown.verdicts]

    def having(self, verdict: str) -> list[Verdict]:
        return [v for v in self.verdicts if v.verdict == verdict]

    @property
    def findings(self) -> list[Verdict]:
        """Failures that teach something."""
        return [v for v in self.having("not reproduced") if not v.red]

    @property
    def unexplained(self) -> list[Verdict]:
        """Failures that ``check`` reports as red."""
        return [v for v in self.having("not reproduced") if v.red]


class Once:
    """A source that reads each run once: verdicts, drawings and the list of runs share what was verified."""

    def __init__(self, source: Runs):
        self._source = source
        self._read: dict[str, list[Run] | UnusableRun] = {}
        self._ids = source.ids()

    def ids(self) -> set[str]:
        return self._ids

    def read(self, run_id: str) -> Run:
        return self.versions(run_id)[0]

    def versions(self, run_id: str) -> list[Run]:
        if run_id not in self._ids:
            raise KeyError(run_id)
        if run_id not in self._read:
            try:
                self._read[run_id] = versions(self._source, run_id)
            except UnusableRun as error:
                self._read[run_id] = error
        found = self._read[run_id]
        if isinstance(found, UnusableRun):
            raise found
        return found


def write_report(source: Runs, out: Path, tell: Callable[[str], None] = lambda fault: None) -> Path:
    """Write ``out/report.html`` from the runs of ``source``; returns its path.

    ``tell`` is told of each artifact that a programming error kept from being drawn. The same runs and the same code
    give the same bytes. Raises StoreError when ``out`` cannot be written.
    """
    return write(Path(out) / "report.html", page(source, tell).encode())


def page(source: Runs, tell: Callable[[str], None] = lambda fault: None) -> str:
    """The report as HTML text; ``tell`` as in ``write_report``."""
    from markupsafe import Markup

    once = Once(source)
    sections = [_section(paper(name), once) for name in PAPERS]
    wanted = sorted({run_id for s in sections for shown in s.artifacts for run_id in shown.runs})
    for fault in [shown.fault for s in sections for shown in s.artifacts if shown.fault]:
        tell(fault)
    environments, runs = runs_and_environments(once, wanted)
    several = Survey()
    for section in sections:
        several.add(section.survey)
    templates = engine(Path(__file__).parent, {"number": number, "drawn": Markup})
    return templates.get_template("page.html.j2").render(
        sections=sections,
        counts=board([v for s in sections for v in s.verdicts]),
        board_of=board,
        word_of=word,
        words=list(WORDS.values()),
        environments=environments,
        runs=runs,
        held_twice=several.lines(),
        speeds=measured_speed(),
        speed_columns=COLUMNS,
        ledgers=departures(ROOT / "reference_impls"),
        revision=revision(),
        symbols=SYMBOLS,
        verdict_names=VERDICTS,
        meanings=MEANINGS,
        grades=GRADE_MEANINGS,
        profiles=PROFILE_MEANINGS,
        short=SHORT,
    )


def all_verdicts(
    which: Paper, source: Runs, measured: dict[tuple[str, str], Measurement] | None = None
) -> list[Verdict]:
    """Verdicts of every published claim, those of artifacts that nothing measures yet among them."""
    artifacts = {claim.artifact for claim in published(which.name)}
    found = verdicts(which, source, artifacts=artifacts, measured=measured)
    return corrected(found, read(PAPERS[which.name].home).families)


def _section(which: Paper, source: Runs) -> Section[Shown]:
    by_artifact: dict[str, list[Verdict]] = {artifact.id: [] for artifact in which.artifacts}
    measured: dict[tuple[str, str], Measurement] = {}
    for verdict in all_verdicts(which, source, measured):
        by_artifact.setdefault(verdict.claim.artifact, []).append(verdict)
    known = {artifact.id: artifact for artifact in which.artifacts}
    section = Section[Shown](which, [])
    for name, found in by_artifact.items():
        section.artifacts.append(shown := show(name, known.get(name), found, source, measured))
        if drawn := shown.drawn:
            shown.drawn = None  # which holds more memory than its text
            try:
                shown.svg, shown.inches = inline_svg(drawn), float(drawn.figure.get_figwidth())
            except DrawingError as error:
                shown.not_drawn(error)
    for measurement in measured.values():
        section.survey.add(measurement.survey)
    return section


def show(
    name: str,
    artifact: Artifact | None,
    found: list[Verdict],
    source: Runs,
    measured: dict[tuple[str, str], Measurement],
) -> Shown:
    """An artifact with its drawing if its runs are stored, its command, and the stored runs it rests on.

    ``measured`` is what its verdicts ``found`` were judged from.
    """
    if artifact is None:
        return Shown(name, name.partition("/")[2], found, undrawn="No experiment measures this artifact yet.")
    shown = Shown(name, artifact.title, found, alt=artifact.shows, besides=besides(name, measured))
    shown.profiled = any(artifact.runs(p) for p in PROFILES)
    used = {v.profile for v in found if v.profile}
    drawn = None
    try:
        shown.drawn = drawn = drawing(artifact, source, measured=measured)
    except Missing as error:
        shown.undrawn = f"Not run: {error}."
    except DrawingError as error:
        shown.not_drawn(error)
    except UnusableRun as error:
        shown.undrawn = f"Not drawn, stored evidence cannot be used: {error}."
    if drawn:
        used |= {drawn.profile} - {""}
    named = {run_id for v in found for m in (v.measured, v.proxy) if m for run_id in m.runs}
    planned = {spec.id for p in used for specs in artifact.runs(p).values() for spec in specs}
    shown.runs = sorted(named | (planned & source.ids()))
    shown.command = command(artifact, drawn.profile if drawn and drawn.profile else _profile(artifact, used))
    return shown


def _profile(artifact: Artifact, used: Iterable[str]) -> str:
    """The largest profile in use, else the smallest at which the artifact has runs; "" when it never has any."""
    in_use = [p for p in PROFILES if p in set(used) and artifact.runs(p)]
    return in_use[-1] if in_use else next((p for p in PROFILES if artifact.runs(p)), "")


def command(artifact: Artifact, profile: str) -> str:
    """What a reader types to remake an artifact."""
    last = f"sgd-suite {'figures' if artifact.draw else 'check'} {artifact.id}"
    return f"sgd-suite run {artifact.id} --profile {profile} && {last}" if profile else last
