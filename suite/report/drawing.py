"""From stored runs to figures: one file per artifact.

matplotlib is driven through ``Figure`` objects and the Agg backend alone; no pyplot state, no display.
"""

from __future__ import annotations

import contextlib
import io
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from suite.claims.judge import NEEDS, ON_A_CPU, PROFILES, Verdict
from suite.clock import counted
from suite.lazy import Figure, pd
from suite.papers.artifact import Artifact, Groups, Missing, Paper
from suite.papers.catalogue import published, select
from suite.papers.measurement import few_seeds, judge_artifacts, measure, measure_frame, scales
from suite.report import style
from suite.report.data import encoded, plotted, values
from suite.runs.archive import Runs
from suite.runs.run import UnusableRun, write

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
STAMP_INCHES = 0.17  # height kept free at the foot of a figure for the line that says what it shows


class DrawingError(ValueError):
    """A programming error in what draws an artifact, or figures that a command had to draw and did not."""


@contextlib.contextmanager
def naming(artifact: str) -> Iterator[None]:
    """Turn a programming error in this block into a DrawingError that names the artifact and the line of code."""
    try:
        yield
    except (Missing, UnusableRun, DrawingError, ModuleNotFoundError):  # a package that is not installed, the last
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}, line {place.lineno}"
        raise DrawingError(f"{artifact}: programming error, {type(error).__name__}: {error} ({where})") from error


@dataclass(frozen=True)
class Drawing:
    """A drawn artifact: its figure, the profile of its runs ("" when it needs none), what it rests on.

    ``runs`` are the ids of the runs that the drawing read, ``groups`` those that it was offered; ``seeds`` says how
    many seeds they are where some are missing.
    """

    artifact: Artifact
    figure: Figure
    profile: str
    rests_on: tuple[str, ...]
    runs: tuple[str, ...]
    groups: Groups = field(default_factory=dict)
    seeds: str = ""

    @property
    def stamp(self) -> str:
        """What the figure says of itself, e.g. ``reduced profile · reduced, modelled · 12 runs``."""
        runs = counted(len(self.runs), "run") if self.runs else ""
        profile = f"{self.profile} profile" if self.profile else ""
        parts = profile, self.seeds, ", ".join(self.rests_on), runs
        return " · ".join(filter(None, parts)) or "no run"


def drawing(artifact: Artifact, source: Runs, profile: str | None = None) -> Drawing | None:
    """The artifact drawn from the largest profile whose runs are stored, or from ``profile`` alone.

    Where seeds are missing it is drawn from those that are stored, and says how many they are.
    None for an artifact without a drawing. Raises Missing, naming what lacks at each profile, when no profile has
    the runs, UnusableRun when a stored run that it needs cannot be used, and DrawingError for a programming error.
    """
    if artifact.draw is None:
        return None
    lacking: dict[str, None] = {}
    for name in (profile,) if profile else tuple(reversed(PROFILES)):
        try:
            with naming(artifact.id):
                return _drawn(artifact, source, name, artifact.runs(name))
        except Missing as error:
            lacking[str(error)] = None
        with contextlib.suppress(Missing), naming(artifact.id):
            if few := few_seeds(artifact.runs(name), source.ids()):
                return _drawn(artifact, source, name, *few)
    # The least that a machine needs for any of it stands before what lacks, where two cores do not do.
    needed = {claim.needs for claim in published(artifact.id.partition("/")[0]) if claim.artifact == artifact.id}
    beyond = [need for need in NEEDS if need in needed.difference(ON_A_CPU)]
    told = "; ".join(lacking)
    raise Missing(f"needs {beyond[0]} ({told})" if beyond else told)


def _drawn(artifact: Artifact, source: Runs, profile: str, groups: Groups, few: str = "") -> Drawing:
    frame = artifact.read(source, profile, groups)
    assert artifact.draw is not None
    figure = filled(artifact, partial(artifact.draw, frame))
    runs = tuple(sorted(frame.read))
    measurement = measure_frame(artifact, frame) if few else measure(artifact, source, profile, claimed=True)
    rests_on = scales(artifact, groups, frame, measurement, runs)
    at = profile if any(groups.values()) else ""
    return stamped(Drawing(artifact, figure, at, rests_on, runs, groups, few))


