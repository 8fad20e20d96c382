"""What ``verify`` holds against a copy of a data set, at the edges of what it lets pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from suite.data.catalogue import DATASETS
from suite.data.verify import Check, verify


def named(name: str, checks: tuple[Check, ...] | list[Check]) -> Check:
    (found,) = [check for check in checks if check.name == name]
    return found


@pytest.mark.parametrize("known", [None, "as found", "0" * 64])
def test_content_is_held_against_what_is_published(known: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    check: Callable[[], Check] = lambda: named("test content", verify("digits"))
    found = check().detail.removesuffix(", none is known")
    if known:
        published = {"test": found if known == "as found" else known}
        monkeypatch.setitem(DATASETS, "digits", replace(DATASETS["digits"], content=published))
    told = {None: f"{found}, none is known", "as found": "as published"}.get(known, f"{found}, expected {known}")
    assert (check().passed, check().detail) == (known != "0" * 64, told)


def test_the_content_of_pictures_is_that_which_was_computed_of_those_published() -> None:
    """The digests of ``content`` hold for one way of writing pictures with their labels."""
    assert named("test content", verify("digits")).detail.startswith("06eaa400bd9dec89")


def test_imagenet_is_whole_where_its_first_pictures_decode(small_imagenet: Path) -> None:
    assert all(check.passed for check in verify("imagenet", small_imagenet))
    shard = next(small_imagenet.rglob("train-*.parquet"))
    rows = pq.read_table(shard).to_pylist()
    rows[0]["image"]["bytes"] = rows[0]["image"]["bytes"][:60]
    pq.write_table(pa.Table.from_pylist(rows), shard)
    spoiled = verify("imagenet", small_imagenet)
    assert not named("readable", spoiled).passed
    assert "row 0" in named("readable", spoiled).detail
