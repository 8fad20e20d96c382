"""One artifact at several settings: its drawings laid over each other, or side by side where that cannot be.

An artifact's drawing knows nothing of this: it is called once for each set of runs. Where two drawings differ in
lines, bands and points alone, those of the varied runs are added to the unchanged drawing in colours of their own.
Where anything else differs (a bar, a text, a scale), or the colours do not suffice, the drawings stand side by side
on common axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from suite.lazy import Axes, Figure, np, pd
from suite.papers.artifact import Artifact, Evidence, Missing
from suite.report import style
from suite.report.data import plotted

if TYPE_CHECKING:
    from matplotlib.artist import Artist

UNCHANGED = "unchanged"
ABREAST = 2  # drawings in a row, where they stand side by side
HEADING, ENTRY = 0.3, 0.2  # inches above each of several drawings, and for a line of the legend


class UndrawableError(ValueError):
    """A drawing that does not take the varied runs."""


@dataclass(frozen=True)
class Comparison:
    """An artifact's drawing from the evidence of each label, the unchanged first.

    Its properties raise Missing as the artifact's drawing does, and UndrawableError where that fails on these runs.
    """

    artifact: Artifact
    evidence: Mapping[str, Evidence]

    @cached_property
    def alone(self) -> dict[str, Figure]:
        """Each drawn by itself."""
        from matplotlib.figure import Figure

        with style.applied(self.artifact.id):
            found = {label: Figure(figsize=self.artifact.size) for label in self.evidence}
            for label, figure in found.items():
                self._draw(label, figure)
        return found

    @cached_property
    def overlies(self) -> bool:
        """Whether all differ from the unchanged drawing in what can be laid over it, each in a colour of its own."""
        unchanged, *others = self.alone.values()
        if not all(_fixed(figure) == _fixed(unchanged) and _alike(figure, unchanged) for figure in others):
            return False
        varied = {label: figure for label, figure in self.alone.items() if label != UNCHANGED}
        return len(_needed(_differing(unchanged, varied))) <= len(_free(unchanged))

    @property
    def size(self) -> tuple[float, float]:
        """Inches."""
        width, height = self.artifact.size
        rows = -(-len(self.evidence) // ABREAST)
        return (width, height) if self.overlies else (ABREAST * width, rows * (height + HEADING))

    def fill(self, figure: Figure) -> None:
        """Draw all into one figure of that size."""
        if self.overlies:
            self._draw(UNCHANGED, figure)
            _overlay(figure, {label: each for label, each in self.alone.items() if label != UNCHANGED})
            return
        rows = -(-len(self.evidence) // ABREAST)
        parts = figure.subfigures(rows, ABREAST, squeeze=False).ravel()
        for label, part in zip(self.evidence, parts, strict=False):
            part.suptitle(label, x=0.02, ha="left")
            self._draw(label, part)
        for panels in zip(*(part.axes for part in parts[: len(self.evidence)]), strict=False):
            for axes in panels:
                _widen(axes, panels)

    def table(self, changes: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
        """What is drawn of each label, long, with a column for every changed setting; its value, or nothing."""
        parts = []
        for label, evidence in self.evidence.items():
            shown = self.artifact.frame(evidence) if self.artifact.frame else plotted(self.alone[label])
            parts.append(shown.assign(setting=label, **changes.get(label, {})))
        return pd.concat(parts, ignore_index=True)

    def _draw(self, label: str, figure: Any) -> None:
        assert self.artifact.draw is not None
        try:
            self.artifact.draw(self.evidence[label], figure)
        except Missing:
            raise
        except Exception as error:  # a drawing may take for granted what another setting breaks
            why = f"{type(error).__name__}: {error}"
            raise UndrawableError(
                f"the drawing of {self.artifact.id} does not take runs with {label} ({why})"
            ) from error


def _fixed(figure: Figure) -> list[Any]:
    """What of each panel must be the same for another drawing to be laid over it."""
    found: list[Any] = []
    for axes in figure.axes:
        shapes = [patch.get_patch_transform().transform(patch.get_path().vertices).tolist() for patch in axes.patches]
        cells = [cell.get_text() for table in axes.tables for cell in table.get_celld().values()]
        words = [text.get_text() for text in (*axes.texts, *cells)]
        words += [axes.get_title(loc=side) for side in ("left", "center", "right")]
        found.append((axes.get_xscale(), axes.get_yscale(), shapes, words, len(axes.images), _ticks(axes)))
    return found


def _ticks(axes: Axes) -> list[str]:
    """The names along an axis that a drawing wrote itself."""
    from matplotlib.ticker import FixedFormatter

    named = [axis.get_major_formatter() for axis in (axes.xaxis, axes.yaxis)]
    return [text for formatter in named if isinstance(formatter, FixedFormatter) for text in formatter.seq]


def _alike(figure: Figure, other: Figure) -> bool:
    """Whether what differs between two drawings of the same panels is of kinds that can be copied."""
    for mine, theirs in zip(figure.axes, other.axes, strict=True):
        if len(mine.lines) != len(theirs.lines) or len(mine.collections) != len(theirs.collections):
            return False
        pairs = zip(mine.collections, theirs.collections, strict=True)
        if not all(type(a) is type(b) and (_data(a) == _data(b) or _copies(a)) for a, b in pairs):
            return False
    return True


def _data(artist: Any) -> list[Any]:
    """The coordinates that a line or a collection shows, as plain lists."""
    from matplotlib.lines import Line2D

    if isinstance(artist, Line2D):
        return [np.asarray(artist.get_xydata()).tolist()]
    return [np.asarray(artist.get_offsets()).tolist(), *(path.vertices.tolist() for path in artist.get_paths())]


def _copies(artist: Artist) -> bool:
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection

    return isinstance(artist, LineCollection | PathCollection | PolyCollection)


def _overlay(figure: Figure, varied: Mapping[str, Figure]) -> None:
    """Add what differs in the varied drawings to the unchanged one, and a legend that says which is which."""
    from matplotlib.lines import Line2D

    found = _differing(figure, varied)
    hidden = [label for label, other in varied.items() if not _differing(figure, {label: other})]
    colours = dict(zip(_needed(found), _free(figure), strict=False))
    entries = _legend_taken(figure)
    alone = len(varied) == 1 and not entries  # then the legend's title says what is varied
    for each in found:
        handle = _added(each.axes, each.theirs, each.artist, colours[_colour(each.artist), each.label])
        if each.artist in each.theirs.lines or not each.theirs.lines:
            series = _series(each.theirs, each.artist)
            text = series or each.label if alone else ", ".join(filter(None, (series, each.label)))
            entries.setdefault(text, handle)
    if hidden:
        entries[f"{reduce(_joined, hidden)}: as unchanged"] = Line2D([], [], linestyle="none")
    for axes, *others in zip(figure.axes, *(other.axes for other in varied.values()), strict=True):
        _widen(axes, (axes, *others))
    title, columns = f"with {next(iter(varied))}" if alone else None, 2 if len(entries) > 1 else 1
    figure.set_figheight(figure.get_figheight() + ENTRY * (-(-len(entries) // columns) + alone))
    figure.legend(list(entries.values()), list(entries), loc="outside upper left", ncols=columns, title=title)


class _Differing(NamedTuple):
    """A line, band or cloud of a varied drawing that the unchanged one does not show; the panels of both."""

    axes: Axes
    theirs: Axes
    artist: Any
    label: str


def _differing(figure: Figure, varied: Mapping[str, Figure]) -> list[_Differing]:
    """What the varied drawings show beyond the unchanged one; what several labels share, once."""
    found: dict[tuple[int, str, str], _Differing] = {}
    for label, other in varied.items():
        for number, (axes, theirs) in enumerate(zip(figure.axes, other.axes, strict=True)):
            known = {str(_data(artist)) for artist in (*axes.lines, *axes.collections)}
            for artist in (*theirs.collections, *theirs.lines):
                key = number, _colour(artist), str(_data(artist))
                if key[2] not in known:
                    labels = _joined(found[key].label, label) if key in found else label
                    found[key] = _Differing(axes, theirs, artist, labels)
    return list(found.values())


def _joined(one: str, other: str) -> str:
    """``zeta = 1, margin = 1`` and ``zeta = 10, margin = 1`` as ``zeta = 1 or 10, margin = 1``."""
    parts = []
    for mine, theirs in zip(one.split(", "), other.split(", "), strict=False):
        value = theirs.partition(" = ")[2]
        parts.append(mine if value in mine.partition(" = ")[2].split(" or ") else f"{mine} or {value}")
    return ", ".join(parts)


def _needed(found: list[_Differing]) -> list[tuple[str, str]]:
    """The series (by their colours) and labels that each ask for a colour."""
    return sorted({(_colour(each.artist), each.label) for each in found})


def _free(figure: Figure) -> list[str]:
    """The colours of the palette that a drawing does not use."""
    used = {_colour(artist) for axes in figure.axes for artist in (*axes.lines, *axes.collections)}
    return [colour for colour in style.PALETTE if colour not in used]


def _legend_taken(figure: Figure) -> dict[str, Any]:
    """The entries of the figure's own legend, which is taken away: there is room for one."""
    entries: dict[str, Any] = {}
    for legend in figure.legends[:]:
        entries |= zip((text.get_text() for text in legend.get_texts()), legend.legend_handles, strict=False)
        legend.remove()
    return entries