def filled(artifact: Artifact, fill: Callable[[Figure], None]) -> Figure:
    """A figure of the artifact's size, filled."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with style.applied(artifact.id):
        figure = Figure(figsize=artifact.size, layout="constrained")
        FigureCanvasAgg(figure)
        fill(figure)
    return figure


def stamped(drawn: Drawing) -> Drawing:
    """The drawing with its stamp at the foot, its long curves thinned."""
    figure = drawn.figure
    with style.applied(drawn.artifact.id):
        # One small line, in room that the layout leaves free.
        share = STAMP_INCHES / figure.get_figheight()
        figure.set_layout_engine("constrained", rect=(0, share, 1, 1 - share))
        figure.text(0.995, 0.01, drawn.stamp, ha="right", va="bottom", fontsize=7, color=style.INK)
        style.lighten(figure)
    return drawn


def file_name(artifact_id: str, form: str) -> str:
    """``isgd/fig5a`` as ``isgd-fig5a.svg``."""
    return f"{artifact_id.replace('/', '-')}.{form}"


def image(drawn: Drawing, form: str) -> bytes:
    """The figure as svg, png or pdf. SVG has no background and the viewer's colours; png and pdf are white.

    Raises DrawingError.
    """
    if form == "svg":
        ElementTree.register_namespace("", SVG)
        ElementTree.register_namespace("xlink", XLINK)
        written = ElementTree.tostring(_tree(drawn), encoding="unicode")
        return f'<?xml version="1.0" encoding="utf-8"?>\n{written}'.encode()
    buffer = io.BytesIO()
    dates = {"CreationDate": None} if form == "pdf" else {}
    with naming(drawn.artifact.id), style.applied(drawn.artifact.id):
        drawn.figure.savefig(buffer, format=form, facecolor="white", metadata=dates)
    return buffer.getvalue()


def _tree(drawn: Drawing) -> ElementTree.Element:
    """The figure as SVG with its title and description for readers who cannot see it, in the viewer's ink."""
    from matplotlib.backends.backend_mixed import MixedModeRenderer
    from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
    from matplotlib.textpath import text_to_path

    buffer, figure, dots = io.StringIO(), drawn.figure, drawn.figure.dpi
    with naming(drawn.artifact.id), style.applied(drawn.artifact.id):
        canvas: Any = FigureCanvasSVG(figure)
        figure.dpi = 72
        width, height = figure.get_size_inches()
        svg: Any = RendererSVG(72 * width, 72 * height, buffer, image_dpi=dots, metadata={"Date": None})
        renderer: Any = MixedModeRenderer(figure, width, height, dots, svg)
        # One renderer measures the texts for layout and drawing, all of them share what parses mathematics.
        canvas.get_renderer, svg._text2path = lambda: renderer, text_to_path
        figure.draw(renderer)
        renderer.finalize()
    figure.dpi = dots
    root = ElementTree.fromstring(numbered(buffer.getvalue(), drawn.artifact.id))
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        _lighten(element)
    # Elements without a fill are black in SVG: here they are ink.
    root.attrib |= {"fill": "currentColor", "role": "img", "aria-labelledby": "title desc"}
    scheme = f"svg{{color:{style.INK}}}@media(prefers-color-scheme:dark){{svg{{color:#e4e6e9}}}}"
    described = f"{drawn.artifact.shows} ({drawn.stamp})"
    for name, text in (("style", scheme), ("desc", described), ("title", drawn.artifact.title)):
        told = ElementTree.Element(f"{{{SVG}}}{name}", {} if name == "style" else {"id": name})
        told.text = text
        root.insert(0, told)
    return root


_DEFINED = re.compile(r'\bid="([a-z][0-9a-f]{10})"')
_NAMED = re.compile(r'(?<=["#])[a-z][0-9a-f]{10}\b')


