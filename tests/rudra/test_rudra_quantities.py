"""Rudra's quantities on fabricated frames: the value and interval that are known, and the verdicts that follow."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from fabricated_frames import frame_of, student
from known_worlds import PANELS, PRODUCTS, ROWS, halved, imagenet, quantity, trainings, world
from scipy import stats

from paper_figures.rudra import errors, settings, table2
from paper_figures.rudra.plans import BASELINE, TABLE2, TABLE3, label, printed_error
from paper_figures.rudra.settings import LEARNERS, Configuration
from suite.claims.intervals import Interval
from suite.claims.judge import Claim, judge
from suite.data.catalogue import DATASETS
from suite.papers.artifact import Artifact, Frame, Missing
from suite.papers.catalogue import published

MEASURED = [c for c in published("rudra") if c.quantity in PANELS[c.artifact].quantities]
PAIRS = ((18.09, 18.41), (20.04, 19.65), (19.52, 19.59), (23.25, 22.14), (27.16, 27.27), (29.83, 29.9))  # Table 2
SQUARES = sum((a - b) ** 2 / 2 for a, b in PAIRS)  # on six degrees of freedom


# ---------------------------------------------------------------- errors: each value and interval by itself


def sample(group: str) -> list[float]:
    """Three errors in % of a group, unlike those of any other group or seed."""
    at = 1 + sorted(SAMPLED).index(group)
    return [20 + 0.37 * at, 20.5 + 0.29 * at**1.1, 19 + 0.41 * at**0.9]


SAMPLED = [
    *map(label, ROWS),
    "without drops",
    "alpha0",
    "alpha0/30",
    "alpha0 of 4-softsync",
    "alpha0/4",
    "hardsync at alpha0",
    table2.ALONG_TREES,
]
FINALS = {group: sample(group) for group in SAMPLED}
ALIKE = {"epoch": 140.0, "mean_staleness": 1.0}
SEEN = frame_of({g: [{"test_error": e / 100, **ALIKE} for e in found] for g, found in FINALS.items()})


def by_hand(weights: dict[str, float]) -> tuple[float, float, float]:
    """A weighted sum of means of three seeds, with Student's interval on the pooled spread."""
    value = sum(weight * sum(FINALS[group]) / 3 for group, weight in weights.items())
    squares = SQUARES + sum(sum((e - sum(FINALS[g]) / 3) ** 2 for e in FINALS[g]) for g in weights)
    freedom = 6 + 2 * len(weights)
    share = sum(weight**2 for weight in weights.values()) / 3
    half = stats.t.ppf(0.975, freedom) * math.sqrt(squares / freedom * share)
    return value, value - half, value + half


def step(a: Configuration | str, b: Configuration | str) -> dict[str, float]:
    return {errors.label(a): -1.0, errors.label(b): 1.0}


def mean(rows: range) -> dict[str, float]:
    return {label(TABLE2[at - 1]): 1 / len(rows) for at in rows}


KNOWN: dict[str, list[dict[str, float]]] = {
    **{f"table2/r{at:02d}-test-error": [{label(row): 1.0}] for at, row in enumerate(TABLE2, 1)},
    "table2/staleness-irrelevant": [step((1, 4, 30), (30, 4, 30)), step((1, 32, 30), (30, 32, 30))],
    "table2/adv-star-keeps-error": [step((1, 4, 30), table2.ALONG_TREES)],
    "table2/error-monotone-in-product": [
        {name: -weight for name, weight in mean(a).items()} | mean(b) for a, b in pairwise(PRODUCTS)
    ],
    "table2/stalest-against-hardsync": [step((0, 4, 30), (30, 4, 30))],
    "table3/baseline-error": [{label(BASELINE): 1.0}],
    "table3/r02-test-error": [{"(0, 8, 30)": 1.0}],
    "table3/r04-test-error": [{"(0, 4, 30)": 1.0}],
    "table3/cifar10-model-schedule-essential": [step(BASELINE, "without drops")],
    "fig5/n30-error": [{"alpha0/30": 1.0}],
    "fig6/hardsync-error": [{"(0, 128, 30)": 1.0}],
    "fig5/n30-lower": [step("alpha0/30", "alpha0")],
    "fig5/n4-lower": [step("alpha0/4", "alpha0 of 4-softsync")],
    "fig6/small-mu-lower-error": [{"(0, 4, 1)": 1.0}],
    "fig6/restore-by-small-mu": [step((0, 4, 30), (0, 128, 30))],
    "fig6/error-rises-with-lambda": [step((0, 128, a), (0, 128, b)) for a, b in pairwise(LEARNERS)],
    "fig7a/degradation-larger": [step((0, 128, 30), (30, 128, 30))],
    "fig7a/mitigated-by-small-mu": [step((30, 4, 30), (30, 128, 30))],
    "fig7a/mu4-immune": [{max((label((k, 4, k)) for k in LEARNERS), key=lambda g: sum(FINALS[g])): 1.0}],
    "fig7b/like-lambda-softsync": [step((k, mu, k), (1, mu, k)) for mu in (4, 128) for k in (2, 30)],
    "rate/by-rate": [step("hardsync at alpha0", (1, 128, 10))],
    "eq7/same-error": [step(BASELINE, (0, 4, 30))],
}