def _colour(artist: Any) -> str:
    """A line's or a collection's colour, without its opacity."""
    from matplotlib.colors import to_hex
    from matplotlib.lines import Line2D

    if isinstance(artist, Line2D):
        return to_hex(artist.get_color())
    shown = [*artist.get_facecolor(), *artist.get_edgecolor()]
    return to_hex(shown[0]) if shown else style.INK


def _series(axes: Axes, artist: Any) -> str:
    """What the legend of a panel calls an artist: its label, or that of another in its colour."""
    labelled = [(artist, str(artist.get_label() or ""))]
    legends = [legend for legend in (axes.get_legend(), *axes.figure.legends) if legend]
    for legend in legends:
        labelled += zip(legend.legend_handles, [text.get_text() for text in legend.get_texts()], strict=False)
    labelled += [(line, str(line.get_label())) for line in axes.lines]
    return next((name for one, name in labelled if name and name[0] != "_" and _colour(one) == _colour(artist)), "")


def _added(axes: Axes, theirs: Axes, artist: Any, color: str) -> Artist:
    """A copy of an artist of another drawing in this panel, in another colour."""
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection
    from matplotlib.lines import Line2D

    shared: dict[str, Any] = {"alpha": artist.get_alpha(), "zorder": artist.get_zorder()}
    if isinstance(artist, Line2D):
        transform = axes.transData
        if artist.get_transform() == theirs.get_yaxis_transform():
            transform = axes.get_yaxis_transform()
        elif artist.get_transform() == theirs.get_xaxis_transform():
            transform = axes.get_xaxis_transform()
        x, y = np.asarray(artist.get_xydata()).T
        line = Line2D(x, y, color=color, transform=transform, linewidth=artist.get_linewidth(), **shared)
        line.set(linestyle=artist.get_linestyle(), drawstyle=artist.get_drawstyle())
        line.set(marker=artist.get_marker(), markersize=artist.get_markersize())
        line.set_markevery(artist.get_markevery())
        return axes.add_line(line)
    if isinstance(artist, PathCollection):
        x, y = np.asarray(artist.get_offsets()).T
        made: Any = axes.scatter(x, y, s=artist.get_sizes(), color=color, **shared)
        made.set_paths(artist.get_paths())
        return made
    vertices = [path.vertices for path in artist.get_paths()]
    if isinstance(artist, LineCollection):
        made = LineCollection(vertices, colors=color, linewidths=artist.get_linewidth(), **shared)
    else:
        made = PolyCollection(vertices, facecolors=color, edgecolors="none", **shared)
        shown = artist.get_facecolor()
        made.set_alpha(artist.get_alpha() or (float(shown[0][3]) if len(shown) else None))
    return axes.add_collection(made, autolim=False)


def _widen(axes: Axes, panels: Any) -> None:
    """Let a panel reach as far as all of these do."""
    for axis in ("x", "y"):
        if len({getattr(each, f"get_{axis}scale")() for each in panels}) > 1:
            continue
        ends = [end for each in panels for end in getattr(each, f"get_{axis}lim")()]
        low, high = getattr(axes, f"get_{axis}lim")()
        widest = (min(ends), max(ends))
        getattr(axes, f"set_{axis}lim")(*(widest if low <= high else reversed(widest)))
