"""MaTEx's quantities on fabricated frames: the values and intervals that are known, and the verdicts that follow."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fabricated_frames import frame_of, student
from matex_claims import CLAIMS, QUANTITIES, found, verdict
from matex_worlds import PRINTED, ended, gap, hosts, layers, link, panels, rates, seconds, table1, three_seeds, whole
from matplotlib.figure import Figure

from paper_figures.matex_agd import exchanges, fig1
from paper_figures.matex_agd import table1 as of_table1
from paper_figures.matex_agd.exchanges import ALEXNET, CASES, DELAYED, GOOGLENET, LAYER_WISE, SHARED, SPEEDS
from paper_figures.matex_agd.settings import LABELS, REMEDIED, TRAINED
from paper_figures.matex_agd.table1 import BATCHES, ROWS
from suite.papers.artifact import Frame, Missing

Span = tuple[float, float, float]


def lowest(spans: list[Span]) -> Span:
    return tuple(min(span[at] for span in spans) for at in range(3))  # type: ignore[return-value]


# ---------------------------------------------------------------- Table 1

SEEDS = three_seeds()
ONE = table1(PRINTED)
ORDERS = {"order": ROWS[::-1], "tradeoff": ("agd2", "agd1", "sgd")}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("place", range(5))
def test_an_accuracy_is_the_mean_of_its_seeds(row: str, place: int) -> None:
    name = f"table1/{row}-b{BATCHES[place]}"
    measured = found(name, table1(SEEDS, profile="reduced"))
    assert measured.spans == (pytest.approx(student(SEEDS[row][:, place])),)
    assert (measured.n, measured.note) == (3, f"cifar100 at checkpoint {place + 1} of 5")
    two = table1({each: seeds[:2] for each, seeds in SEEDS.items()}, profile="reduced")
    assert QUANTITIES[name].value(two).mean == pytest.approx(SEEDS[row][:2, place].mean())
    # one seed is as wide as five of the stand-in lie apart: t of 4 degrees times the deviation of -2 .. 2
    value, half = PRINTED[row][place], 2.7764451 * math.sqrt(2.5) * 0.01 * (place + 1)
    ((mean, low, high),) = found(name, table1(PRINTED, apart=0.01)).spans
    assert (mean, low, high) == pytest.approx((value, value * (1 - half), value * (1 + half)))
    assert found(name, ONE).n == 1
    assert verdict(name, ONE) == "reproduced"
    other = {"serial": "agd1", "sgd": "agd1", "agd1": "agd2", "agd2": "agd1"}[row]
    assert verdict(name, table1(PRINTED | {row: PRINTED[other]})) == "not reproduced"


@pytest.mark.parametrize("name", ORDERS)
def test_rows_are_ordered_where_they_are_nearest(name: str) -> None:
    rows = ORDERS[name]
    pairs = list(pairwise(rows))
    wanted = [lowest([student(SEEDS[b][:, at] - SEEDS[a][:, at]) for at in range(5)]) for a, b in pairs]
    assert found(f"table1/{name}", table1(SEEDS, profile="reduced")).spans == tuple(map(pytest.approx, wanted))
    assert found(f"table1/{name}", table1({row: seeds[:2] for row, seeds in SEEDS.items()}, profile="reduced")).n == 2
    spans = []
    for a, b in pairs:
        half = 2.7764451 * math.sqrt(2.5) * 0.001 * np.arange(1, 6) * np.hypot(PRINTED[a], PRINTED[b])
        middle = PRINTED[b] - PRINTED[a]
        spans.append(pytest.approx((min(middle), min(middle - half), min(middle + half))))
    assert found(f"table1/{name}", ONE).spans == tuple(spans)
    assert found(f"table1/{name}", ONE).n == 1
    assert verdict(f"table1/{name}", ONE) == "reproduced"
    for place in range(5):  # one checkpoint is enough to lose
        fallen = {row: values.copy() for row, values in PRINTED.items()}
        fallen["sgd"][place] = 0.5 * fallen["agd1"][place]
        assert verdict(f"table1/{name}", table1(fallen)) == "not reproduced"


@pytest.mark.parametrize("row", ["agd1", "agd2"])
def test_what_delay_leaves_of_synchronous_accuracy_is_paired_by_seed(row: str) -> None:
    logs = student(np.log(SEEDS[row][:, -1] / SEEDS["sgd"][:, -1]))
    assert found(f"table1/kept-{row}", table1(SEEDS, profile="reduced")).spans == (pytest.approx(np.exp(logs)),)


def test_rows_rise_at_a_share_of_their_steps() -> None:
    assert verdict("table1/rises", ONE) == "reproduced"
    falling = table1(SEEDS | {"agd2": [SEEDS["agd2"][0], SEEDS["agd2"][1][::-1], [1, 2, 2, 1, 3]]}, profile="reduced")
    assert found("table1/rises", falling).values == (pytest.approx((9 * 4 + 4 + 0 + 2) / 48),)
    assert verdict("table1/rises", falling) == "not reproduced"


def test_a_run_that_diverged_stays_at_chance_and_counts() -> None:
    ends = table1(PRINTED | {"agd2": [0.002, 0.0015]})
    assert of_table1.accuracies(ends, "agd2").to_numpy().tolist() == [pytest.approx([0.002, 0.0015, *[0.001] * 3])]
    runs = [ended(found) for found in ([], [0.3, 0.4, 0.5, 0.6, 0.7])]
    seen = of_table1.accuracies(frame_of({"agd1": runs}, "reduced"), "agd1")
    assert seen.to_numpy().tolist() == [[0.01] * 5, pytest.approx([0.3, 0.4, 0.5, 0.6, 0.7])]


def test_a_row_that_is_missing_costs_itself_alone() -> None:
    some = table1({row: values for row, values in PRINTED.items() if row != "serial"})
    assert verdict("table1/tradeoff", some) == "reproduced"
    for name in ("serial-b1000", "order", "rises"):
        with pytest.raises(Missing, match="serial"):
            found(f"table1/{name}", some)


def test_the_table_holds_all_that_is_printed_and_stored() -> None:
    both = SEEDS | {f"quick {row}": seeds for row, seeds in SEEDS.items()}
    for frame, panels_, rows in ((ONE, 2, 40), (table1(both, profile="reduced"), 4, 140)):
        table = of_table1.table(frame)
        assert len(table) == rows
        printed = table[table["source"] == "printed"]
        assert printed["accuracy"].tolist() == [v for row in PRINTED.values() for v in row]
        figure = Figure()
        of_table1.draw(frame, figure)
        assert len(figure.axes) == panels_
    titles = [axes.get_title() for axes in figure.axes[1:3]]
    assert titles == ["narrow AlexNet, CIFAR-100, 3 seeds", "Caffe-Quick, CIFAR-10, 3 seeds"]
    with pytest.raises(Missing, match="serial"):
        of_table1.table(frame_of({row: [None] for row in LABELS}))


def test_rows_that_should_be_equal_are_set_beside_the_printed_gap() -> None:
    rows = of_table1.apart(frame_of({"gap": [gap(0.1)]})).groupby("pair", sort=False)
    lines = {pair: part.pivot(index="unit", columns="checkpoint", values="log ratio") for pair, part in rows}
    seeds, parts, same, printed = lines.values()
    assert seeds.shape == (20, 5)
    assert seeds.abs().max().tolist() == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0])
    for ours in (parts, same):
        assert ours[2].tolist() == pytest.approx([0.2 * 9 * (seed - 2) for seed in range(5)])
    assert printed.iloc[0].mean() == pytest.approx(-0.2233, abs=1e-4)


# ---------------------------------------------------------------- Fig. 1: exchanges

MIXED = {  # rates by condition in which no method is nearest or furthest everywhere
    "sgd": (0.90, 0.60, 0.50),
    "layers": ((0.70, 0.93, 0.40), (0.60, 0.85, 0.75)),
    "late": (0.97, 0.98, 0.80),
}


def timed(letter: str, **given: Any) -> tuple[dict[str, Any], Frame]:
    """Seconds [conditions, repeats] by method, and the frame of a panel that holds them."""
    each = seconds(rates(**given), SPEEDS if letter == "a" else SHARED)
    group = ("link", link) if letter == "a" else (f"hosts {letter}", hosts)
    return each, frame_of({group[0]: [group[1](each)]}, "reduced")


def log_lead(each: dict[str, Any], behind: tuple[str, ...], at: int) -> Span:
    logs = {method: np.log(times[at]) for method, times in each.items()}
    return student(np.mean([logs[m] for m in behind], axis=0) - np.mean([logs[m] for m in DELAYED], axis=0))


@pytest.mark.parametrize("letter", CASES)
@pytest.mark.parametrize(
    "given", [MIXED, {"sgd": (0.6, 0.96, 0.9), "late": (0.97, 0.98, 0.99)}, {"sgd": (0.9, 1.3, 0.5)}]
)
def test_leads_are_the_least_of_all_conditions(letter: str, given: dict[str, Any]) -> None:
    each, frame = timed(letter, **given)
    sgd, layer_wise = ([log_lead(each, behind, at) for at in range(3)] for behind in (("SGD",), LAYER_WISE))
    assert found(f"fig1{letter}/agd-best", frame).spans == (pytest.approx(lowest([*sgd, *layer_wise])),)
    assert found(f"fig1{letter}/layerwise-below-agd", frame).spans == (pytest.approx(lowest(layer_wise)),)
    most = [student(np.log(each["no comm"][at] / each[m][at])) for at in range(3) for m in exchanges.PAPERS]
    ((mean, low, high),) = found(f"fig1{letter}/no-comm-best", frame).spans
    assert (mean, low, high) == pytest.approx(tuple(math.exp(max(span[i] for span in most)) for i in range(3)))
    assert found(f"fig1{letter}/agd-best", frame).n == 5
    if letter == "a":
        fastest = student(np.log(each["no comm"][-1] / each["SGD"][-1]))
        assert found("fig1a/sgd-at-the-fastest-link", frame).spans == (pytest.approx(tuple(map(math.exp, fastest))),)


@pytest.mark.parametrize("letter", ["a", "d"])
@pytest.mark.parametrize("at", range(3))
def test_one_condition_is_enough_to_lose(letter: str, at: int) -> None:
    once = lambda usual, here: [here if place == at else usual for place in range(3)]
    names = ("agd-best", "layerwise-below-agd", "no-comm-best")
    words = lambda **given: [verdict(f"fig1{letter}/{name}", timed(letter, **given)[1]) for name in names]
    yes, no = "reproduced", "not reproduced"
    assert words() == [yes, yes, yes]
    assert words(sgd=once(0.7, 0.99)) == [no, yes, yes]
    assert words(layers=(once(0.8, 0.995), once(0.8, 0.99))) == [no, no, yes]
    assert words(late=once(0.97, 1.1)) == [yes, yes, no]
    assert verdict(f"fig1{letter}/agd-best", timed(letter, sgd=0.968)[1]) == "inconclusive"


@pytest.mark.parametrize("letter", ["a", "d"])
def test_the_trend_counts_networks_and_numbers_of_hosts_on_both_machines(letter: str) -> None:
    groups = {f"hosts {each}": [hosts(seconds(rates(), SHARED))] for each in CASES}
    assert verdict("fig1b/same-trend", frame_of(groups, "reduced")) == "reproduced"
    groups[f"hosts {letter}"] = [hosts(seconds(rates(sgd=(0.99, 0.7, 0.99)), SHARED))]
    behind = frame_of(groups, "reduced")
    assert found("fig1b/same-trend", behind).values == (pytest.approx(4 / 6),)
    assert verdict("fig1b/same-trend", behind) == "not reproduced"
    groups[f"hosts {letter}"] = [hosts(seconds(rates(sgd=0.968), SHARED))]
    assert verdict("fig1b/same-trend", frame_of(groups, "reduced")) == "inconclusive"


@pytest.mark.parametrize(("letter", "group"), [("a", "link"), ("c", "hosts c")])
def test_what_could_not_be_made_is_missing(letter: str, group: str) -> None:
    each = seconds(rates(), SHARED)
    made = {"link": [link(each, "no root")], "hosts c": [hosts(each, "no root")]}
    with pytest.raises(Missing, match=f"no lab could be made for {group}: no root"):
        found(f"fig1{letter}/agd-best", frame_of(made, "reduced"))
    with pytest.raises(Missing, match="at smoke"):
        found(f"fig1{letter}/agd-best", frame_of({"layers": [None]}, "smoke"))


def test_the_forecast_is_the_cost_models_with_the_times_of_the_run() -> None:
    """AlexNet in small sleeps 36 ms; the rest of 50 is spent on updates, and an empty sum takes 1 ms, 2 and 3."""
    frame = frame_of({"link": [link(seconds(rates(), SPEEDS))]}, "reduced")
    numbers = sum(n + 100 for n, _ in exchanges.ASLEEP)
    for at, speed in enumerate(SPEEDS):
        sent = 1e-3 * (1 + at) + 4 * numbers / (speed / 8 * exchanges.PAYLOAD)
        assert exchanges.forecast(frame, speed)["SGD"] == pytest.approx(0.05 / (0.05 + sent), rel=1e-9)
    table = exchanges.link_table(frame, "sleeping", "computing")
    sgd = table.query("workload == 'computing' and approach == 'SGD'")["rate"]
    assert (len(sgd), sgd.mean()) == (15, pytest.approx(0.7, rel=0.01))


# ---------------------------------------------------------------- Fig. 1: the cost model

FLOPS, NUMBERS = {ALEXNET: 2.1e9, GOOGLENET: 3.3e9}, {ALEXNET: 3000, GOOGLENET: 1000}
COSTED = frame_of({"layers": [layers(FLOPS, NUMBERS)]}, "smoke")
BATCH = {ALEXNET: 256, GOOGLENET: 32}


def by_hand(
    name: str, s: Any, devices: int, numbers: Any = NUMBERS, flops: Any = FLOPS
) -> tuple[float, float, float]:
    """Seconds of computing, of starting a sum and of its transfer, of one layer and one tensor."""
    size, steps = 4 * numbers[name], 2 * (devices - 1)
    compute = 2 * flops[name] * BATCH[name] / devices / s.flops + 5 * size / s.memory
    return compute, (s.call + steps * s.alpha if steps else 0.0), steps * size / devices / s.beta


def period(compute: float, start: float, transfer: float) -> float:
    """Seconds of an iteration whose sum may take three: start-ups go side by side, transfers one after another."""
    return max(compute, transfer, (start + transfer) / 3)


WORLDS = {  # hidden behind computing; at many devices only partly, for the start-ups; and for the transfers
    "hidden": (FLOPS, NUMBERS),
    "started": ({ALEXNET: 2.1e4, GOOGLENET: 3.3e5}, NUMBERS),
    "sent": ({ALEXNET: 2.1e4, GOOGLENET: 3.3e5}, {ALEXNET: 300_000, GOOGLENET: 1_000_000}),
}


@pytest.mark.parametrize("world", WORLDS)
def test_modelled_headlines_by_hand(world: str) -> None:
    """Every corner of every range, for networks of which each number is known."""
    flops, numbers = WORLDS[world]
    frame = frame_of({"layers": [layers(flops, numbers)]}, "smoke")
    cost = lambda name, s, devices: by_hand(name, s, devices, numbers, flops)
    gains, shares = [], []
    for machine in dict.fromkeys(machine for _, machine in CASES.values()):
        settings, names = (machine.centre(), *machine.corners()), [n for n, of in CASES.values() if of is machine]
        times = [[cost(name, s, devices) for name in names for devices in SHARED] for s in settings]
        gains.append([max(sum(each) / period(*each) for each in of_setting) for of_setting in times])
        shares += [[100 * cost(name, s, 1)[0] / (8 * period(*cost(name, s, 8))) for s in settings] for name in names]
    speedup, efficiency = found("fig1a/speedup", frame), found("fig1a/efficiency", frame)
    wanted = (max(g[0] for g in gains), max(min(g) for g in gains), max(max(g) for g in gains))
    assert speedup.spans == (pytest.approx(wanted, rel=1e-6),)
    top = np.max(shares, axis=0)
    assert efficiency.spans == (pytest.approx((top[0], top.min(), top.max()), rel=1e-6),)
    assert (speedup.n, efficiency.n, efficiency.proxy) == (1, 1, True)

    machine = CASES["c"][1]
    each = lambda s, nodes: period(*cost(GOOGLENET, s, nodes))
    doubled = [
        min(each(s, nodes) / each(s, 2 * nodes) for nodes in (1, 2, 4, 8, 16))
        for s in (machine.centre(), *machine.corners())
    ]
    assert found("fig1c/strong-scaling-limit", frame).spans == (
        pytest.approx((doubled[0], min(doubled), max(doubled)), rel=1e-6),
    )


def test_verdicts_on_modelled_headlines() -> None:
    assert verdict("fig1a/speedup", COSTED) == "not reproduced"
    assert verdict("fig1c/strong-scaling-limit", COSTED) == "not reproduced"
    heavy = frame_of({"layers": [layers(FLOPS, dict.fromkeys(FLOPS, 10**9))]}, "smoke")
    assert verdict("fig1c/strong-scaling-limit", heavy) == "reproduced"


def test_a_speed_up_of_as_much_as_is_printed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the centre alone: the ranges of the constants leave no interval as narrow as the printed digit."""
    monkeypatch.setattr(exchanges, "settings_of", lambda machine: (machine.centre(),))
    centre = CASES["d"][1].centre()
    compute = (centre.call + 14 * centre.alpha) / 0.7  # of a layer whose sum takes 0.7 times as long on 8 devices
    flops = compute * centre.flops * 8 / 2 / 32
    frame = frame_of({"layers": [layers({ALEXNET: 100 * flops, GOOGLENET: flops}, dict.fromkeys(FLOPS, 1))]}, "smoke")
    assert verdict("fig1a/speedup", frame) == "reproduced"


