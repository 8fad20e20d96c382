"""Figs. 1, 2, 7 and 8, Algorithm 2, Eqs. 15, 19 and 21: known answers on fabricated frames, and both verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from fabricated_frames import frame_of, measured, student, verdict

from paper_figures.isgd import fig1, fig8
from paper_figures.isgd.settings import NETWORKS
from suite.papers.artifact import Missing
from suite.papers.panel import Frame

# ---------------------------------------------------------------- Fig. 1: losses [epochs, 10] of a cycle


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
    assert measured("isgd/fig1a/b7-still-training", frame).values == (700,)
    assert measured("isgd/fig1b/b8-b9-done", frame).values == (1120,)
    assert measured("isgd/fig1b/b6-b7-done", frame).values == (1410,)
    for name in ("isgd/fig1a/floor", "isgd/fig1b/floor"):
        assert measured(name, frame).values == (pytest.approx(0.00275),)  # the median of 0.0005 to 0.005
    cut = cycles(
        losses[:1150]
    )  # batches 3, 4 and 6 are not done: the others end with 0.001, 0.002, 0.003, 0.006, ...
    assert measured("isgd/fig1a/all-done", cut).spans == ((1150, 1150, fig1.NEVER),)
    assert measured("isgd/fig1a/b7-still-training", cut).values == (440,)
    assert measured("isgd/fig1b/floor", cut).values == (pytest.approx(0.003),)


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


def test_late_variation_is_that_of_the_steadier_batch() -> None:
    """From epoch 1120 on 0.004 +- 0.002 and +- 0.003; a spike after 200 epochs does not count."""
    losses, sign = stepped(STEPS), np.where(EPOCHS % 2, 1, -1)
    for batch, apart in ((8, 0.002), (9, 0.003)):
        losses[1120:, batch] = (0.004 + apart * sign)[1120:]
        losses[1320:, batch] += 5
    assert measured("isgd/fig1b/late-variation", cycles(losses)).values == (pytest.approx(0.5),)


def test_speeds_are_told_apart_while_losses_fall() -> None:
    """Losses in fixed proportions, from 0.55 to 1.45 of the mean, are at half of it at epoch 500."""
    shares = 0.55 + 0.1 * np.arange(10)
    losses = np.outer(1 - np.arange(1000) / 1000, shares)
    losses[600:] = 0.001
    assert measured("isgd/fig1b/independent-speeds", cycles(losses)).values == (pytest.approx(0.9),)
    assert measured("isgd/fig1a/distinct-speeds", cycles(losses)).values[0] == pytest.approx(0.9)
    mean = 1 - 399.5 / 1000  # over epochs 390 to 409
    found = [measured(f"isgd/fig1a/epoch400-{name}", cycles(losses)).values[0] for name in ("b4", "b3", "spread")]
    assert found == pytest.approx([0.55 * mean, 1.45 * mean, 1.45 / 0.55])
    with pytest.raises(Missing, match="410 epochs"):
        measured("isgd/fig1a/epoch400-b4", cycles(losses[:409]))
    with pytest.raises(Missing, match="1000 epochs"):
        measured("isgd/fig1a/all-done", cycles(losses[:999]))


def test_correlation_is_of_changes_from_epoch_to_epoch() -> None:
    """Five batches change one way and five another, which is as often the same as not: 20 of 45 pairs go together."""
    one, other = np.tile([1, 1, -1, -1], 50), np.tile([1, -1, 1, -1], 50)
    apart = 10 + np.cumsum(np.stack([one] * 5 + [other] * 5, 1), 0)
    together = 10 + np.cumsum(np.stack([one] * 10, 1), 0)
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


# ---------------------------------------------------------------- Fig. 2 and Algorithm 2


def test_the_mean_falls_in_both_halves_of_every_run() -> None:
    def run(*means: float) -> dict[str, Any]:
        mean = [99.0, 99.0, *means]
        limit = [math.inf, math.inf, *means]  # none in the first epoch
        updates = {
            "update": range(len(mean)),
            "mean": mean,
            "limit": limit,
            "chasing": 0,
            "iteration": range(len(mean)),
        }
        chosen = {"data": {"name": "cifar10"}, "batch": 100, "model": {"name": "caffe_cifar_quick"}}
        return {"tables": {"updates": updates}, "settings": chosen}

    found = measured("isgd/fig2/decline", frame_of({"isgd": [run(10, 8, 7, 5), run(9, 8, 8, 4)]}))
    assert (found.values, found.proxy) == ((2.0, 1.0), True)
    assert verdict("isgd/fig2/decline", frame_of({"isgd": [run(10, 8, 7, 5)]})) == "reproduced"
    assert verdict("isgd/fig2/decline", frame_of({"isgd": [run(10, 8, 7, 7.5)]})) == "not reproduced"


def traced(*chases: Sequence[float]) -> dict[str, Any]:
    """Before each chase an iteration; a chase is its losses, the limit is one."""
    rows = []
    for iteration, losses in enumerate(chases):
        rows.append((iteration, False, 2.0))
        rows += [(iteration, True, loss) for loss in losses]
    columns = dict(zip(("iteration", "chasing", "loss"), zip(*rows, strict=True), strict=True))
    return {"tables": {"updates": columns | {"limit": 1.0}}, "settings": {"algorithm": {"zeta": 0.3}, "rate": 0.01}}


def test_an_acceleration_that_the_sgd_step_ended_needed_no_step() -> None:
    """The first loss of a chase is that after the SGD step; at or below the limit Algorithm 2 had nothing to do."""
    chases = [traced([0.9], [1.5, 1.2, 0.8], [1.0], [1.1, 0.9]), traced([0.5]), traced([1.5] * 7)]
    found = measured("isgd/alg2/stop-5", frame_of({"endless": chases}))
    assert found.spans == ((4.75, 2.5, 7.0),)
    assert found.n == 2
    assert found.note.startswith("zeta = 30 rates: 3 accelerations")
    other = frame_of({"endless": [traced([9.0])], "endless, thirty rates": chases})
    assert measured("isgd/alg2/steps-at-thirty-rates", other).values == (4.75,)
    with pytest.raises(Missing, match="had not ended"):
        measured("isgd/alg2/stop-5", frame_of({"endless": [traced([0.9])]}))
    assert verdict("isgd/alg2/stop-5", frame_of({"endless": [traced([1.5, 0.8])] * 2})) == "reproduced"
    assert verdict("isgd/alg2/stop-5", frame_of({"endless": [traced([1.5] * 8)] * 2})) == "not reproduced"


def test_small_steps_are_told_with_their_extremes() -> None:
    results = {"decrease": [0.3, 0.1, 0.2], "closer": [5.0, 4.0, 7.0], "derivative": 1e-12}
    frame = frame_of({"subproblem": [{**results, "at_solution": 0.5, "elsewhere": 2}]})
    assert measured("isgd/alg2/lowers-loss", frame).spans == ((0.2, 0.1, 0.3),)
    assert measured("isgd/alg2/small-move", frame).spans == ((5.0, 4.0, 7.0),)
    assert measured("isgd/alg2/zero-at-limit", frame).values == (0.5, 2.0)
    assert measured("isgd/alg2/matches-autodiff", frame).values == (1e-12,)


# ---------------------------------------------------------------- Fig. 7


def timed(
    per_image: dict[int, float], device: str = "cuda", card: str = "NVIDIA GeForce GTX TITAN X"
) -> dict[str, Any]:
    """A network's run: of five repetitions two are off, by much."""
    rows = [(b, r, b * t * (9 if r > 2 else 1)) for b, t in per_image.items() for r in range(5)]
    table = dict(zip(("batch", "repeat", "seconds"), zip(*rows, strict=True), strict=True))
    about = {"execution": {"device": device}, "machine": {"cpu": "some processor"}}
    about |= {"device": {"name": card}} if device == "cuda" else {}
    return {"tables": {"latency": table}, "environment": about}


