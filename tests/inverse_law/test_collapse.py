"""The joint law foretold for fresh runs: every quantity on runs that follow it, and on runs that do not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import matplotlib.figure
import numpy as np
import pytest
from fabricated_frames import frame_of, measured, verdict
from scipy import stats

from paper_figures.inverse_law import collapse
from paper_figures.inverse_law.collapse import PANEL, Point, share_foretold
from paper_figures.inverse_law.joint import (
    NETWORKS,
    Network,
    Prediction,
    collapse_runs,
    known_counts,
    known_runs,
    predictions,
)
from paper_figures.inverse_law.settings import LIMIT, curve_runs
from suite.batch_size.joint_choice import JointLaw, fit_joint_law
from suite.batch_size.law import Updates
from suite.papers.artifact import Frame, Missing, read_frame
from suite.papers.catalogue import committed, entries
from suite.runs.archive import Layered

CLAIMS = [c.id for c in entries("inverse_law") if c.artifact == "inverse_law/collapse"]
SPECS = [spec for specs in collapse_runs("reduced").values() for spec in specs]


def world(law: Callable[[Prediction, float, float], float], scatter: float = 0.03) -> Frame:
    """Fresh runs told by law(prediction, batch, rate), each run scattered."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for group, specs in collapse_runs("reduced").items():
        for spec in specs:
            s, draw = spec.settings, random.Random(spec.id)
            thresholds = list(s["monitors"]["training"])
            foretold = [predictions()[group.partition("/")[0]][t] for t in thresholds]
            seen = [law(p, s["batch"], s["rate"]) * math.exp(draw.gauss(0, scatter)) for p in foretold]
            crossed = [round(n) if n <= LIMIT else -1 for n in seen]
            results = {"thresholds_training": thresholds, "crossed_training": crossed, "settings": s}
            runs.setdefault(group, []).append(results)
    return frame_of(runs, "reduced")


def changed(**factors: float) -> Callable[[Prediction, float, float], float]:
    """The joint law with constants that are so many times the foretold ones."""

    def law(p: Prediction, batch: float, rate: float) -> float:
        return replace(p.law, **{n: f * getattr(p.law, n) for n, f in factors.items()}).predict(batch, rate)

    return law


@pytest.fixture(scope="module")
def foretold() -> Frame:
    return world(changed())


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_holds_where_the_constants_are_true(foretold: Frame, name: str) -> None:
    assert verdict(name, foretold) == "reproduced"
    (group, *_) = measured(name, foretold).runs
    assert group.startswith(f"{name.rpartition('-')[2]}/")


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_points_are_far_from_the_pole_or_on_the_way_to_it(foretold: Frame, network: Any) -> None:
    far, near = collapse.far_and_near(foretold, network)
    arrived = [p for p in collapse.points(foretold, network) if p.load < 0.8 and None not in p.updates.seen]
    assert [p for p in arrived if p.load <= 0.25] == far
    assert [p for p in arrived if 0.25 < p.load < 0.7] == near
    assert far
    assert near


def test_some_arrive_beyond_the_way_that_is_judged(foretold: Frame) -> None:
    found = [p for network in NETWORKS for p in collapse.points(foretold, network) if 0.7 <= p.load < 0.8]
    assert [p for p in found if None not in p.updates.seen]


FALSE = {
    "kappa half as large again": (
        changed(noise=1.5, relaxation=1 / 1.5),
        [f"arrivals-{name}" for name in ("mnist_medium", "mnist_small", "cifar10", "cifar100")],
    ),
    "a longer way": (changed(way=1.25), [f"far-{network.name}" for network in NETWORKS]),
    "the printed law at all rates": (
        lambda p, batch, rate: p.first_order(batch, rate),
        ["beyond-first-order-mnist_medium", *(f"arrivals-{network.name}" for network in NETWORKS)],
    ),
    "no effect of the rate": (
        lambda p, batch, rate: p.first_order(batch, 0.05),
        ["rms-mnist_medium", "rms-cifar10", "rms-cifar100"],
    ),
    "no effect of the rate, from 0.01": (
        lambda p, batch, rate: p.first_order(batch, 0.01),
        ["rms-mnist_small", "rms-mnist_large"],
    ),
}


@pytest.mark.parametrize("what", FALSE)
def test_each_claim_fails_in_a_world_of_its_own(what: str) -> None:
    law, quantities = FALSE[what]
    frame = world(law)
    assert {verdict(f"inverse_law/collapse/{name}", frame) for name in quantities} == {"not reproduced"}


def test_every_claim_has_such_a_world() -> None:
    assert {f"inverse_law/collapse/{name}" for _, names in FALSE.values() for name in names} == set(CLAIMS)


