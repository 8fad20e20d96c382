"""The pictures of the documentation: figures and screenshots of the report, each with a note of what it shows.

Every ``images/NAME.png`` that README or a page of ``docs`` mentions is one: an artifact's figure, such as
``isgd-zeta.png``, or one of ``SCREENSHOTS``. The note stands in the PNG file itself (a text chunk): of a figure the
structure that is drawn, of a screenshot the digest of its page. So a picture can be compared with what would be drawn
today without drawing a pixel.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from suite.papers.catalogue import PAPERS, paper
from suite.report import structure
from suite.report.drawing import Drawing, drawing, image
from suite.report.site.render import ASSETS, HERE
from suite.report.site.rows import PagePlace, make
from suite.runs.archive import Runs

FOLDER = "docs/images"
NOTE = "Shows"  # keyword of the text chunk
MENTIONED = re.compile(r"images/([\w-]+)\.png")
COLOURS = 128  # of a picture
BROWSER = "chromium"
# File -> artifact whose page is shown, and the window in pixels: pages that rest on no training, so that they stay.
SCREENSHOTS = {
    "report-artifact": ("isgd/fig3", (1200, 1100)),
    "report-artifact-narrow": ("rudra/fig4a", (420, 900)),
}


class NoBrowser(Exception):
    """A screenshot cannot be made here."""


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
            return "of another page" if held else "without a note of what it shows"
        return next(structure.differences(before, now), "")

    def write(self) -> None:
        """Draw it. Raises NoBrowser for a screenshot that cannot be made here."""
        self.path.write_bytes(with_note(self.draw(), self.note))


def illustrations(root: Path, source: Runs) -> Iterator[Illustration]:
    """Every picture that the documentation of a project mentions, as it would be drawn on this evidence."""
    by_file = {artifact.id.replace("/", "-"): artifact.id for name in PAPERS for artifact in paper(name).artifacts}
    for name in sorted(mentioned(root)):
        path = root / FOLDER / f"{name}.png"
        if name in SCREENSHOTS:
            yield _screenshot(path, *SCREENSHOTS[name], source)
        elif name in by_file:
            yield _figure(path, by_file[name], source)
        else:
            raise LookupError(f"{path}: no artifact and no screenshot is called so; mention another picture")


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
    from PIL import Image

    with Image.open(path) as picture:
        return str(picture.info.get(NOTE, ""))


def with_note(png: bytes, note: str) -> bytes:
    """The picture in few colours, with a note in it."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_text(NOTE, note, zip=True)
    made = io.BytesIO()
    few = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(made, format="png", optimize=True, pnginfo=info)
    return made.getvalue()


def _figure(path: Path, artifact_id: str, source: Runs) -> Illustration:
    which = paper(artifact_id.partition("/")[0])
    drawn = drawing(which.artifact(artifact_id), source)
    if drawn is None:
        raise LookupError(f"{path}: {artifact_id} has no drawing; mention another picture")
    return Illustration(path, shown(drawn), lambda: image(drawn, "png"))


def shown(drawn: Drawing) -> str:
    """What a figure shows, as text: its structure and its marks, in digits that any processor gives."""
    found = structure.structure(drawn.figure) | {"marks": structure.marks(drawn.figure)}
    return json.dumps(found, sort_keys=True)


def _screenshot(path: Path, artifact_id: str, window: tuple[int, int], source: Runs) -> Illustration:
    _, files, _ = make(PagePlace(artifact_id), source)
    files |= {asset: (HERE / asset).read_bytes() for asset in ASSETS}
    page = f"{artifact_id}.html"
    digest = hashlib.sha256(files[page]).hexdigest()
    return Illustration(path, f"page {digest}", lambda: photographed(files, page, window))


def photographed(files: dict[str, bytes], page: str, window: tuple[int, int]) -> bytes:
    """A page of a site as the browser shows it. Raises NoBrowser where there is none, or it fails."""
    browser = shutil.which(BROWSER)
    if browser is None:
        raise NoBrowser(f"{BROWSER} is not installed (apt-get install {BROWSER})")
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(data)
        shot = Path(folder) / "shot.png"
        options = (
            "--headless",
            "--no-sandbox",
            "--hide-scrollbars",
            "--disable-gpu",
            f"--user-data-dir={folder}/own",
        )
        size = f"--window-size={window[0]},{window[1]}"
        address = (Path(folder) / page).as_uri()
        subprocess.run([browser, *options, size, f"--screenshot={shot}", address], capture_output=True, timeout=120)
        if not shot.exists():
            raise NoBrowser(f"{BROWSER} made no picture of {page}")
        return shot.read_bytes()