LEVEL = {1: 8.0, 10: 1.04, 100: 1.0, 1000: 1.02}
STEEP = {1: 8.0, 10: 2.0, 100: 1.0, 1000: 0.5}
FIGURES = {"mnist": "fig7a", "cifar": "fig7b", "imagenet": "fig7c"}


@pytest.mark.parametrize(("kind", "figure"), FIGURES.items())
def test_a_card_is_full_where_the_time_per_image_is_level(kind: str, figure: str) -> None:
    level, steep = (frame_of({kind: [timed(times)]}) for times in (LEVEL, STEEP))
    assert measured(f"isgd/{figure}/saturation-1gpu", level).values == (10,)
    assert measured(f"isgd/{figure}/saturation-1gpu", steep).values == (math.inf,)
    assert measured(f"isgd/{figure}/falls-then-flat", steep).values == pytest.approx((math.log(16), 2.0))
    assert verdict(f"isgd/{figure}/falls-then-flat", level) == "reproduced"
    assert verdict(f"isgd/{figure}/falls-then-flat", steep) == "not reproduced"
    assert (
        verdict(f"isgd/{figure}/falls-then-flat", frame_of({kind: [timed(dict.fromkeys(LEVEL, 1.0))]}))
        == "not reproduced"
    )


@pytest.mark.parametrize(
    ("kind", "figure", "full"), [("mnist", "fig7a", 500), ("cifar", "fig7b", 300), ("imagenet", "fig7c", 150)]
)
def test_only_the_papers_card_saturates_where_the_paper_says(kind: str, figure: str, full: int) -> None:
    times = {1: 9.0, full: 1.0, 1500: 1.0, 3000: 1.0}
    other = {1: 9.0, full: 1.2, 1500: 1.0, 3000: 1.0}
    assert verdict(f"isgd/{figure}/saturation-1gpu", frame_of({kind: [timed(times)]})) == "reproduced"
    assert verdict(f"isgd/{figure}/saturation-1gpu", frame_of({kind: [timed(other)]})) == "not reproduced"
    told = {}
    for name, run in {
        "paper": timed(times),
        "H100": timed(times, card="NVIDIA H100 80GB HBM3"),
        "processor": timed(times, "cpu"),
    }.items():
        found = [
            measured(f"isgd/{figure}/{q}", frame_of({kind: [run]})) for q in ("saturation-1gpu", "falls-then-flat")
        ]
        told[name] = [each.proxy for each in found]
    assert told == {"paper": [False, False], "H100": [True, False], "processor": [True, True]}
    small = frame_of({kind: [timed(times)]}, "reduced")
    assert measured(f"isgd/{figure}/falls-then-flat", small).proxy