@pytest.mark.parametrize("name", KNOWN)
def test_an_error_is_the_mean_over_its_seeds_with_the_pooled_spread(name: str) -> None:
    each = quantity(name)
    found = each.of(SEEN)
    # the spread pools the seeds of every group that one sum names
    assert len(found.spans) == len(KNOWN[name])
    for span, weights in zip(found.spans, KNOWN[name], strict=True):
        assert span == pytest.approx(by_hand(weights), rel=1e-9)
    assert found.n == 3
    assert set(found.runs) == {f"{group} seed {seed}" for group in each.groups for seed in range(3)}


def test_our_own_seeds_replace_the_printed_pairs_once_all_nine_are_stored() -> None:
    """Squares of (17, 18, 19), (18, 18, 18) and (29, 30, 31) are 2, 0 and 2 on six degrees of freedom."""
    nine = dict(zip(errors.OWN, ([17, 18, 19], [18, 18, 18], [29, 30, 31]), strict=True))
    groups: dict[str, list[Any]] = {g: [{"test_error": e / 100} for e in found] for g, found in nine.items()}
    groups["(1, 4, 30)"] = [{"test_error": 0.185}, None, {"test_error": 0.3}]
    each = quantity("table2/r01-test-error")
    ((value, low, high),) = each.of(frame_of(groups)).spans
    half = stats.t.ppf(0.975, 6) * math.sqrt(4 / 6)
    assert (value, low, high) == pytest.approx((18.5, 18.5 - half, 18.5 + half))  # the seed after the gap waits

    groups[next(iter(groups))][2] = None
    ((value, low, high),) = each.of(frame_of(groups)).spans
    assert high - value == pytest.approx(stats.t.ppf(0.975, 6) * math.sqrt(SQUARES / 6))

    named = errors.mean(BASELINE)  # whose seeds are among the nine, and count once
    groups = {group: [{"test_error": e / 100} for e in found] for group, found in nine.items()}
    groups[label(BASELINE)] = groups[f"seeds of {label(BASELINE)}"]
    ((value, low, high),) = named.of(frame_of(groups)).spans
    assert high - value == pytest.approx(stats.t.ppf(0.975, 6) * math.sqrt(4 / 6 / 3))