def test_a_network_that_lacks_a_run_is_not_measured(foretold: Frame) -> None:
    first, second, *others = foretold.rows
    lacking = replace(foretold, rows=[first, {**second, "run": ""}, *others])
    with pytest.raises(Missing, match=r"^1 of 20 runs of mnist_medium/0\.02/1 at reduced are missing$"):
        measured("inverse_law/collapse/far-mnist_medium", lacking)
    assert measured("inverse_law/collapse/far-mnist_small", lacking).n == 5
    table = collapse.table(lacking)
    assert table[(table["network"] == "mnist_medium") & (table["rate"] == 0.02) & (table["batch"] == 1)].empty


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_quantities_of_a_network_by_hand(network: Any, later: Frame) -> None:
    """A combination that arrived counts far from the pole or on the way to it, a decided one beyond as a share."""
    far, joint, first, right = [], [], [], []
    for each in collapse.points(later, network):
        seen, foretold, at = each.updates.seen, each.foretold, (each.updates.batch, each.rate)
        arrives = each.load < 0.8 and foretold.law.predict(*at) <= LIMIT
        if each.load > 0.25 and not 0.8 <= each.load <= 1.1:
            right.append([(n is not None) is arrives for n in seen])
        if arrives and each.load < 0.7 and None not in seen:
            off = [[math.log(n / law(*at)) for n in seen] for law in (foretold.law.predict, foretold.first_order)]
            (far if each.load <= 0.25 else joint).append(off[0])
            first += [] if each.load <= 0.25 else [off[1]]

    def student(statistic: Callable[[Any], float]) -> Any:
        """A statistic of values [points, seeds], with Student's interval on leaving out one seed at a time."""
        n = len(network.seeds)
        keep = [[k for k in range(n) if k != j] for j in range(n)]
        parts, whole = [statistic(each) for each in keep], statistic(list(range(n)))
        half = stats.t.ppf(0.975, n - 1) * math.sqrt((n - 1) / n * sum((p - sum(parts) / n) ** 2 for p in parts))
        return whole, whole - half, whole + half

    rms = lambda logs, keep: math.sqrt(np.mean(np.mean(np.array(logs)[:, keep], axis=1) ** 2))
    share, low, high = student(lambda keep: float(np.array(right)[:, keep].mean()))
    wanted = {
        "rms": student(lambda keep: rms(joint, keep)),
        "beyond-first-order": student(lambda keep: rms(first, keep) - rms(joint, keep)),
        "arrivals": (share, max(low, 0.0), min(high, 1.0)),
    }
    for name, span in wanted.items():
        found = measured(f"inverse_law/collapse/{name}-{network.name}", later)
        assert (found.spans, found.n) == ((pytest.approx(span),), len(network.seeds))
    found = measured(f"inverse_law/collapse/far-{network.name}", later)
    assert found.values == (pytest.approx(math.expm1(max(abs(sum(off) / len(off)) for off in far))),)


@pytest.fixture(scope="module")
def later() -> Frame:
    """A way that is longer than foretold; one seed of a network never arrives where it should."""
    frame = world(changed(way=1.05))
    for network in NETWORKS:
        arrive = [each for near in collapse.far_and_near(frame, network) for each in near[:1]]
        for each in arrive:
            crossed = frame.groups[network.group(each.rate, each.updates.batch)][0]["crossed_training"]
            crossed[:] = [-1] * len(crossed)
    return frame


def test_misfits_have_the_spread_of_their_points() -> None:
    """Variances 0.01 and 0.0025 of three seeds' misfits, 0.00625 on the mean: the second's own is too small."""
    late = lambda load, off: point(load, tuple(300 * math.exp(each) for each in off))
    points = [late(0.1, (0.1, 0.2, 0.3)), late(0.2, (-0.1, -0.05, -0.15))]
    law = [p.foretold.law.predict(8, p.rate) for p in points]
    found = collapse._misfits(points)
    assert found.misfit == pytest.approx([0.2 + math.log(300 / law[0]), -0.1 + math.log(300 / law[1])])
    assert found.error == pytest.approx([math.sqrt(0.01 / 3), math.sqrt(0.00625 / 3)])
    assert (found.degrees, found.seeds) == (4, 3)
    assert collapse._misfits([point(0.1, (300.0, 400.0))]).degrees == 1
    with pytest.raises(Missing, match="second seed"):
        collapse._misfits([point(0.1, (300.0,))])


def test_a_combination_beyond_the_limit_is_not_foretold_to_arrive() -> None:
    """However far from the pole, a rate so small takes too many updates."""
    assert [point(load, (300.0,)).arrives for load in (1e-4, 0.1, 0.79, 0.81)] == [False, True, True, False]
    assert [point(load, (300.0,)).decided for load in (0.79, 0.81, 1.09, 1.11)] == [True, False, False, True]


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


