"""Fig. 1, losses [epochs, 10] of a cycle: known answers on fabricated frames, and both verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from fabricated_frames import frame_of, measured, verdict

from paper_figures.isgd import fig1
from suite.papers.artifact import Frame, Missing


def cycle(losses: Any) -> dict[str, Any]:
    updates = {"update": range(losses.size), "loss": losses.ravel()}
    return {"tables": {"updates": updates}, "settings": {"data": {"name": "cifar10"}, "batch": 1000}}


def cycles(iid: Any, single: Any = None) -> Frame:
    return frame_of({"iid": [cycle(iid)], "single": [cycle(iid if single is None else single)]})


# batch i is at 1 until this epoch and at (i + 1) / 2000 from then on; the median of 20 epochs is low ten epochs later
STEPS = [700, 620, 910, 1300, 1210, 1090, 1400, 820, 1010, 1110]
EPOCHS = np.arange(1800)


def stepped(steps: Sequence[int], epochs: Any = EPOCHS) -> Any:
    return np.stack([np.where(epochs < step, 1.0, (batch + 1) / 2000) for batch, step in enumerate(steps)], 1)


def test_batches_are_done_where_the_median_of_20_epochs_is_low() -> None:
    losses = stepped(STEPS)
    frame = cycles(losses)
    assert measured("isgd/fig1a/fast-batches-done", frame).spans == ((710,) * 3,)
    assert measured("isgd/fig1a/all-done", frame).spans == ((1410,) * 3,)
    assert measured("isgd/fig1a/all-done", frame).n == 1
    assert measured("isgd/fig1a/b7-still-training", frame).values == (700,)
    assert measured("isgd/fig1b/b8-b9-done", frame).values == (1120,)
    assert measured("isgd/fig1b/b6-b7-done", frame).values == (1410,)
    for name in ("isgd/fig1a/floor", "isgd/fig1b/floor"):
        assert measured(name, frame).values == (pytest.approx(0.00275),)  # the median of 0.0005 to 0.005
    # Batches 3, 4 and 6 are not done at epoch 1150: the others end with 0.001, 0.002, 0.003, 0.006, ...
    cut = cycles(losses[:1150])
    assert measured("isgd/fig1a/all-done", cut).spans == ((1150, 1150, fig1.NEVER),)
    assert measured("isgd/fig1a/b7-still-training", cut).values == (440,)
    assert measured("isgd/fig1b/floor", cut).values == (pytest.approx(0.003),)


def test_an_epoch_that_was_not_finished_does_not_count() -> None:
    frame = cycles(stepped(STEPS))
    table = frame.stored["iid seed 0"].curve("updates")
    cut = frame_of({"iid": [{"tables": {"updates": table[:-3].to_dict("list")}}]})
    assert fig1.losses(cut, "iid").shape == (1799, 10)


def test_a_low_point_is_no_completion_and_a_later_disturbance_no_end_of_it() -> None:
    losses = stepped(STEPS)
    losses[:600:30, 1] = 0.001
    losses[1000:1300, 1] = 1.0
    assert measured("isgd/fig1a/fast-batches-done", cycles(losses)).values == (710,)
    assert fig1.completion(losses[:600, 1]) == math.inf


def test_the_fastest_two_stay_trained_but_for_their_spikes() -> None:
    """Of the 500 epochs from 710 on 20 have a spike of the one and 5 others one of the other."""
    losses = stepped(STEPS)
    losses[711:1111:20, 0], losses[1201:1206, 1], losses[720:800, 7] = 0.2, 0.2, 1.0
    assert measured("isgd/fig1a/stay-trained", cycles(losses)).values == (pytest.approx(0.95),)
    assert verdict("isgd/fig1a/stay-trained", cycles(losses)) == "reproduced"
    losses[1300:1310, 0], losses[1190:1195, 0] = 0.2, 0.2  # the first ten come too late to count
    assert verdict("isgd/fig1a/stay-trained", cycles(losses)) == "not reproduced"
    with pytest.raises(Missing, match="500 epochs after two batches are done"):
        measured("isgd/fig1a/stay-trained", cycles(losses[:1209]))


def test_what_two_batches_lose_that_are_left_out_is_seen_when_they_come_again() -> None:
    """All lie at 0.004 from epoch 300 on; after 500 epochs of eight the two left out are at 0.1 or at 0.03."""
    whole = np.where(np.arange(1000)[:, None] < 300, 1.0, np.full(10, 0.004))
    short = np.concatenate([whole[:338].ravel(), np.full(8 * 500, 0.003), whole[0]])
    name = "isgd/fig1a/trained-add-little"
    for loss, said in ((0.1, "not reproduced"), (0.03, "reproduced")):
        short[-10:] = [loss, *[0.003] * 8, loss]
        frame = frame_of({"iid": [cycle(whole)], "left-out": [cycle(short)]})
        assert measured(name, frame).values == (pytest.approx((2 * loss + 8 * 0.003) / 10 - 0.004),)
        assert verdict(name, frame) == said
    whole[:] = 1.0
    with pytest.raises(Missing, match="fully trained by epoch 338"):
        measured(name, frame_of({"iid": [cycle(whole)], "left-out": [cycle(np.ones(7390))]}))


@pytest.mark.parametrize("steps", [STEPS, [*STEPS[:8], *STEPS[:7:-1]]], ids=["8 first", "9 first"])
def test_late_variation_is_that_of_the_steadier_batch(steps: Sequence[int]) -> None:
    """From epoch 1120 on 0.004 +- 0.002 and +- 0.003; a spike after 200 epochs does not count."""
    losses, sign = stepped(steps), np.where(EPOCHS % 2, 1, -1)
    for batch, apart in ((8, 0.002), (9, 0.003)):
        losses[1120:, batch] = (0.004 + apart * sign)[1120:]
        losses[1320:, batch] += 5
    assert measured("isgd/fig1b/late-variation", cycles(losses)).values == (pytest.approx(0.5),)


def test_speeds_are_told_apart_while_losses_fall() -> None:
    """Losses in fixed proportions, from 0.55 to 1.45 of the mean, are below half of it from epoch 501 on."""
    shares = 0.55 + 0.1 * np.arange(10)
    losses = np.outer(1 - np.arange(1000) / 1000, shares)
    losses[600:] = 0.001
    for beside in (losses[471:491], losses[511:531]):  # outside the 20 epochs around the half, all go alike
        beside[:] = beside.mean(1, keepdims=True)
    assert measured("isgd/fig1b/independent-speeds", cycles(losses)).values == (pytest.approx(0.9),)
    assert measured("isgd/fig1a/distinct-speeds", cycles(losses)).values[0] == pytest.approx(0.9)
    mean = 1 - 399.5 / 1000  # over epochs 390 to 409
    found = [measured(f"isgd/fig1a/epoch400-{name}", cycles(losses)).values[0] for name in ("b4", "b3", "spread")]
    assert found == pytest.approx([0.55 * mean, 1.45 * mean, 1.45 / 0.55])
    with pytest.raises(Missing, match="410 epochs"):
        measured("isgd/fig1a/epoch400-b4", cycles(losses[:409]))
    with pytest.raises(Missing, match="1000 epochs"):
        measured("isgd/fig1a/all-done", cycles(losses[:999]))


def test_speeds_of_losses_that_fall_at_once_are_those_of_what_is_there() -> None:
    """Of a hundred epochs, of which each has a spread of its own; losses that never halve have none to tell."""
    shares = 1 + np.linspace(-1, 1, 10) * np.linspace(0.1, 0.6, 100)[:, None]
    losses = np.where(np.arange(100) < 4, 1.0, 0.4)[:, None] * shares
    seen = losses[:14].mean(0)
    wanted = (seen.max() - seen.min()) / seen.mean()
    assert measured("isgd/fig1b/independent-speeds", cycles(losses)).values == (pytest.approx(wanted),)
    with pytest.raises(Missing, match="halve within 100 epochs"):
        measured("isgd/fig1b/independent-speeds", cycles(shares))


@pytest.mark.parametrize(("widest", "said"), [(0.09, "reproduced"), (0.11, "not reproduced")])
def test_each_setting_that_is_left_open_has_its_speeds(widest: float, said: str) -> None:
    """Ten losses in fixed proportions from 1 - spread / 2 to 1 + spread / 2 of a mean that halves at epoch 51."""
    spreads = [0.02, 0.03, widest, 0.05]
    mean, shares = 1 - np.arange(100) / 100, [np.linspace(1 - each / 2, 1 + each / 2, 10) for each in spreads]
    frame = frame_of({name: [cycle(np.outer(mean, s))] for name, s in zip(fig1.OTHERWISE, shares, strict=True)})
    found = measured("isgd/fig1a/one-speed", frame)
    assert found.values == pytest.approx(spreads)
    assert "51 (full network)" in found.note
    assert verdict("isgd/fig1a/one-speed", frame) == said


def test_correlation_is_of_changes_from_epoch_to_epoch() -> None:
    """Five batches change one way and five another, which is as often the same as not: 20 of 45 pairs go together."""
    one, other = np.tile([1, 1, -1, -1], 50), np.tile([1, -1, 1, -1], 50)
    apart = 10 + np.cumsum(np.stack([one] * 5 + [other] * 5, 1), 0)
    together = 10 + np.cumsum(np.stack([one] * 10, 1), 0)
    together[0] = 100  # so that the next epoch halves it
    frame = cycles(together, apart)
    assert measured("isgd/fig1a/distinct-speeds", frame).values[1] == pytest.approx(1)
    step = measured("isgd/fig1b/less-correlated-than-iid", frame)
    assert step.values == (pytest.approx(25 / 45, abs=0.01),)
    assert set(step.runs) == {"iid seed 0", "single seed 0"}
    assert verdict("isgd/fig1b/less-correlated-than-iid", frame) == "reproduced"
    assert verdict("isgd/fig1b/less-correlated-than-iid", cycles(apart, together)) == "not reproduced"


def as_printed(at_400: Sequence[float], done: Sequence[int], floor: float = 0.001, spikes: Sequence[int] = ()) -> Any:
    """Losses [2200, 10] as the text describes them: from log 10 past those of epoch 400 to the floor once done."""
    at, columns = np.arange(2200), []
    for batch, (middle, end) in enumerate(zip(at_400, done, strict=True)):
        knots = np.log([math.log(10), middle, 0.0099, floor, floor])
        loss = np.exp(np.interp(at, [0, 400, end, end + 40, 9999], knots))
        columns.append(np.where((at > end) & (at % 15 == 0), 0.2, loss) if batch in spikes else loss)
    return np.stack(columns, 1)


DONE = {
    "iid": [1800, 1850, 1600, 2100, 1900, 1900, 1950, 2050, 2000, 1600],
    "single": [1200, 1200, 1250, 1620, 1640, 1620, 1500, 1550, 1350, 1400],
}
IID = as_printed([0.9, 0.9, 0.8, 1.3, 0.5, 0.9, 1.0, 1.2, 1.0, 0.8], DONE["iid"])
SINGLE = as_printed([0.5, 0.6, 0.7, 1.6, 1.5, 1.4, 0.9, 0.8, 0.6, 1.2], DONE["single"], spikes=(8, 9))
ALIKE = np.repeat(as_printed([0.2] * 10, [500] * 10, floor=0.004).mean(1, keepdims=True), 10, 1)
CYCLES = {
    "fig1a": ("distinct-speeds", "epoch400-b4", "epoch400-b3", "epoch400-spread", "fast-batches-done", "all-done",
              "b7-still-training", "floor"),
    "fig1b": ("independent-speeds", "b8-b9-done", "b6-b7-done", "late-variation", "floor"),
}  # fmt: skip


@pytest.mark.parametrize("name", [f"isgd/{figure}/{name}" for figure, names in CYCLES.items() for name in names])
def test_cycles_as_printed_are_reproduced_and_ten_batches_alike_are_not(name: str) -> None:
    assert verdict(name, cycles(IID, SINGLE)) == "reproduced"
    assert verdict(name, cycles(ALIKE)) == "not reproduced"


def test_batches_that_are_never_done_decide_what_they_can() -> None:
    """2,200 epochs without completion exclude 1,600 +- 30%, and leave 2,100 +- 30% open."""
    flat = cycles(np.full((2200, 10), math.log(10)))
    words = [verdict(f"isgd/fig1a/{name}", flat) for name in ("fast-batches-done", "all-done")]
    assert words == ["not reproduced", "inconclusive"]
    for name in ("floor", "stay-trained", "b7-still-training"):
        with pytest.raises(Missing):
            measured(f"isgd/fig1a/{name}", flat)