def test_cards_are_full_in_the_order_of_their_data_sets() -> None:
    sizes = (1, 10, 100, 1000, 2000)
    full = lambda at: timed({size: 9.0 if size < at else 1.0 for size in sizes})
    frame = frame_of({"mnist": [full(1000)], "cifar": [full(100)], "imagenet": [full(10)]})
    found = measured("isgd/fig7a/order-datasets", frame)
    assert (found.values, found.proxy) == (pytest.approx((math.log(10), math.log(10))), True)
    assert verdict("isgd/fig7a/order-datasets", frame) == "reproduced"
    swapped = frame_of({"mnist": [full(100)], "cifar": [full(1000)], "imagenet": [full(10)]})
    assert measured("isgd/fig7a/order-datasets", swapped).values == pytest.approx((math.log(100), -math.log(10)))
    assert verdict("isgd/fig7a/order-datasets", swapped) == "not reproduced"


# ---------------------------------------------------------------- Fig. 8


def hosts(apart: float = 0.05, **shares: Sequence[float]) -> Frame:
    """Four hosts with these shares (%) at batches 500 and 3000, and two repetitions on either side of them."""
    runs = {}
    for kind, ends in shares.items():
        rows = [
            (batch, repeat, 2 * (100 - share - off), 2 * (share + off))
            for batch, share in zip((500, 3000), ends, strict=True)
            for repeat, off in enumerate((-apart, 0.0, apart))
        ]
        table = dict(zip(("batch", "repeat", "computed", "communicated"), zip(*rows, strict=True), strict=True))
        runs[f"four {kind}"] = [{"skipped": "", "tables": {"occupancy": table}}]
    return frame_of(runs)