def test_seconds_are_compared_by_repetition() -> None:
    table = {
        "network": [GOOGLENET] * 3 + [ALEXNET] * 3,
        "repeat": [1, 2, 3, 3, 1, 2],
        "seconds": [0.2, 0.4, 0.8, 0.39, 0.1, 0.21],
    }
    mean, low, high = student(np.log([0.2 / 0.1, 0.4 / 0.21, 0.8 / 0.39]))
    measured = found("fig1d/compute-ratio", frame_of({"compute": [{"tables": {"compute": table}}]}))
    assert measured.spans == (pytest.approx((math.exp(mean), math.exp(low), math.exp(high))),)
    assert measured.n == 3


@pytest.mark.parametrize("name", ["bias-first", "fixed-cost"])
def test_timed_sums_are_compared_on_a_log_scale(name: str) -> None:
    run = {"weights over bias": [2.0, 4.0, 8.0], "many small over one large": [3.0, 9.0, 9.0]}
    own = run["weights over bias" if name == "bias-first" else "many small over one large"]
    assert found(f"alg-layerwise/{name}", frame_of({"workers": [run]})).spans == (
        pytest.approx(student(np.log(own))),
    )


# ---------------------------------------------------------------- whole trainings


def ends_of(frame: Frame, row: str) -> Any:
    return np.array(
        [100 * (1 - frame.stored[run].curve("evaluations")["test_error"].iloc[-1]) for run in frame[row]["run"]]
    )


