"""How final errors are judged: fabricated runs at the paper's sizes, in worlds whose verdicts are known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from paper_figures.rudra import fig5, rows, seeds
from paper_figures.rudra.groups import label, modulation_groups
from paper_figures.rudra.settings import (
    EPOCHS,
    LEARNERS,
    REDUCED_EPOCHS,
    Configuration,
    at_profile,
    grid,
)
from paper_figures.rudra.simulations import BASELINE, TABLE2, TABLE3
from suite.claims.judge import Verdict
from suite.papers.artifact import Evidence
from suite.papers.printed import printed_value
from suite.papers.registry import paper
from suite.papers.trials import present
from suite.papers.verdicts import measure, verdicts
from suite.runs.archive import Runs
from suite.runs.store import Outcome, Store, encode
from suite.spec import RunSpec

RUDRA = paper("rudra")
ONE_SEED = 2.446912 * 0.354554  # t with six degrees of freedom times the spread of Table 2's pairs, in points


def store_of(root: Path, runs: Iterable[tuple[RunSpec, Sequence[float]]]) -> Store:
    """A store of trainings, each with its specification and its errors in % at evenly spaced evaluations."""
    store = Store(root, create=True)
    for spec, errors in runs:
        epochs = spec.settings["updates"] * spec.settings["batch"] * gathered(spec) / 50_000
        curve = pd.DataFrame(
            {
                "epoch": [epochs * at / max(1, len(errors) - 1) for at in range(len(errors))],
                "test_error": [error / 100 for error in errors],
            }
        )
        results = {"test_error": errors[-1] / 100, "epoch": epochs}
        store.commit(spec.id, encode(spec, {}, Outcome("finished", results, {"evaluations": curve})))
    return store


def gathered(spec: RunSpec) -> int:
    n, learners = spec.settings["algorithm"]["n"], spec.settings["workers"]
    return learners if n == 0 else learners // n


def trained(root: Path, errors: Mapping[Configuration, Sequence[float] | float]) -> Store:
    """Runs of 140 epochs: the final errors of the first seeds of each configuration, in %."""
    runs = []
    for row, found in errors.items():
        values = [found] if isinstance(found, int | float) else found
        runs += [(spec, [90.0, value]) for spec, value in zip(at_profile(row, "paper"), values, strict=False)]
    return store_of(root, runs)


def measured(source: Runs, artifact: str) -> dict[str, Any]:
    found = measure(RUDRA.artifact(f"rudra/{artifact}"), source, "paper")
    assert not found.damaged
    return found.found


def judged(source: Runs, *artifacts: str) -> dict[str, Verdict]:
    chosen = [f"rudra/{artifact}" for artifact in artifacts]
    return {v.claim.id.removeprefix("rudra/"): present(v) for v in verdicts(RUDRA, source, artifacts=chosen)}


def test_the_spread_is_that_of_the_six_pairs_of_table_2() -> None:
    assert seeds.printed_pairs() == (
        (18.09, 18.41), (20.04, 19.65), (19.52, 19.59), (23.25, 22.14), (27.16, 27.27), (29.83, 29.9),
    )  # fmt: skip
    deviation, freedom = seeds.spread([])
    assert (deviation, freedom) == (pytest.approx(0.354554, abs=1e-6), 6)
    assert deviation == pytest.approx(math.sqrt(sum((a - b) ** 2 / 2 for a, b in seeds.printed_pairs()) / 6))


def test_a_contrast_narrows_with_seeds_and_widens_where_they_scatter() -> None:
    one = seeds.contrast({"a": 1.0}, {"a": [20.0]}, {})
    assert (one.mean, one.high - one.mean, one.n) == (20.0, pytest.approx(ONE_SEED, rel=1e-5), 1)
    step = seeds.contrast({"a": -1.0, "b": 1.0}, {"a": [20.0], "b": [21.0]}, {})
    assert (step.mean, step.mean - step.low) == (1.0, pytest.approx(math.sqrt(2) * ONE_SEED, rel=1e-5))

    close = seeds.contrast({"a": 1.0}, {"a": [20.0, 20.0, 20.0]}, {})
    deviation = math.sqrt(6 * 0.354554**2 / 8)  # six degrees of the pairs and two of ours
    assert close.high - close.mean == pytest.approx(2.306004 * deviation / math.sqrt(3), rel=1e-5)
    apart = seeds.contrast({"a": 1.0}, {"a": [18.0, 20.0, 22.0]}, {})
    wider = math.sqrt((6 * 0.354554**2 + 8) / 8)
    assert apart.high - apart.mean == pytest.approx(2.306004 * wider / math.sqrt(3), rel=1e-5)
    with pytest.raises(ValueError, match="no seed of"):
        seeds.contrast({"a": 1.0}, {"a": []}, {})


def test_our_own_seeds_replace_the_printed_pairs_once_all_nine_are_stored(tmp_path: Path) -> None:
    """Squares of (17, 18, 19), (18, 18, 18) and (29, 30, 31) are 2, 0 and 2 on six degrees of freedom."""
    own = {(0, 128, 1): [17.0, 18.0, 19.0], (30, 4, 30): [18.0] * 3, (10, 128, 10): [29.0, 30.0, 31.0]}
    half = 2.446912 * math.sqrt(4 / 6)
    found = measured(trained(tmp_path / "nine", {**own, (1, 4, 30): 18.5}), "table2")["r01-test-error"]
    assert found.values == (18.5,)
    assert found.high[0] - 18.5 == pytest.approx(half, rel=1e-5)

    eight = {**own, (10, 128, 10): [29.0, 30.0], (1, 4, 30): 18.5}
    found = measured(trained(tmp_path / "eight", eight), "table2")["r01-test-error"]
    assert found.high[0] - 18.5 == pytest.approx(ONE_SEED, rel=1e-5)


def test_a_named_configuration_counts_once() -> None:
    own = {"a": [17.0, 18.0, 19.0], "b": [18.0, 18.0, 18.0]}
    found = seeds.contrast({"a": 1.0}, {"a": [17.0, 18.0, 19.0]}, own)
    assert found.high - found.mean == pytest.approx(2.776445 * math.sqrt(2 / 4) / math.sqrt(3), rel=1e-5)


PRINTED = [printed_value(f"rudra/table2/r{at:02d}-test-error") for at in range(1, 24)]


@pytest.mark.parametrize(
    ("errors", "near", "follows"),
    [
        (lambda printed: printed + 0.3 * math.sin(50 * printed), "reproduced", "reproduced"),
        (lambda printed: 18.3, "not reproduced", "not reproduced"),
        (lambda printed: printed + 3, "not reproduced", "reproduced"),
        (lambda printed: 45 - printed, "not reproduced", "not reproduced"),
    ],
)
def test_the_23_errors_are_judged_together(tmp_path: Path, errors: Any, near: str, follows: str) -> None:
    store = trained(tmp_path, {row: errors(printed) for row, printed in zip(TABLE2, PRINTED, strict=True)})
    found = judged(store, "table2")
    assert found["table2/errors-rms"].verdict == near
    assert found["table2/errors-correlation"].verdict == follows


def test_agreement_by_hand() -> None:
    """Squared differences 0, 1, 4 have the mean 5/3; (1, 2, 3, 4) and (1, 2, 4, 3) correlate by 0.8."""
    apart, _ = seeds.agreement([10.0, 20.0, 30.0], [10.0, 21.0, 28.0])
    assert (apart.mean, apart.low) == (pytest.approx(math.sqrt(5 / 3)), 0.0)
    _, together = seeds.agreement([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0])
    assert together.mean == pytest.approx(0.8)
    assert together.low == pytest.approx(math.tanh(math.atanh(0.8) - 1.959964), rel=1e-5)


def test_the_table_is_not_judged_as_a_whole_before_all_rows_are_there(tmp_path: Path) -> None:
    store = trained(tmp_path, dict(zip(TABLE2[:22], PRINTED[:22], strict=True)))
    assert judged(store, "table2")["table2/errors-rms"].verdict == "not run"


@pytest.mark.parametrize(
    ("error", "verdict"),
    [(18.09, "reproduced"), (18.7, "reproduced"), (19.0, "inconclusive"), (20.6, "not reproduced")],
)
def test_a_row_is_judged_by_itself(tmp_path: Path, error: float, verdict: str) -> None:
    found = judged(trained(tmp_path, {(1, 4, 30): error}), "table2", "table3")
    for claim in ("table2/r01-test-error", "table3/r01-test-error"):
        assert found[claim].verdict == verdict
        ((value, low, high),) = found[claim].measured.spans
        assert (value, low, high) == pytest.approx((error, error - ONE_SEED, error + ONE_SEED), abs=1e-4)
    others = [
        v for claim, v in found.items() if claim.endswith("test-error") and not claim.endswith("r01-test-error")
    ]
    assert {v.verdict for v in others} == {"not run"}


def test_seeds_count_from_the_first_on(tmp_path: Path) -> None:
    specs = at_profile(BASELINE, "paper")
    found = measured(store_of(tmp_path / "a", [(specs[0], [18.0]), (specs[2], [30.0])]), "table3")
    assert (found["baseline-error"].values, found["baseline-error"].n) == ((pytest.approx(18.0),), 1)
    assert "baseline-error" not in measured(store_of(tmp_path / "b", [(specs[1], [18.0])]), "table3")
    whole = measured(trained(tmp_path / "c", {BASELINE: [17.0, 18.0, 20.0]}), "table3")["baseline-error"]
    assert (whole.values[0], whole.n, len(whole.runs)) == (pytest.approx(55 / 3), 3, 3)


def test_errors_are_drawn_with_the_interval_of_their_claim(tmp_path: Path) -> None:
    several = [17.0, 18.0, 20.0]
    source = trained(tmp_path, {TABLE3[0]: 18.0, BASELINE: several})
    evidence = Evidence(source, RUDRA.artifact("rudra/table3").runs("paper"), "paper")
    claims = measured(source, "table3")
    for row, claim, values in ((TABLE3[0], "r01-test-error", [18.0]), (BASELINE, "baseline-error", several)):
        drawn = rows.trained(evidence, label(row))
        assert [run["value"] for run in drawn] == pytest.approx(values)
        assert {(run["low"], run["high"]) for run in drawn} == {(claims[claim].low[0], claims[claim].high[0])}


def test_groups_of_table_2_are_judged_on_their_means(tmp_path: Path) -> None:
    ours = {row: rows.printed_error(row) + 0.25 * (-1) ** at for at, row in enumerate(TABLE2)}
    found = measured(trained(tmp_path / "all", ours), "table2")

    def mean(chosen: Iterable[int]) -> float:
        values = [ours[TABLE2[at - 1]] for at in chosen]
        return sum(values) / len(values)

    means = [mean(range(1, 7)), mean(range(7, 14)), mean(range(14, 19)), mean(range(19, 24))]
    steps = [b - a for a, b in pairwise(means)]
    assert found["error-monotone-in-product"].values == pytest.approx(steps)
    half = found["error-monotone-in-product"].high[0] - steps[0]
    assert half == pytest.approx(ONE_SEED * math.sqrt(1 / 6 + 1 / 7), rel=1e-5)
    assert found["group-128-range"].values == pytest.approx((mean([1, 5, 6]), mean([2, 3, 4])))
    assert found["staleness-irrelevant"].values == pytest.approx(
        (ours[30, 4, 30] - ours[1, 4, 30], ours[30, 32, 30] - ours[1, 32, 30])
    )
    assert found["principle"].values == (pytest.approx(ours[1, 32, 30] - ours[1, 4, 30]),)

    del ours[TABLE2[-1]]
    fewer = measured(trained(tmp_path / "fewer", ours), "table2")
    assert "error-monotone-in-product" not in fewer
    assert "group-128-range" in fewer


def test_the_papers_own_errors_reproduce_it_and_turned_round_they_do_not(tmp_path: Path) -> None:
    """With one seed each; a step of nothing between two runs is within what one seed each can decide."""
    printed = {row: rows.printed_error(row) for row in (*TABLE2, *TABLE3, BASELINE)}
    own = judged(trained(tmp_path / "own", printed), "table2", "table3")
    decided = [claim for claim in own if claim.endswith(("test-error", "baseline-error"))]
    decided += [f"table2/{name}" for name in ("error-monotone-in-product", "group-128-range", "principle")]
    decided += ["table2/staleness-irrelevant"]
    assert {claim: own[claim].verdict for claim in decided} == dict.fromkeys(decided, "reproduced")

    order = sorted(printed, key=lambda row: printed[row])
    turned = dict(zip(order, [printed[row] for row in reversed(order)], strict=True))
    found = judged(trained(tmp_path / "turned", turned), "table2")
    for name in ("error-monotone-in-product", "group-128-range", "principle"):
        assert found[f"table2/{name}"].verdict == "not reproduced"


def test_figures_6_to_8_read_the_configurations_that_they_name(tmp_path: Path) -> None:
    """Each configuration has an error of its own, so that none can stand for another."""
    every = [*grid("hardsync"), *grid("1-softsync"), *grid("lambda-softsync")]
    ours = {row: 18 + 0.001 * at**1.5 for at, row in enumerate(dict.fromkeys(every))}
    source = trained(tmp_path, ours)
    fig6, fig7a, fig7b = measured(source, "fig6"), measured(source, "fig7a"), measured(source, "fig7b")

    def step(a: Configuration, b: Configuration) -> Any:
        return pytest.approx(ours[b] - ours[a])

    assert fig6["baseline-line"].values == (pytest.approx(ours[BASELINE]),)
    assert fig6["small-mu-lower-error"].values == (pytest.approx(ours[0, 4, 1]),)
    assert fig6["restore-by-small-mu"].values == (step((0, 4, 30), (0, 128, 30)),)
    pairs = pairwise(LEARNERS)
    assert fig6["error-rises-with-lambda"].values == tuple(step((0, 128, a), (0, 128, b)) for a, b in pairs)
    assert fig7a["degradation-larger"].values == (step((0, 128, 30), (30, 128, 30)),)
    assert fig7a["mitigated-by-small-mu"].values == (step((30, 4, 30), (30, 128, 30)),)
    assert fig7a["mu4-immune"].values == (pytest.approx(max(ours[k, 4, k] for k in LEARNERS)),)
    corners = [(mu, k) for mu in (4, 128) for k in (2, 30)]
    assert fig7b["like-lambda-softsync"].values == tuple(step((k, mu, k), (1, mu, k)) for mu, k in corners)
    assert measured(source, "fig8a")["hardsync-lower-error"].values == (step((0, 128, 30), (30, 128, 30)),)
    assert measured(source, "eq7")["same-error"].values == (step((0, 128, 1), (0, 4, 30)),)


def test_the_drops_are_judged_against_the_baseline_without_them(tmp_path: Path) -> None:
    runs = [(at_profile(BASELINE, "paper")[0], [18.0]), (at_profile(BASELINE, "paper", drops=False)[0], [21.0])]
    found = judged(store_of(tmp_path, runs), "table3")["table3/cifar10-model-schedule-essential"]
    assert (found.verdict, found.measured.values) == ("reproduced", (pytest.approx(3.0),))


def test_short_runs_decide_no_error_of_140_epochs(tmp_path: Path) -> None:
    runs = [(at_profile(row, "reduced")[0], [90.0, 18.0 + row[1]]) for row in REDUCED_EPOCHS]
    found = judged(store_of(tmp_path, runs), "table2", "table3", "fig5", "fig6", "fig7a", "fig8a", "eq7")
    errors = [v for v in found.values() if v.claim.unit in ("%", "points") and v.claim.needs == "cpu-small"]
    assert len(errors) > 40
    assert {v.verdict for v in errors} == {"not run"}
    assert found["table2/principle"].proxy.values == (pytest.approx(28.0),)  # shown, and decides nothing


@pytest.mark.parametrize(
    ("curve", "verdict", "needed"),
    [
        ([89.5, 90.0, 90.0, 90.0], "reproduced", 1.0),
        ([89.5, 90.0, 86.0, 90.0], "not reproduced", 1.0),  # strays and comes back
        ([89.5, 85.0, 80.0, 75.0], "not reproduced", 0.0),
    ],
)
def test_divergence_is_judged_at_every_evaluation(
    tmp_path: Path, curve: list[float], verdict: str, needed: float
) -> None:
    groups = modulation_groups("reduced")
    source = store_of(tmp_path, [(groups["alpha0"][0], curve), (groups["alpha0/30"][0], [90.0, 80.0, 70.0])])
    found = judged(source, "fig5", "eq6")
    assert found["fig5/n30-diverges"].verdict == verdict
    assert found["fig5/n30-diverges"].measured.values == pytest.approx((min(curve), max(curve)))
    assert found["eq6/needed"].measured.values == (needed,)
    assert found["fig5/n30-lower"].verdict == "not run"
    drawn = fig5.frame(Evidence(source, groups, "reduced"))
    assert sorted(set(drawn["configuration"])) == ["30-softsync, alpha0", "30-softsync, alpha0/30"]
    assert drawn[drawn["configuration"] == "30-softsync, alpha0"]["error"].tolist() == pytest.approx(curve)


def test_rates_of_both_protocols_are_told_apart_at_full_length(tmp_path: Path) -> None:
    groups = modulation_groups("paper")
    finals = {"alpha0/30": 30.0, "alpha0": 90.0, "alpha0/4": 25.0, "alpha0 of 4-softsync": 29.0}
    source = store_of(tmp_path, [(groups[name][0], [90.0, error]) for name, error in finals.items()])
    found = measured(source, "fig5")
    assert found["n30-lower"].values == (pytest.approx(60.0),)
    assert found["n4-lower"].values == (pytest.approx(4.0),)
    drawn = fig5.frame(Evidence(source, groups, "paper"))
    last = drawn[drawn["epoch"] > 1].groupby("configuration")["error"].mean()
    assert last.to_dict() == pytest.approx(
        {
            "30-softsync, alpha0": 90.0,
            "30-softsync, alpha0/30": 30.0,
            "4-softsync, alpha0": 29.0,
            "4-softsync, alpha0/4": 25.0,
        }
    )


def test_runs_are_told_by_their_length(tmp_path: Path) -> None:
    row = (1, 4, 30)
    groups = {"short": at_profile(row, "reduced"), "whole": at_profile(row, "paper")[:1]}
    source = store_of(tmp_path, [(groups["short"][0], [50.0]), (groups["whole"][0], [18.0])])
    evidence = Evidence(source, {**groups, label(row): ()}, "paper")
    ((short,), (whole,)) = rows.trained(evidence, "short"), rows.trained(evidence, "whole")
    assert (short["source"], short["value"]) == (rows.SHORT, pytest.approx(50.0))
    assert (whole["source"], whole["value"]) == (rows.WHOLE, pytest.approx(18.0))
    assert whole["epochs"] == pytest.approx(EPOCHS, abs=0.01)
    assert rows.trained(evidence, label(row)) == []