PRINTED = {"imagenet": (45, 16), "cifar": (4, 2), "mnist": (23, 10)}


def test_shares_on_hosts_are_those_of_the_worst_case() -> None:
    frame = hosts(**PRINTED)
    half = student([3.95, 4.0, 4.05])[2] - 4
    assert measured("isgd/fig8/falls", frame).spans == (pytest.approx((13, 13, 13)),)  # LeNet's; AlexNet's is 29
    assert measured("isgd/fig8/caffe-quick-low", frame).spans == (pytest.approx((4, 4 - half, 4 + half)),)
    # from Caffe-Quick to LeNet 19 and 8, from there to AlexNet 22 and 6
    assert measured("isgd/fig8/order", frame).spans == (pytest.approx((8, 8, 8)), pytest.approx((6, 6, 6)))
    assert measured("isgd/fig8/falls", hosts(**PRINTED | {"imagenet": (45, 30)})).values == (pytest.approx(2),)


@pytest.mark.parametrize(
    ("name", "otherwise"),
    [("falls", {"imagenet": (45, 33)}), ("falls", {"mnist": (23, 23)}), ("falls", {"imagenet": (45, 46)}),
     ("caffe-quick-low", {"cifar": (4, 12)}), ("order", {"imagenet": (45, 9)}), ("order", {"cifar": (24, 2)})],
)  # fmt: skip
def test_each_sentence_on_shares_can_hold_and_fail(name: str, otherwise: dict[str, Any]) -> None:
    assert verdict(f"isgd/fig8/{name}", hosts(**PRINTED)) == "reproduced"
    assert verdict(f"isgd/fig8/{name}", hosts(**PRINTED | otherwise)) == "not reproduced"


def test_hosts_that_were_not_there_are_missing() -> None:
    with pytest.raises(Missing, match="no run of four mnist"):
        measured("isgd/fig8/falls", frame_of({"mnist": [None]}))
    skipped: dict[str, Any] = {f"four {kind}": [{"skipped": "no root"}] for kind in NETWORKS}
    with pytest.raises(Missing, match="no root"):
        measured("isgd/fig8/order", frame_of(skipped))


def test_a_modelled_share_is_that_of_a_quarter_of_the_batch() -> None:
    """A part of 100 images takes what 400 do on four devices; the weights pass the link four times, up and down."""
    frame = frame_of({"mnist": [timed({100: 1e-4, 400: 1e-4})]})
    table = fig8.modelled(frame, "mnist")
    assert table["batch"].tolist() == [400]
    communication = 4 * (2e-5 + 4 * 431_080 / 6e9)
    assert table["share"].tolist() == [pytest.approx(100 * communication / (communication + 100 * 1e-4))]


# ---------------------------------------------------------------- Eqs. 15, 19 and 21


def test_a_slope_has_the_interval_of_its_fit() -> None:
    """Logs 0, -1, -1.5 at 0, 1, 2: slope -0.75, residuals 1/12, -1/6, 1/12; t at 95% on one degree is 12.706."""
    table = {"batch": np.exp([0, 1, 2]), "variance": np.exp([0, -1, -1.5])}
    found = measured("isgd/eq15/variance-inverse-batch", frame_of({"variance": [{"tables": {"variance": table}}]}))
    half = 12.7062 * math.sqrt((1 / 24) / 2)
    assert found.spans == (pytest.approx((-0.75, -0.75 - half, -0.75 + half), rel=1e-5),)


def iterations(censored: bool = False, **updates: Sequence[int]) -> Frame:
    runs: dict[str, list[dict[str, Any]]] = {name: [{"updates": n} for n in found] for name, found in updates.items()}
    if censored:
        runs["b16"][1]["status"] = "out of updates"
    return frame_of(runs)


