"""The joint law foretold for fresh runs: every quantity on runs that follow it, and on runs that do not."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import matplotlib.figure
import numpy as np
import pytest
from fabricated_searches import Made

from paper_figures.inverse_law import collapse
from paper_figures.inverse_law.collapse import ARTIFACTS, Point, share_foretold
from paper_figures.inverse_law.collapse_runs import NETWORKS, collapse_runs, fitted, known_runs, predictions
from paper_figures.inverse_law.settings import LIMIT, curve_runs
from suite.batch_size.joint import JointLaw
from suite.batch_size.law import Updates
from suite.claims.judge import judge
from suite.papers.artifact import Evidence, Missing
from suite.papers.catalogue import entries
from suite.papers.evidence import committed
from suite.runs.archive import Layered
from suite.runs.store import Outcome

CLAIMS = {c.id: c for c in entries("inverse_law") if c.artifact == "inverse_law/collapse"}
OF_GROUP = {spec.id: name.partition("/")[0] for name, specs in collapse_runs("reduced").items() for spec in specs}
SPECS = [spec for specs in collapse_runs("reduced").values() for spec in specs]


def world(law, scatter=0.03):
    """Fresh runs told by law(prediction) -> JointLaw, each run scattered."""

    def outcome(spec):
        s, draw = spec.settings, random.Random(spec.id)
        thresholds = s["monitors"]["training"]
        found = [law(predictions()[OF_GROUP[spec.id]][t]).predict(s["batch"], s["rate"]) for t in thresholds]
        seen = [n * math.exp(draw.gauss(0, scatter)) for n in found]
        crossed = [round(n) if n <= LIMIT else -1 for n in seen]
        return Outcome("finished", {"thresholds_training": list(thresholds), "crossed_training": crossed}, {})

    return Evidence(Made(SPECS, outcome), collapse_runs("reduced"), "reduced")


def verdicts(evidence):
    found = {}
    for measure in ARTIFACTS[0].measures:
        for quantity, value in measure(evidence):
            if claim := CLAIMS.get(f"inverse_law/collapse/{quantity}"):
                found[quantity] = judge(claim, value, "reduced").verdict
    return found


def as_foretold(prediction):
    return prediction.law


def test_every_claim_is_measured_and_holds_where_the_constants_are_true():
    found = verdicts(world(as_foretold))
    assert {f"inverse_law/collapse/{quantity}" for quantity in found} == set(CLAIMS)
    assert set(found.values()) == {"reproduced"}


def test_a_larger_kappa_is_noticed_by_what_arrives():
    found = verdicts(world(lambda p: replace(p.law, noise=1.5 * p.law.noise, relaxation=p.law.relaxation / 1.5)))
    assert {found[f"arrivals-{name}"] for name in ("mnist_medium", "mnist_small", "cifar10", "cifar100")} == {
        "not reproduced"
    }


def test_a_longer_way_is_noticed_far_from_the_pole():
    found = verdicts(world(lambda p: replace(p.law, way=1.25 * p.law.way)))
    assert {found[f"far-{network.name}"] for network in NETWORKS} == {"not reproduced"}


@pytest.mark.parametrize(
    ("false", "quantities"),
    [
        (collapse.printed_law_at_all_rates, ("beyond-first-order-mnist_medium", "arrivals-mnist_large")),
        (collapse.rate_without_effect, ("far-cifar10", "rms-cifar100", "rms-mnist_medium")),
    ],
)
def test_the_worlds_flip_their_claims(false, quantities):
    found = verdicts(false(world(as_foretold)))
    assert {found[quantity] for quantity in quantities} == {"not reproduced"}


def point(load, seen, network="mnist_medium", loss=0.2878):
    """A combination at a batch size of 8 whose rate gives this load."""
    foretold = predictions()[network][loss]
    return Point(loss, 8 * load / foretold.law.noise, Updates(8, seen, float(LIMIT)), foretold)


def test_the_share_foretold_by_hand():
    """Of four, two are right by both seeds and one by one of them: 2.5 / 4. At the pole and far off none counts."""
    found = [
        point(0.5, (300.0, 300.0)),
        point(0.6, (300.0, None)),
        point(1.5, (300.0, 300.0)),
        point(1.5, (None, None)),
        point(0.95, (None, None)),
        point(0.1, (None, None)),
    ]
    share, note = share_foretold(found)
    assert share.mean == pytest.approx(2.5 / 4)
    assert note.startswith("4 combinations, 2 foretold to arrive; otherwise: loss 0.2878")
    with pytest.raises(Missing):
        share_foretold(found[-2:])


def test_a_censored_run_counted_as_arrived_would_be_noticed():
    right, _ = share_foretold([point(1.5, (None, None))])
    wrong, _ = share_foretold([point(1.5, (float(LIMIT), float(LIMIT)))])
    assert (right.mean, wrong.mean) == (1.0, 0.0)


def test_misfits_and_their_spread_by_hand():
    """Two points, three seeds: mean misfits 0.1 and -0.1, so that the root mean square is 0.1."""
    off = np.array([[0.0, 0.1, 0.2], [-0.2, -0.1, 0.0]])
    assert collapse.rms(off) == pytest.approx(0.1)
    left_out = (math.sqrt(0.0125), 0.1, math.sqrt(0.0125))  # by hand: means (0.15, -0.05), (0.1, -0.1), (0.05, -0.15)
    error = math.sqrt(2 / 3 * sum((each - sum(left_out) / 3) ** 2 for each in left_out))
    assert collapse.jackknife(off, collapse.rms).high == pytest.approx(0.1 + 4.3027 * error, rel=1e-4)
    exchanged = np.array(
        [[0.0, 0.1, 0.2], [0.0, -0.1, -0.2]]
    )  # the same values, two seeds exchanged: 0.15, 0.1, 0.05
    assert collapse.jackknife(exchanged, collapse.rms).high == pytest.approx(
        0.1 + 4.3027 * 0.1 / math.sqrt(3), rel=1e-4
    )
    assert collapse.better(off, 2 * off).mean == pytest.approx(0.1)


def test_constants_written_before_are_those_of_the_stored_runs():
    """A network whose stored curves are not all committed is left out; the LeNets on MNIST always are."""
    evidence = Evidence(Layered(committed()), curve_runs("reduced"), "reduced")
    whole = [n for n in NETWORKS if {s.id for g in known_runs(n).values() for s in g} <= evidence.source.ids()]
    assert {n.name for n in whole} >= {"mnist_small", "mnist_medium", "mnist_large"}
    for network in whole:
        for loss, found in fitted(evidence, network).items():
            written = predictions()[network.name][loss]
            for name in ("way", "relaxation", "noise"):
                assert getattr(found.law, name) == pytest.approx(getattr(written.law, name), rel=2e-3), (
                    network,
                    loss,
                )
            assert (found.floor, found.sensitivity) == pytest.approx((written.floor, written.sensitivity), rel=2e-3)


def test_no_run_is_one_that_the_constants_come_from():
    known = {spec.id for specs in curve_runs("reduced").values() for spec in specs}
    assert not known & {spec.id for spec in SPECS}
    rates = {n.name: {s.settings["rate"] for g in known_runs(n).values() for s in g} for n in NETWORKS}
    assert all(not rates[n.name] & set(n.rates) for n in NETWORKS)


def drawn(evidence):
    figure = matplotlib.figure.Figure(figsize=(10, 7), layout="constrained")
    collapse.draw_collapse(evidence, figure)
    return figure


def test_the_drawing_says_what_is_not_run_and_marks_what_did_not_arrive():
    empty = drawn(Evidence(Made([], None), collapse_runs("reduced"), "reduced"))
    assert [axes.get_title() for axes in empty.axes] == [f"{n.title}\nfresh runs: not run" for n in NETWORKS]
    whole = drawn(world(as_foretold))
    for network, axes in zip(NETWORKS, whole.axes, strict=True):
        assert axes.get_title() == network.title
        points = [line for line in axes.lines if line.get_linestyle() == "None"]
        assert len(points) == len(network.thresholds) * len(network.rates) * len(network.sizes)
        poles = [1 / p.law.noise for p in predictions()[network.name].values()]
        hollow = [float(line.get_xdata()[0]) for line in points if line.get_markerfacecolor() == "none"]
        assert min(hollow) > 0.9 * min(poles)
    with pytest.raises(Missing):
        drawn(Evidence(Made([], None), collapse_runs("smoke"), "smoke"))


def test_the_frame_has_a_row_for_every_threshold_of_every_run():
    table = collapse.frame(world(as_foretold))
    assert len(table) == sum(len(spec.settings["monitors"]["training"]) for spec in SPECS)
    assert (table["updates"].isna() == (table["load"] > 1)).mean() > 0.97


def test_the_foretold_law_is_a_joint_law_and_its_rival_the_printed_one():
    """The rival at rate 0.05, M = 64, by hand: N_inf x rate / rate + alpha / M."""
    one = predictions()["mnist_medium"][0.2878]
    assert isinstance(one.law, JointLaw)
    assert one.first_order(64, 0.05) == pytest.approx(10.01 / 0.05 + 537.4 / 64)
