"""A panel's frame: which runs a quantity is handed, what it lacks, and what becomes of its value."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from fabricated_frames import frame_of
from fake_paper import fill, specs
from matplotlib.figure import Figure

from suite.claims.intervals import Interval, mean_interval
from suite.papers.artifact import FIRST, Artifact, Frame, Missing, Quantity, read_frame
from suite.papers.measurement import measure
from suite.runs.archive import Layered
from suite.runs.run import DamagedRun

SEEDS = frame_of(
    {"a": [{"x": 1.0}, {"x": 2.0}, None, {"x": 9.0}], "b": [{"x": 5.0}, {"x": 7.0}], "c": [None], "d": [{"x": 3.0}]}
)


def total(frame: Frame) -> float:
    return float(frame.runs["x"].sum())


def measured(**about: object) -> float:
    each = Quantity(total, **about)  # type: ignore[arg-type]
    return each.of(SEEDS).values[0]


def test_a_quantity_is_handed_its_groups_alone_and_seeds_up_to_the_first_that_is_missing() -> None:
    assert measured(groups=("b",)) == 12
    assert measured(groups=("a", "b"), seeds=FIRST) == 15
    assert measured(groups=("b",), beside=("d",)) == 15
    assert measured(groups=("b",), beside=("c", "d")) == 12  # not all of them are stored


@pytest.mark.parametrize(
    ("groups", "seeds", "why"),
    [
        (("a",), "all", "^1 of 4 runs of a at paper are missing$"),
        (("c", "b", "e"), FIRST, "^no run of c at paper, and of 1 other group$"),
    ],
)
def test_what_is_missing_is_named(groups: tuple[str, ...], seeds: str, why: str) -> None:
    with pytest.raises(Missing, match=why):
        measured(groups=groups, seeds=seeds)


def test_a_value_is_a_number_an_interval_or_a_series_of_seeds() -> None:
    told = lambda value: Quantity(lambda frame: value, ("b",)).measured(SEEDS.needed(["b"]))
    assert told(3).spans == ((3, 3, 3),)
    assert told([1, Interval(2, 1, 4, 3)]).spans == ((1, 1, 1), (2, 1, 4))
    assert (told([1, Interval(2, 1, 4, 3)]).n, told(Interval(2, 1, 4, 3)).n) == (1, 3)
    found, wanted = told(pd.Series([1.0, 2.0, 4.0])), mean_interval([1.0, 2.0, 4.0])
    assert (found.spans, found.n) == (((wanted.mean, wanted.low, wanted.high),), 3)
    assert found.runs == ("b seed 0", "b seed 1")


def test_a_panel_is_measured_and_drawn_from_stored_runs(tmp_path: Path) -> None:
    first, *others = specs("smoke")
    panel = Artifact("fake/fig9", "", lambda profile: {"a": (first,), "b": tuple(others)})
    drawn: list[int] = []

    @panel.quantity("best", ["b"])
    def best(frame: Frame) -> float:
        return float(frame["b"]["best"].max())

    @panel.quantity("wrong", ["a"])
    def wrong(frame: Frame) -> float:
        return 1 / 0

    @panel.drawing
    def draw(frame: Frame, figure: Figure) -> None:
        drawn.append(len(frame["a"]) + len(frame["b"]))

    store = fill(tmp_path / "store")
    found = measure(panel, store, "smoke", claimed=False)
    assert found.found["best"].values == (max(store.read(spec.id).results["best"] for spec in others),)
    assert {run.id for run in found.rests["best"].runs} == {spec.id for spec in others}
    assert found.damaged == ["fake/fig9/wrong could not be measured at smoke: ZeroDivisionError: division by zero"]
    assert panel.draw is not None
    panel.draw(panel.read(store, "smoke"), Figure())
    assert drawn == [len(others) + 1]
    assert measure(panel, Layered([]), "smoke", claimed=False).missing.keys() == panel.quantities.keys()
    panel.quantity("wrong")(lambda frame: frame["a"]["best"].max())  # of which groups is not said
    (wrong_says,) = measure(panel, store, "smoke", claimed=False).damaged
    assert wrong_says.endswith("it reads no group of runs, as quantity() names none behind its name")


def test_a_table_of_runs_that_are_not_stored_is_missing() -> None:
    with pytest.raises(Missing, match=r"^no run of c is stored at paper$"):
        SEEDS.table("losses", "c")
    with pytest.raises(Missing, match=r"^no run is stored at paper$"):
        SEEDS.needed([]).table("losses")


def test_a_damaged_run_stops_what_reads_it(tmp_path: Path) -> None:
    missing, broken = specs("smoke")[:2]
    store = fill(tmp_path)
    store.refuse(missing.id)
    (tmp_path / "runs" / broken.id / "outcome.json").write_text("{}")
    frame = read_frame(store, {"a": (missing, broken)}, "smoke")
    with pytest.raises(DamagedRun):
        frame["a"]
    with pytest.raises(DamagedRun):  # others are missing too: that it is damaged is not passed over
        frame.needed(["a"])
