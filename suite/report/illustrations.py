"""The pictures of the documentation: figures, each with a note of what it shows.

Every ``images/NAME.png`` that README or a page of ``docs`` mentions is an artifact's figure, such as
``isgd-zeta.png``. The note stands in the PNG file itself (a text chunk) and holds the structure that is drawn. So a
picture can be compared with what would be drawn today without drawing a pixel.

The structure of a figure has plain values: panels, labels, scales, series and extents, how many printed values are
drawn and between what the values of each series lie; not pixels, which fonts and versions of matplotlib change.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.category import StrCategoryLocator
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Annotation, Text
from matplotlib.ticker import FixedLocator
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from suite.papers.catalogue import PAPERS, paper
from suite.report.drawing import drawing, image
from suite.runs.archive import Runs

OF_LIMITS, OF_VALUES = 2, 3  # digits kept of where a panel ends, and of where its values lie

Structure = dict[str, Any]


def structure(figure: Figure) -> Structure:
    """What a figure consists of; the panels in the order in which they were added."""
    return {
        "legends": [_labels(legend) for part in (figure, *figure.subfigs) for legend in part.legends],
        "texts": [text.get_text() for text in figure.texts],
        "panels": [panel(axes) for axes in figure.axes],
    }


def marks(figure: Figure) -> list[str]:
    """Colour, marker and style of each line, cloud and patch, in the order of drawing."""
    found = []
    for axes in figure.axes:
        for line in axes.lines:
            face = line.get_markerfacecolor()
            found.append(f"{line.get_color()} {line.get_marker()} {face} {line.get_linestyle()}")
        found += [_colours(drawn.get_facecolor()) for drawn in axes.collections]
        found += [_colours([patch.get_facecolor()]) for patch in axes.patches]
    return found


def _colours(found: Any) -> str:
    return " ".join(dict.fromkeys(to_hex(colour, keep_alpha=True) for colour in found))


def _labels(legend: Legend | None) -> list[str]:
    """A legend's title, where it has one, and its entries."""
    texts = [legend.get_title(), *legend.get_texts()] if legend else []
    return [text.get_text() for text in texts if text.get_text()]


def panel(axes: Axes) -> Structure:
    """One panel: how it is labelled, what is drawn in it by kind, and its limits to two digits."""
    found: Structure = {
        "title": axes.get_title(loc="left") or axes.get_title(),
        "x": _axis(axes.xaxis),
        "y": _axis(axes.yaxis),
        "legend": _labels(axes.get_legend()),
        "lines": len(axes.lines),
        "collections": len(axes.collections),
        "bars and areas": len(axes.patches),
        "texts": [text.get_text() for text in axes.texts],
        "places of texts": [place(text) for text in axes.texts],
        "printed": printed_values(axes),
        "values": [extent(values) for values in drawn_values(axes) if values],
    }
    return found if axes.axison else {**found, "x": None, "y": None}


def _axis(axis: Any) -> Structure:
    low, high = sorted(axis.get_view_interval())
    found = {"label": axis.get_label_text(), "scale": axis.get_scale(), "from": _rounded(low), "to": _rounded(high)}
    if isinstance(axis.get_major_locator(), (FixedLocator, StrCategoryLocator)):
        found["ticks"] = [label.get_text() for label in axis.get_ticklabels()]
    return found


def _rounded(value: float, digits: int = OF_LIMITS) -> float:
    return float(f"{value:.{digits}g}")


def printed_values(axes: Any) -> int:
    """Values drawn as printed ones: points with open markers, lines and bars whose label says so, such texts."""
    count = 0
    for line in axes.lines:
        points = len(line.get_xdata(orig=False))
        opened = line.get_markerfacecolor() == "none" and line.get_marker() not in ("None", "none", "", " ", None)
        count += points if opened else "printed" in str(line.get_label())
    for cloud in axes.collections:
        if isinstance(cloud, PathCollection) and (
            np.size(cloud.get_facecolor()) == 0 or "printed" in str(cloud.get_label())
        ):
            count += len(np.asarray(cloud.get_offsets()))
    count += sum(len(group) for group in axes.containers if "printed" in str(group.get_label()))
    said = [text.get_text() for text in axes.texts] + [axes.get_title(loc="left")]
    return count + sum("printed" in text for text in said)


def drawn_values(axes: Any) -> Iterator[list[tuple[float, float]]]:
    """The points of each line, cloud and group of bars (the middle of its end), in the order of drawing.

    Then the corners of each interval, band and area, and both ends of each arrow.
    """
    yield from (_finite(zip(*line.get_data(orig=False), strict=True)) for line in axes.lines)
    for drawn in axes.collections:
        if isinstance(drawn, PathCollection):
            yield _finite(drawn.get_offsets())
        else:
            yield _finite(point for path in drawn.get_paths() for point in path.vertices)
    bars = [group for group in axes.containers if isinstance(group, BarContainer)]
    for group in bars:
        yield _finite((bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height()) for bar in group)
    for patch in axes.patches:
        if isinstance(patch, FancyArrowPatch):
            yield _finite(vars(patch)["_posA_posB"] or ())
        elif not any(patch in group for group in bars):
            yield _finite(patch.get_patch_transform().transform(patch.get_path().vertices))