def test_ends_of_training_by_hand() -> None:
    frame = whole()
    ends = {row: ends_of(frame, row) for row in TRAINED}
    away = [student(ends[row] - ends["serial"]) for row in TRAINED[1:]]
    assert found("fig1b/final-accuracy-kept", frame).spans == (pytest.approx(lowest(away)),)
    means = [student(ends[row]) for row in TRAINED]
    assert [found(f"fig1b/end-{row}", frame).spans[0] for row in TRAINED] == list(map(pytest.approx, means))
    assert found("fig1b/alexnet-54", frame).spans == (pytest.approx(max(means, key=lambda s: abs(s[0] - 54))),)
    assert found("fig1b/alexnet-54", frame).note.startswith("ImageNet, the row at the end")
    short = [found(f"fig1b/{name}-kept", whole(count=9)) for name in ("final-accuracy", "lenet")]
    assert (short[0].spans, short[0].note[:29]) == (short[1].spans, "cifar100, AGD 1-3 less serial")
    assert verdict("fig1b/alexnet-54", whole(seeds=1)) == "inconclusive"
    for name in ("final-accuracy-kept", "lenet-kept", "same-iterations", "no-warm-start"):
        with pytest.raises(Missing, match="a point above a guess"):
            found(f"fig1b/{name}", whole(count=9, **dict.fromkeys(TRAINED, 0.012)))