def test_what_was_trained_in_full_is_set_beside_print() -> None:
    """Of the rows of Tables 2 and 3 one is stored for fewer epochs, and one has a seed more than the others."""
    rows = list(dict.fromkeys([BASELINE, *TABLE3, *TABLE2]))
    groups = {label(row): [{"test_error": e / 100, "epoch": 140} for e in FINALS[label(row)][:1]] for row in rows}
    groups[label(rows[4])] = [{"test_error": e / 100, "epoch": 140} for e in FINALS[label(rows[4])][:2]]
    groups[label(rows[7])][0]["epoch"] = 139
    frame = frame_of(groups)
    ours = {row: FINALS[label(row)][0] for row in rows if row != rows[7]}
    ours[rows[4]] = sum(FINALS[label(rows[4])][:2]) / 2
    print_ = [printed_error(row) for row in ours]
    rms = math.sqrt(sum((a - b) ** 2 for a, b in zip(ours.values(), print_, strict=True)) / len(ours))
    wanted = (rms, stats.pearsonr(list(ours.values()), print_).statistic, len(rows) - 1)
    assert quantity("table2/against-print").of(frame).values == pytest.approx(wanted)
    assert quantity("table2/seeds-a-row").of(frame).values == (2,)
    some = lambda *which: frame_of({label(rows[at]): groups[label(rows[at])] for at in which})
    assert quantity("table2/against-print").of(some(0, 1, 2)).values[2] == 3
    with pytest.raises(Missing, match="2 rows trained for 140 epochs"):
        quantity("table2/against-print").of(some(0, 1))


def test_the_spread_is_our_own_or_borrowed() -> None:
    named = ("table2/spread", "table2/spread-is-borrowed")
    nine = dict(zip(errors.OWN, ([17, 18, 19], [18, 18, 18], [29, 30, 31]), strict=True))
    own = frame_of({g: [{"test_error": e / 100} for e in found] for g, found in nine.items()})
    assert [quantity(name).of(own).values[0] for name in named] == pytest.approx([math.sqrt(4 / 6), 0])
    assert [quantity(name).of(SEEN).values[0] for name in named] == pytest.approx([math.sqrt(SQUARES / 6), 1])


def test_agreement_by_hand() -> None:
    """Squared differences 0, 1, 4 have the mean 5/3; (1, 2, 3, 4) and (1, 2, 4, 3) correlate by 0.8."""
    apart, _ = table2.agreement([10.0, 20.0, 30.0], [10.0, 21.0, 28.0])
    assert (apart.mean, apart.low) == (pytest.approx(math.sqrt(5 / 3)), 0.0)
    _, together = table2.agreement([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0])
    assert together.mean == pytest.approx(0.8)
    ends = [math.tanh(math.atanh(0.8) + sign * 1.959964) for sign in (-1, 1)]
    assert (together.low, together.high, together.n) == (*map(pytest.approx, ends), 1)
    squares = student([1.0, 4.0, 9.0, 16.0])
    apart, together = table2.agreement([1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0])
    assert apart == Interval(*(pytest.approx(math.sqrt(max(0.0, end))) for end in squares), 1, 3)  # type: ignore[arg-type]
    assert (together.mean, together.low, together.high) == pytest.approx((1, 1, 1))
    _, together = table2.agreement([3.0, 2.0, 1.0], [1.0, 2.0, 2.5])
    assert (together.mean, together.low, together.high) == (pytest.approx(-0.981981), -1, 1)  # three say nothing
    assert table2.agreement([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])[1] == Interval(0, 0, 0, 1)


@pytest.mark.parametrize(
    ("error", "near", "follows"),
    [
        (lambda printed: printed + 0.3 * math.sin(50 * printed), "reproduced", "reproduced"),
        (lambda printed: 18.3, "not reproduced", "not reproduced"),
        (lambda printed: printed + 3, "not reproduced", "reproduced"),
    ],
)
def test_the_23_errors_are_judged_together(error: Any, near: str, follows: str) -> None:
    runs = {label(row): [{"test_error": error(printed_error(row)) / 100, "epoch": 140}] for row in TABLE2}
    assert verdict("table2/errors-rms", frame_of(runs)) == near
    assert verdict("table2/errors-correlation", frame_of(runs)) == follows
    twice = {name: [run, {**run, "test_error": run["test_error"] + 0.004}] for name, (run,) in runs.items()}
    off = [error(printed_error(row)) + 0.2 - printed_error(row) for row in TABLE2]  # on the mean of two
    rms = quantity("table2/errors-rms").of(frame_of(twice)).values
    assert rms == (pytest.approx(math.sqrt(sum(each**2 for each in off) / 23)),)
    runs[label(TABLE2[7])][0] |= {"epoch": 8, "status": "diverged"}
    assert verdict("table2/r08-test-error", frame_of(runs)) == "not reproduced"
    diverged = quantity("table2/errors-correlation").of(frame_of(runs))
    runs[label(TABLE2[7])] = [{"test_error": 0.9, "epoch": 140}]
    assert quantity("table2/errors-correlation").of(frame_of(runs)) == diverged
    runs[label(TABLE2[7])][0]["epoch"] = 8  # a run that ended early is none of 140 epochs
    with pytest.raises(Missing, match="1 of 23 rows have no run of 140 epochs"):
        verdict("table2/errors-rms", frame_of(runs))