def _finite(points: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in points if math.isfinite(x) and math.isfinite(y)]


def extent(points: list[tuple[float, float]]) -> Structure:
    """How many finite points, and the least and largest of both coordinates with their mean."""
    found: Structure = {"points": len(points)}
    for axis, values in zip("xy", zip(*points, strict=True), strict=True):
        told = {"from": min(values), "to": max(values), "mean": sum(values) / len(values)}
        found[axis] = {name: _rounded(value, OF_VALUES) for name, value in told.items()}
    return found


def place(text: Text) -> Structure:
    """Where a text stands and what it points at; a name on an axis of names says nothing of the kind."""
    ends = {"": text.get_position(), "target ": text.xy if isinstance(text, Annotation) else ()}
    numbers = {f"{what}{axis}": at for what, end in ends.items() for axis, at in zip("xy", end, strict=False)}
    return {name: _rounded(float(at)) for name, at in numbers.items() if not isinstance(at, str)}


def differences(accepted: Any, seen: Any) -> Iterator[str]:
    """What was lost, what came and what changed, a line each, by its place such as ``panels 2, legend 1``."""
    before, now = dict(_leaves(accepted)), dict(_leaves(seen))
    for place in {**before, **now}:
        a, b = before.get(place), now.get(place)
        near = OF_VALUES if ", values" in place else OF_LIMITS
        if a != b and not (isinstance(a, float) and isinstance(b, float) and _near(a, b, near)):
            yield f"{place}: {a!r} became {b!r}"


def _leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every text and number of a structure with its place; those of a list are counted from 1."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{where}, {name}" if where else name)
    elif isinstance(value, list):
        for number, each in enumerate(value, 1):
            yield from _leaves(each, f"{where} {number}")
    else:
        yield where, value


def _near(a: float, b: float, digits: int) -> bool:
    """Equal but for one in the last of the digits that are kept, where rounding may fall either way."""
    scale = max(abs(a), abs(b))
    return a == b or abs(a - b) <= 1.0001 * 10 ** (math.floor(math.log10(scale)) + 1 - digits)


FOLDER = "docs/images"
NOTE = "Shows"  # keyword of the text chunk
MENTIONED = re.compile(r"images/([\w-]+)\.png")
COLOURS = 128  # of a picture


@dataclass(frozen=True)
class Illustration:
    """A picture: its file, the note that it must carry, and how it is drawn (PNG)."""

    path: Path
    note: str
    draw: Callable[[], bytes]

    @property
    def stale(self) -> str:
        """What the picture lacks, in a line; nothing where it shows what it would show today."""
        if not self.path.exists():
            return "absent"
        held = noted(self.path)
        if held == self.note:
            return ""
        try:
            before, now = json.loads(held), json.loads(self.note)
        except ValueError:
            return "without a note of what it shows"
        return next(differences(before, now), "")

    def write(self) -> None:
        self.path.write_bytes(with_note(self.draw(), self.note))


def illustrations(root: Path, source: Runs) -> Iterator[Illustration]:
    """Every picture that the documentation of a project mentions, as it would be drawn on this evidence."""
    by_file = {artifact.id.replace("/", "-"): artifact for name in PAPERS for artifact in paper(name).artifacts}
    for name in sorted(mentioned(root)):
        path = root / FOLDER / f"{name}.png"
        if name not in by_file:
            raise LookupError(f"{path}: no artifact is called so; mention another picture")
        drawn = drawing(by_file[name], source)
        if drawn is None:
            raise LookupError(f"{path}: {by_file[name].id} has no drawing; mention another picture")
        shown = structure(drawn.figure) | {"marks": marks(drawn.figure)}
        yield Illustration(path, json.dumps(shown, sort_keys=True), partial(image, drawn, "png"))


def mentioned(root: Path) -> set[str]:
    """Names of the pictures that README and docs show or link to."""
    pages = [root / "README.md", *(root / "docs").rglob("*.md")]
    return {name for page in pages for name in MENTIONED.findall(page.read_text(encoding="utf-8"))}


def unmentioned(root: Path) -> list[Path]:
    """Pictures that lie beside the others and that no page shows."""
    names = mentioned(root)
    return sorted(path for path in (root / FOLDER).glob("*.png") if path.stem not in names)


def noted(path: Path) -> str:
    """The note in a picture; nothing where it has none."""
    with Image.open(path) as picture:
        return str(picture.info.get(NOTE, ""))


def with_note(png: bytes, note: str) -> bytes:
    """The picture in few colours, with a note in it."""
    info = PngInfo()
    info.add_text(NOTE, note, zip=True)
    made = io.BytesIO()
    few = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(made, format="png", optimize=True, pnginfo=info)
    return made.getvalue()