@pytest.mark.parametrize("late", TRAINED[1:])
def test_one_approach_that_falls_behind_is_found(late: str) -> None:
    names = ("final-accuracy-kept", "alexnet-54", "same-iterations", "no-warm-start")
    assert [verdict(f"fig1b/{name}", whole()) for name in names] == ["reproduced"] * 4
    behind = whole(**{late: 0.5})
    assert [verdict(f"fig1b/{name}", behind) for name in names] == ["not reproduced"] * 4
    assert found("fig1b/same-iterations", behind).values == (pytest.approx(8 / 12),)
    assert found("fig1b/same-iterations", whole(**{late: 0.515})).values[0] < 1
    least = ends_of(whole(count=9), "serial").mean() - 1  # a point below the end of serial training
    for away, share in ((0.001, 1), (-0.001, 11 / 12)):
        short = whole(count=9)
        run = short.stored[short[late]["run"].iloc[0]]
        reached = least / 100 + away
        run.curve = lambda name, reached=reached: pd.DataFrame(ended([0.3] * 8 + [reached])["tables"][name])
        assert found("fig1b/same-iterations", short).values == (pytest.approx(share),)
    assert found("fig1b/same-iterations", behind).note == "share of AGD runs at 53% on ImageNet within 450000 updates"


# ---------------------------------------------------------------- all of them

