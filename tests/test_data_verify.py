"""What ``verify`` holds against a copy of a data set, at the edges of what it lets pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from suite.data import verify as verify_module
from suite.data.catalogue import DATASETS
from suite.data.images import load_images
from suite.data.verify import CONTENT, STATISTICS, Check, verify

# Mean and deviation over 255 of the 10,000 test pictures, which are drawn as the training pictures are.
TEST_STATISTICS = {
    "mnist": ((0.1325,), (0.3105,)),
    "cifar10": ((0.4942, 0.4851, 0.4504), (0.2467, 0.2429, 0.2616)),
    "cifar100": ((0.5088, 0.4874, 0.4419), (0.2683, 0.2574, 0.2771)),
}


def named(name: str, checks: tuple[Check, ...] | list[Check]) -> Check:
    (found,) = [check for check in checks if check.name == name]
    return found


@pytest.mark.parametrize("name", STATISTICS)
def test_training_pictures_are_known_to_be_like_the_test_pictures(name: str) -> None:
    # the mean of one picture deviates by at most 0.173, that of 10,000 by 0.00173: six of it
    for known, held_out in zip(STATISTICS[name], TEST_STATISTICS[name], strict=True):
        assert known == pytest.approx(held_out, abs=0.0104)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("off", "passed"), [(0.9e-4, True), (1.2e-4, False), (-0.9e-4, True), (-1.2e-4, False)])
def test_statistics_may_be_truncated_after_four_decimals(
    which: int, off: float, passed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = load_images("digits", "train").inputs.double() / 255
    known = [levels.mean().item(), levels.std(correction=0).item()]
    known[which] += off
    monkeypatch.setitem(STATISTICS, "digits", ((known[0],), (known[1],)))
    assert named("channel 0 statistics", verify("digits").checks).passed == passed


@pytest.mark.parametrize(
    ("labels", "passed"),
    [(range(10), True), ([*range(9), 8], False), (range(11), False), ([*range(9), 10], False)],
    ids=["one of each", "a class absent", "a class too many", "another class in place of one"],
)
def test_every_class_and_no_other_must_have_a_label(labels: list[int], passed: bool) -> None:
    targets = torch.tensor([*labels])
    images = load_images("colours", "test", examples=len(targets))._replace(targets=targets)
    assert named("test labels", verify_module._images(images)).passed == passed


@pytest.mark.parametrize("known", [None, "as found", "0" * 64])
def test_content_is_held_against_what_is_published(known: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    check: Callable[[], Check] = lambda: named("test content", verify("digits").checks)
    found = check().detail.removesuffix(", none is known")
    if known:
        monkeypatch.setitem(CONTENT, ("digits", "test"), found if known == "as found" else known)
    told = {None: f"{found}, none is known", "as found": "as published"}.get(known, f"{found}, expected {known}")
    assert (check().passed, check().detail) == (known != "0" * 64, told)


def test_the_content_of_pictures_is_that_which_was_computed_of_those_published() -> None:
    """The sums in ``CONTENT`` hold for one way of writing pictures with their labels."""
    assert named("test content", verify("digits").checks).detail.startswith("06eaa400bd9dec89")


@pytest.mark.parametrize(("pairs", "passed"), [(89, False), (90, True), (110, True), (111, False)])
def test_a_corpus_with_gaps_may_differ_by_a_tenth(
    pairs: int, passed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATASETS, "europarl", replace(DATASETS["europarl"], sizes={"train": 100}))
    (tmp_path / "europarl").mkdir()
    for language in ("de", "en"):
        (tmp_path / "europarl" / f"europarl.{language}").write_text("ja\n" * pairs)
    assert named("train size", verify("europarl", tmp_path).checks).passed == passed


def test_imagenet_is_whole_where_its_first_pictures_decode(small_imagenet: Path) -> None:
    assert verify("imagenet", small_imagenet).passed
    shard = next(small_imagenet.rglob("train-*.parquet"))
    rows = pq.read_table(shard).to_pylist()
    rows[0]["image"]["bytes"] = rows[0]["image"]["bytes"][:60]
    pq.write_table(pa.Table.from_pylist(rows), shard)
    spoiled = verify("imagenet", small_imagenet)
    assert not spoiled.passed
    assert "row 0" in named("readable", spoiled.checks).detail