def numbered(svg: str, artifact: str) -> str:
    """The figure with clip paths and markers named by their place.

    matplotlib names them by a hash of coordinates, whose last bits differ between two drawings of one figure.
    """
    prefix = artifact.replace("/", "-")
    names = {name: f"{prefix}-{place}" for place, name in enumerate(dict.fromkeys(_DEFINED.findall(svg)))}
    return _NAMED.sub(lambda found: names.get(found[0], found[0]), svg)


_INKS = re.compile(rf"(?:{style.INK}|#000000)\b")
_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def _lighten(element: ElementTree.Element) -> None:
    """Give an element's ink the viewer's colour, its path two decimals."""
    for name, value in element.attrib.items():
        if name in ("style", "fill", "stroke"):
            element.set(name, _INKS.sub("currentColor", value))
        elif name == "d":
            element.set(name, " ".join(_NUMBER.sub(lambda m: f"{float(m[0]):.2f}", value).split()))


def table_of(
    artifact: Artifact, source: Runs, drawn: Drawing | None, judge: Callable[[], Iterable[Verdict]]
) -> pd.DataFrame | None:
    """What the artifact's figure ``drawn`` shows (None where it is not drawn): its frame, or what is plotted.

    Where nothing is, as in a diagram, the values of its claims, which ``judge`` gives. None without either.
    """
    if artifact.frame and drawn:  # without runs any profile will do
        return artifact.frame(artifact.read(source, drawn.profile or "smoke", drawn.groups))
    table = plotted(drawn.figure) if drawn else ()
    return table if len(table) else values(judge())


def draw_selection(
    selectors: Iterable[str],
    source: Runs,
    out: Path,
    forms: Sequence[str] = ("svg",),
    profile: str | None = None,
    data: str | None = None,
) -> Iterator[str]:
    """Draw the selected artifacts into ``out``, once for all ``forms``; yields one line for each: where, or why not.

    With ``data``, "csv" or "parquet", what each shows is written beside it as a table: its frame, or the values of
    its claims where it has none.

    Raises SelectorError for a selector that names nothing, StoreError when ``out`` cannot be written. After all
    others are drawn it raises UnusableRun when stored evidence cannot be used, and DrawingError after a programming
    error or when an artifact that a selector names in full drew nothing.
    """
    named = list(selectors)
    damaged, wrong, absent = list[str](), list[str](), list[str]()

    def drawn_line(which: Paper, artifact: Artifact) -> str:
        """Write one artifact's figure, and its table with ``data``; the line that says where they are."""
        drawn = drawing(artifact, source, profile)
        made = {form: image(drawn, form) for form in forms} if drawn else {}
        beside = ""
        if data:
            with naming(artifact.id):
                verdicts = partial(judge_artifacts, which, [artifact.id], profile, source)
                table = table_of(artifact, source, drawn, verdicts)
            if table is not None:
                beside = f"; {write(out / file_name(artifact.id, data), encoded(table, data))}"
        if drawn is None:
            return f"{artifact.id}: no drawing; its numbers are in the report and in check{beside}"
        paths = [str(write(out / file_name(artifact.id, form), content)) for form, content in made.items()]
        return f"{artifact.id}: {', '.join(paths)} ({drawn.stamp}){beside}"

    for which, artifacts in select(named):
        for artifact in artifacts:
            try:
                yield drawn_line(which, artifact)
            except Missing as error:
                absent += [artifact.id] if artifact.id in named else []
                yield f"{artifact.id}: not run: {error}"
            except DrawingError as error:
                wrong.append(artifact.id)
                yield f"{error}"
            except UnusableRun as error:
                damaged.append(artifact.id)
                yield f"{artifact.id}: not drawn, stored evidence cannot be used: {error}"
    if wrong:
        raise DrawingError(f"not drawn, since the code that draws fails: {', '.join(wrong)}")
    if damaged:
        raise UnusableRun(f"not drawn, since stored evidence cannot be used: {', '.join(damaged)}")
    if absent:
        raise DrawingError(f"not drawn, since runs are missing: {', '.join(absent)}")