def test_iterations_are_compared_seed_by_seed_and_censored_runs_leave_them_open() -> None:
    seeds = {"b256": [10, 20, 40], "b64": [20, 30, 50], "b16": [80, 90, 110]}
    found = measured("isgd/eq15/fewer-iterations-large-batch", iterations(**seeds))
    steps = [[math.log(2), math.log(1.5), math.log(1.25)], [math.log(4), math.log(3), math.log(2.2)]]
    assert found.spans == tuple(pytest.approx(student(step)) for step in steps)
    assert found.note == "mean iterations: batch 256 23, batch 64 33, batch 16 93"
    name = "isgd/eq15/fewer-iterations-large-batch"
    assert verdict(name, iterations(b256=[10, 11, 10], b64=[20, 21, 20], b16=[30, 31, 30])) == "reproduced"
    assert verdict(name, iterations(b256=[30, 31, 30], b64=[20, 21, 20], b16=[10, 11, 10])) == "not reproduced"
    open_ = measured(name, iterations(censored=True, **seeds))
    assert (all(map(math.isnan, open_.values)), "censored" in open_.note) == (True, True)


def processes(times: Callable[[str, int, int], float]) -> Frame:
    """Five repetitions of each case at five batch sizes; ``times`` is of the case, the batch and the repetition."""
    runs = {}
    for case in ("mnist 2", "mnist 4", "cifar 2", "cifar 4"):
        rows = [(b, r, times(case, b, r), 0.002) for r in range(3) for b in (100, 200, 300)]
        columns = ("batch", "repeat", "seconds", "communicated")
        runs[case] = [{"tables": {"updates": dict(zip(columns, zip(*rows, strict=True), strict=True))}}]
    return frame_of(runs)


def test_the_case_that_is_least_a_line_decides() -> None:
    """Seconds 1, 2 and 4 + d are a line but for a sum of squares of (1 + d)^2 / 6."""
    bent = {"cifar 2": (0.0, 0.1, 0.2), "mnist 4": (-0.5, -0.6, -0.7)}

    def times(case: str, batch: int, repeat: int) -> float:
        return {100: 1.0, 200: 2.0, 300: 3.0 if case not in bent else 4 + bent[case][repeat]}[batch]

    shares = [1 - ((1 + d) ** 2 / 6) / (1 + 4 + (4 + d) ** 2 - (7 + d) ** 2 / 3) for d in bent["cifar 2"]]
    found = measured("isgd/eq19/linear", processes(times))
    assert found.spans == (pytest.approx(student(shares)),)
    assert found.n == 3
    assert len(found.runs) == 4
    first, *_ = found.note.split("; ")
    assert first == "caffe_lenet on 2 processes: C1 100 images/s, C2 " + first.partition("C2 ")[2]
    assert first.endswith("(the sum alone 2 ms)")
    assert verdict("isgd/eq19/linear", processes(times)) == "not reproduced"
    straight = processes(lambda case, batch, repeat: batch / 1e4 + 0.05 + 1e-5 * repeat * (batch == 200))
    assert verdict("isgd/eq19/linear", straight) == "reproduced"


@pytest.mark.parametrize(
    ("excess", "values"),
    [
        (lambda b, t: 3 / (b * t) ** 0.5 + 3 / t, (1.0, 1.0)),
        (lambda b, t: t * (1 / (b * t) ** 0.5 + 1 / t), (256 / 16, 1.0)),
        (lambda b, t: b * (1 / (b * t) ** 0.5 + 1 / t), (1.0, 16.0)),
    ],
)
def test_one_constant_serves_all_updates_and_batches(excess: Any, values: tuple[float, float]) -> None:
    """Whatever outgrows the bound with the updates or with the batch size is told by how much."""
    rows = [(batch, updates, excess(batch, updates)) for batch in (1, 16) for updates in (4, 16, 64, 256)]
    table = dict(zip(("batch", "updates", "excess"), zip(*rows, strict=True), strict=True))
    frame = frame_of({"bound": [{"tables": {"bound": table}}]})
    assert measured("isgd/eq21/bound", frame).values == pytest.approx(values)
    assert verdict("isgd/eq21/bound", frame) == ("reproduced" if values == (1, 1) else "not reproduced")
