"""The documentation's page of all figures."""

from __future__ import annotations

import re
from pathlib import Path

from fake_paper import fill, registered

from suite.report import gallery
from suite.runs.store import Store


def test_every_figure_is_drawn_and_linked_and_the_others_say_what_they_lack(
    tmp_path: Path,
) -> None:
    store = fill(tmp_path / "store", note="untuned")
    with registered(tmp_path) as made:
        text = gallery.page(["fake"], store, tmp_path / "gallery")
    linked = re.findall(r"\]\(([^)]+)\)", text)
    assert linked
    assert all((tmp_path / link).stat().st_size > 1000 for link in linked)
    assert {path.name for path in (tmp_path / "gallery").iterdir()} == {Path(link).name for link in linked}
    drawable = {artifact.id for artifact in made.artifacts if artifact.draw}
    shown = set(re.findall(r"^### (\S+)", text, re.MULTILINE))
    lacking = set(re.findall(r"^- `([^`]+)`", text, re.MULTILINE))
    assert shown | lacking == drawable
    assert not shown & lacking


def test_what_cannot_be_drawn_stands_there_with_what_it_lacks(tmp_path: Path) -> None:
    with registered(tmp_path) as made:
        text = gallery.page(["fake"], Store(tmp_path / "empty", create=True), tmp_path / "gallery")
    lacking = re.findall(r"^- `([^`]+)` \(.+\): (.+)$", text, re.MULTILINE)
    assert {name for name, _ in lacking} == {artifact.id for artifact in made.artifacts if artifact.draw}
    assert all("run" in why for _, why in lacking)
    assert not list((tmp_path / "gallery").iterdir())