DECIDED = [name for name in CLAIMS if name.startswith(("fig1", "alg"))]


def test_every_claim_is_measured_and_every_quantity_is_a_claims() -> None:
    told = {"fig1a/sgd-at-the-fastest-link", "fig1a/lead-by-link", "fig1b/lenet-kept", "fig1b/lenet-plain-kept"}
    told |= {"fig1b/rate-kept", "fig1b/plain-rate-kept"}
    told |= {*(f"table1/quick-{row}" for row in (*ROWS, "agd3")), "table1/kept-agd1", "table1/kept-agd2"}
    told |= {f"table1/agd3-b{1000 * place}" for place in range(1, 6)}  # a delay of three, which the table has not
    told |= {f"fig1b/end-{row}" for row in (*LABELS, *map("-".join, REMEDIED))}  # in an answer, all of these
    assert QUANTITIES.keys() - told == CLAIMS.keys() - {"fig1b/alexnet-11h"}, "hours of the paper's own machine"


@pytest.mark.parametrize(("holds", "word"), [(True, "reproduced"), (False, "not reproduced")])
def test_claims_on_exchanges_follow_the_world(holds: bool, word: str) -> None:
    frame = panels(holds)
    held = set(frame.runs["group"])
    names = [name for name in DECIDED if set(QUANTITIES.get(name, QUANTITIES["table1/order"]).groups) <= held]
    assert len(names) == 16
    assert {name: verdict(name, frame) for name in names} == dict.fromkeys(names, word)


def test_a_panel_draws_every_rate_of_the_model_with_its_corners() -> None:
    table = fig1.table("b", COSTED)
    sgd = table.query("approach == 'SGD'").set_index("devices")
    machine = CASES["b"][1]
    for devices in SHARED:
        times = [by_hand(ALEXNET, s, devices) for s in (machine.centre(), *machine.corners())]
        ratios = [each[0] / sum(each) for each in times]
        wanted = [ratios[0], min(ratios), max(ratios)]
        assert sgd.loc[devices, ["rate", "low", "high"]].tolist() == pytest.approx(wanted)
    assert len(table) == 7 * 4
    both = frame_of({"layers": [layers(FLOPS, NUMBERS)], "hosts b": [hosts(seconds(rates(), SHARED))]}, "reduced")
    drawn = fig1.table("b", both).query("source == 'hosts' and approach == 'SGD'")
    assert drawn["rate"].tolist() == pytest.approx([0.7] * 3, rel=0.01)