@pytest.mark.parametrize(("curve", "ends"), [([88, 90, 86], (86, 90)), ([88, 90.5, 89.5], (89.5, 90.5))])
def test_divergence_is_judged_at_every_evaluation_of_every_seed(curve: list[float], ends: tuple[float, ...]) -> None:
    """The first evaluation is of an untrained network."""
    tables = [{"epoch": range(len(c)), "test_error": [e / 100 for e in c]} for c in ([90, 90], curve)]
    runs = [{"tables": {"evaluations": table}} for table in tables]
    each = quantity("fig5/n30-diverges")
    found = each.of(frame_of({"alpha0": runs}))
    assert (found.values, found.n) == (pytest.approx(ends), 2)


# ---------------------------------------------------------------- verdicts


def claim(name: str) -> Claim:
    return next(c for c in MEASURED if c.id == f"rudra/{name}")


def verdict(name: str, frame: Frame) -> str:
    """What the judge says of a claim in a frame at the paper's profile, were nothing undetermined."""
    each, which = quantity(f"{name.partition('/')[0]}/{claim(name).quantity}"), claim(name)
    return judge(
        replace(which, undetermined=""), replace(each.of(frame), proxy=False), "paper", rests_on="modelled"
    ).verdict


WITHOUT_RUNS = ("push-10ms", "imagenet-model-parameters")  # arithmetic on what is printed


def test_a_node_peaks_at_what_its_processors_add_up_to() -> None:
    """Section 4.1 prints 982 Gflop/s: four processors of eight cores of 3.84 GHz, rounded, at 8 flop per cycle."""
    assert 4 * 8 * 3.835 * 8 < 982 < 4 * 8 * 3.845 * 8


def test_a_push_takes_as_long_as_an_idle_link() -> None:
    assert quantity("fig2/push-10ms").of(frame_of({"none": [None]})).values == (pytest.approx(3.125),)


def test_an_incast_takes_what_the_idle_link_takes_or_longer() -> None:
    found = quantity("fig2/incast-1s").of(frame_of({"times": [{"incast_seconds": 1.2}]}))
    assert (found.spans, found.n) == ((pytest.approx((1.2, 16 * 0.003125, 1.2)),), 1)


UNDECIDED = ("rudra/fig2/incast-1s",)  # from an idle link on, which no effective bandwidth narrows


@pytest.mark.parametrize("which", MEASURED, ids=lambda c: c.id)
def test_a_claim_is_reproduced_where_it_holds_and_not_where_it_does_not(which: Claim) -> None:
    name = which.id.removeprefix("rudra/")
    made = imagenet if which.artifact.partition("/")[2] in ("fig2", "fig9", "table1", "table4") else world
    failed = "paper contradicts itself" if which.doubt else "not reproduced"
    if name.endswith(WITHOUT_RUNS):
        assert verdict(name, frame_of({"none": [None]})) == failed
        return
    if which.id not in UNDECIDED:
        assert verdict(name, made(True)) == "reproduced"
    if (found := verdict(name, made(False))) == "reproduced":  # a bound from below, say
        found = verdict(name, halved())
    assert found == failed


@pytest.mark.parametrize("error", [0.892, 0.88])
def test_two_that_learn_nothing_do_not_agree(error: float) -> None:
    untrained = frame_of({group: [{"test_error": error, **ALIKE}] * 3 for group in FINALS})
    names = ("staleness-irrelevant", "adv-star-keeps-error")
    for name in (
        *(f"table2/{name}" for name in names),
        "fig7b/like-lambda-softsync",
        "rate/by-rate",
        "eq7/same-error",
    ):
        assert verdict(name, untrained) == ("inconclusive" if error > 0.89 else "reproduced")