def test_misfits_and_their_spread_by_hand():
    """Two points, three seeds: mean misfits 0.1 and -0.1, so that the root mean square is 0.1."""
    off = np.array([[0.0, 0.1, 0.2], [-0.2, -0.1, 0.0]])
    assert collapse.rms(off) == pytest.approx(0.1)
    left_out = (math.sqrt(0.0125), 0.1, math.sqrt(0.0125))  # by hand: means (0.15, -0.05), (0.1, -0.1), (0.05, -0.15)
    error = math.sqrt(2 / 3 * sum((each - sum(left_out) / 3) ** 2 for each in left_out))
    assert collapse.jackknife(off, collapse.rms).high == pytest.approx(0.1 + 4.3027 * error, rel=1e-4)
    assert collapse.jackknife(off[:, 1:], collapse.rms).high < math.inf == collapse.jackknife(off[:, 2:], max).high
    exchanged = np.array(
        [[0.0, 0.1, 0.2], [0.0, -0.1, -0.2]]
    )  # the same values, two seeds exchanged: 0.15, 0.1, 0.05
    assert collapse.jackknife(exchanged, collapse.rms).high == pytest.approx(
        0.1 + 4.3027 * 0.1 / math.sqrt(3), rel=1e-4
    )
    assert collapse.better(off, 2 * off).mean == pytest.approx(0.1)


def fitted(frame: Frame, network: Network) -> dict[float, Prediction]:
    """By threshold, both laws fitted to a network's stored curves in the same way.

    The printed law foretells that every batch arrives, so points that did not are left out of its fit.
    """
    found = {}
    for threshold in network.thresholds:
        counts = known_counts(frame, network, threshold)
        reached = {rate: [u for u in curve if not u.censored] for rate, curve in counts.items()}
        first = fit_joint_law(reached, pole=False)
        found[threshold] = Prediction(fit_joint_law(counts), first.way, first.relaxation * first.noise)
    return found


def test_constants_written_before_are_those_of_the_stored_runs() -> None:
    """A network whose stored curves are not all committed is left out; the LeNets on MNIST always are."""
    frame = read_frame(Layered(committed()), known_runs(), "reduced")
    whole = [n for n in NETWORKS if all(frame.whole(f"known {name}") for name in n.known)]
    assert {n.name for n in whole} >= {"mnist_small", "mnist_medium", "mnist_large"}
    for network in whole:
        for loss, found in fitted(frame, network).items():
            written = predictions()[network.name][loss]
            for name in ("way", "relaxation", "noise"):
                assert getattr(found.law, name) == pytest.approx(getattr(written.law, name), rel=2e-3), network
            assert (found.floor, found.sensitivity) == pytest.approx((written.floor, written.sensitivity), rel=2e-3)


def test_no_run_is_one_that_the_constants_come_from() -> None:
    known = {spec.id for specs in curve_runs("reduced").values() for spec in specs}
    assert not known & {spec.id for spec in SPECS}


def drawn(frame: Frame) -> matplotlib.figure.Figure:
    figure = matplotlib.figure.Figure(figsize=(10, 7), layout="constrained")
    collapse.draw(frame, figure)
    return figure


def test_the_drawing_says_what_is_not_run_and_marks_what_did_not_arrive(foretold: Frame) -> None:
    groups = {group: [None] * len(specs) for group, specs in collapse_runs("reduced").items()}
    empty = drawn(frame_of(groups, "reduced"))
    assert [axes.get_title() for axes in empty.axes] == [f"{n.title}\nfresh runs: not run" for n in NETWORKS]
    for network, axes in zip(NETWORKS, drawn(foretold).axes, strict=True):
        assert axes.get_title() == network.title
        points = [line for line in axes.lines if line.get_linestyle() == "None"]
        assert len(points) == len(network.thresholds) * len(network.rates) * len(network.sizes)
        poles = [1 / p.law.noise for p in predictions()[network.name].values()]
        hollow = [float(line.get_xdata()[0]) for line in points if line.get_markerfacecolor() == "none"]
        assert min(hollow) > 0.9 * min(poles)
    with pytest.raises(Missing):
        drawn(frame_of({"none": [None]}, "smoke"))


def test_the_table_has_a_row_for_every_threshold_of_every_run(foretold: Frame) -> None:
    table = collapse.table(foretold)
    assert len(table) == sum(len(spec.settings["monitors"]["training"]) for spec in SPECS)
    assert (table["updates"].isna() == (table["load"] > 1)).mean() > 0.97


def test_the_foretold_law_is_a_joint_law_and_its_rival_the_printed_one() -> None:
    """The rival at rate 0.05, M = 64, by hand: N_inf x rate / rate + alpha / M."""
    one = predictions()["mnist_medium"][0.2878]
    assert isinstance(one.law, JointLaw)
    assert one.first_order(64, 0.05) == pytest.approx(10.01 / 0.05 + 537.4 / 64)
    assert set(PANEL.quantities) >= {name.rpartition("/")[2] for name in CLAIMS}