def test_one_seed_a_row_decides_no_step_of_nothing_to_a_point() -> None:
    one = frame_of({group: found[:1] for group, found in trainings(True).items()})
    each = quantity("eq7/same-error")
    ((value, _, high),) = each.of(one).spans
    assert high - value == pytest.approx(stats.t.ppf(0.975, 6) * math.sqrt(SQUARES / 6 * 2))


# ---------------------------------------------------------------- settings, drawings


def test_rates_schedules_and_data_are_the_papers() -> None:
    assert settings.training((0, 4, 30), 140)[0].settings["rate"] == pytest.approx(0.001 * (120 / 128) ** 0.5)
    assert settings.training((30, 128, 30), 140)[0].settings["rate"] == pytest.approx(0.001 / 30)
    assert settings.training((4, 128, 30), 8, modulated=False)[0].settings["rate"] == 0.001
    assert settings.training((30, 128, 30), 8)[0].settings["algorithm"]["history"] > 2 * 30
    whole = settings.training((1, 4, 30), 140)[0].settings
    assert whole["updates"] == 58_334  # 140 x 50,000 / 120
    assert [list(drop) for drop in whole["drops"]] == [[50_001, 0.1], [54_167, 0.01]]
    run = settings.training(BASELINE, 140)[0].settings
    ends = [at for at, _ in run["drops"]] + [run["updates"]]
    assert [at * run["batch"] * run["workers"] / 50_000 for at in ends] == pytest.approx([120, 130, 140], abs=0.01)
    assert (run["rate"], [factor for _, factor in run["drops"]]) == (0.001, [0.1, 0.01])
    cifar, large = DATASETS["cifar10"], DATASETS["imagenet"]
    assert (cifar.sizes["train"], cifar.sizes["test"], cifar.classes) == (50_000, 10_000, 10)
    assert (large.sizes["train"], large.sizes["validation"], large.classes) == (1_281_167, 50_000, 1000)
    assert pytest.approx(350, abs=0.5) == settings.CIFAR_BYTES / 1024


def test_tables_hold_what_is_printed_and_what_is_stored() -> None:
    panel: Artifact = PANELS["rudra/table2"]
    frame = world(True)
    table = table2.table(frame)
    printed = table[table["source"] == "printed"].pivot(index="row", columns="quantity", values="value")
    assert printed.loc["(18, 64, 18)"].to_dict() == {"test error": 28.31, "time": 1713}
    assert len(printed) == 23
    ours = table[(table["source"] == errors.WHOLE) & (table["row"] == "(1, 4, 30)")]
    each = panel.quantities["r01-test-error"]
    ((value, low, high),) = each.of(frame).spans
    assert ours[["value", "low", "high"]].iloc[2].tolist() == pytest.approx([value, low, high])
    found = table2.against_print(frame)
    assert [row for row, _, _ in found] == list(dict.fromkeys([BASELINE, *TABLE3, *TABLE2]))
    assert table2.distance(found) == pytest.approx((0.0, 1.0))


# ---------------------------------------------------------------- trainings that serve several configurations


def test_hardsyncs_of_one_product_share_their_runs_and_differ_in_nothing_but_learners_and_clock():
    grid = settings.grid("hardsync")
    for configuration in grid:
        served = settings.trained_as(configuration)
        assert settings.at_profile(configuration, "paper")[0] == settings.training(served, 140)[0]
        ours, theirs = (dict(settings.training(each, 140)[0].settings) for each in (configuration, served))
        sizes = [each.pop("batch") * each.pop("workers") for each in (ours, theirs)]
        assert sizes[0] == sizes[1]
        for each in (ours, theirs):
            each.pop("server")
            each["algorithm"] = {**each["algorithm"], "workers": 0}
        assert ours == theirs
    products = {mu * learners for _, mu, learners in grid}
    assert len({run.id for each in grid for run in settings.at_profile(each, "paper")}) == 3 * len(products)
    assert all(settings.trained_as(c) == c for c in settings.grid("1-softsync"))
