"""Rates and seconds of MaTEx, over links and in its cost model: known answers, and worlds in which claims fall."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from fabricated_matex_runs import evidence, link, run_of
from matplotlib.figure import Figure

from paper_figures.matex_agd import PAPER, algorithms, fig1, link_readings, settings
from paper_figures.matex_agd.experiments import compute
from paper_figures.matex_agd.experiments import link as over
from paper_figures.matex_agd.overlap_cases import ALEXNET, GOOGLENET, PANELS, layer_runs
from suite.claims.judge import judge
from suite.experiment import Context
from suite.papers.artifact import Evidence, Missing
from suite.papers.catalogue import published
from suite.papers.counterfeits import COUNTERFEITS, GENUINE, edited, forged
from suite.papers.evidence import with_committed
from suite.spec import RunSpec
from suite.training import numerics

CLAIMS = {claim.id.removeprefix("matex_agd/"): claim for claim in published("matex_agd")}


def verdict(name: str, found, profile: str = "paper") -> str:
    return judge(CLAIMS[name], found, profile).verdict


@pytest.fixture(scope="module")
def committed():
    return with_committed(None)


@pytest.fixture(scope="module")
def layers(committed):
    return Evidence(committed, layer_runs("paper"), "paper")


# Over the link

FAST = {"AGD 1 comm": (0.12, 0.4, 0.9), "AGD 2 comm": (0.12, 0.4, 0.9), "AGD 3 comm": (0.12, 0.4, 0.9)}
SLOW = {"SGD": (0.1, 0.3, 0.7), "layer-wise, backward": (0.1, 0.2, 0.5), "layer-wise, completed": (0.1, 0.2, 0.5)}


def over_link(rates, **how):
    groups = link_readings.link_runs("reduced")
    return evidence(groups, lambda name, spec: link(rates, **how), "reduced")


def measured_over_link(found):
    return {name: (verdict(f"fig1a/{name}", value, "reduced"), value) for name, value in fig1.measure_link(found)}


def test_the_link_decides_what_the_model_cannot():
    seen = measured_over_link(over_link(FAST | SLOW))
    assert {name: word for name, (word, _) in seen.items()} == dict.fromkeys(seen, "reproduced")
    assert seen["agd-best"][1].values[0] == pytest.approx(math.log(1.2), abs=0.02)
    assert seen["layerwise-below-agd"][1].values[0] == pytest.approx(math.log(1.2), abs=0.02)
    assert seen["no-comm-best"][1].values[0] == pytest.approx(0.9, abs=0.02)
    assert not any(value.proxy for _, value in seen.values())
    assert {value.n for _, value in seen.values()} == {5}


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_speed_is_enough_to_lose(place):
    def with_one(rates, value):
        return {name: tuple(value if i == place else r for i, r in enumerate(each)) for name, each in rates.items()}

    sgd = {"SGD": with_one({"SGD": SLOW["SGD"]}, 0.95)["SGD"]}
    seen = measured_over_link(over_link(FAST | SLOW | sgd))
    assert (seen["agd-best"][0], seen["layerwise-below-agd"][0]) == ("not reproduced", "reproduced")
    layers = with_one({name: SLOW[name] for name in link_readings.LAYER_WISE}, 0.95)
    seen = measured_over_link(over_link(FAST | SLOW | layers))
    assert (seen["agd-best"][0], seen["layerwise-below-agd"][0]) == ("not reproduced", "not reproduced")
    above = with_one({"AGD 2 comm": FAST["AGD 2 comm"]}, 1.2)
    assert measured_over_link(over_link(FAST | SLOW | above))["no-comm-best"][0] == "not reproduced"


def test_what_the_paper_does_not_have_decides_nothing():
    """Buckets and PyTorch's DDP are faster than all here, and the sleeping network is not looked at."""
    more = {"layer-wise, buckets": (1.3,) * 3, "PyTorch DDP": (1.3,) * 3}
    assert measured_over_link(over_link(FAST | SLOW | more)) == measured_over_link(over_link(FAST | SLOW))


def test_noise_leaves_it_open():
    seen = measured_over_link(over_link(FAST | SLOW, noise=0.4))
    assert seen["agd-best"][0] == "inconclusive"


def test_repetitions_are_paired():
    """Repetitions differ by a fifth, methods within one by a hundredth: the interval shows the latter."""
    ours = link_readings.ratios(link(FAST | SLOW), "computing", 4e9, "AGD 1 comm", "SGD")
    assert ours.mean == pytest.approx(9 / 7, rel=0.02)
    assert (ours.high - ours.low) / ours.mean < 0.06


@pytest.mark.parametrize("name", ["agd-best", "layerwise-below-agd", "no-comm-best"])
def test_counterfeits_of_the_link_flip_its_claims(name):
    for world in COUNTERFEITS[f"matex_agd/fig1a/{name}"]:
        assert measured_over_link(world(over_link(FAST | SLOW)))[name][0] == "not reproduced"


def test_methods_over_the_link_are_those_that_are_read():
    assert (*over.METHODS, "PyTorch DDP") == link_readings.METHODS
    for name in link_readings.DELAYED:
        assert over.METHODS[name] == {"delay": int(name.split()[1])}
    for name in link_readings.LAYER_WISE:
        given = {"order": "backward", **over.METHODS[name]}  # the order that is taken where none is named
        assert given == {"layerwise": True, "order": name.split()[1]}
    assert over.METHODS["SGD"] == {}


def test_a_link_that_could_not_be_made_is_missing():
    with pytest.raises(Missing, match="no root"):
        list(fig1.measure_link(over_link(FAST, skipped="no root")))
    with pytest.raises(Missing, match="smoke"):
        list(fig1.measure_link(Evidence(None, {}, "smoke")))


def test_the_forecast_is_the_one_that_the_run_once_stored(committed):
    run = committed.read(link_readings.LINK.id)
    stored = run.curve("predicted").set_index(["speed", "method"])["rate"]
    ours = {(s, name): rate for s in link_readings.SPEEDS for name, rate in link_readings.forecast(run, s).items()}
    assert ours == pytest.approx(stored.to_dict(), rel=1e-12)


def test_the_frame_of_the_link_holds_every_repetition():
    table = link_readings.frame(link(FAST | SLOW))
    seen, modelled = table[table["source"] == "link"], table[table["source"] == "cost model"]
    assert len(seen) == 2 * 3 * 5 * len(link_readings.METHODS)
    assert len(modelled) == 3 * 7
    of_one = seen[(seen["workload"] == "computing") & (seen["speed"] == 4e9) & (seen["method"] == "SGD")]
    assert of_one["rate"].mean() == pytest.approx(0.7, rel=0.02)


def test_the_printed_efficiency_stands_beside_the_link(committed):
    artifact = PAPER.artifact("matex_agd/eq-efficiency")
    figure = Figure()
    artifact.draw(Evidence(committed, artifact.runs("paper"), "paper"), figure)
    for axes in figure.axes:
        sgd, agd = (line for line in axes.lines if line.get_marker() == "D")
        assert list(sgd.get_ydata()) == pytest.approx([0.82 / 1.7] * 2)
        assert list(agd.get_ydata()) == [0.82] * 2
        labels = [text.get_text() for text in axes.get_xticklabels()]
        over = [label for place, label in enumerate(labels) if agd.get_xdata()[0] < place < agd.get_xdata()[1]]
        assert over == ["AGD\n1 comm", "AGD\n2 comm", "AGD\n3 comm"]
        assert labels[0] == "SGD"
    crosses = [len(c.get_offsets()) for c in figure.axes[0].collections][-24:]
    assert sum(crosses) == 18, "six methods of the model at three speeds"


# The cost model's panels


@pytest.mark.parametrize("letter", "abcd")
def test_a_panel_is_drawn_with_the_papers_bars_first(layers, letter):
    table = fig1.frame(letter, layers)
    assert len(table) == 7 * 4
    assert (table["low"] <= table["rate"]).all()
    assert (table["rate"] <= table["high"] + 1e-12).all()
    assert table.loc[table["devices"] == 1, "rate"].between(0.98, 1 + 1e-12).all()
    figure = Figure()
    fig1.draw(letter, layers, figure)
    (axes,) = figure.axes
    labels = [text.get_text().replace("\n", " ") for text in axes.get_xticklabels()]
    assert labels[:5] == ["no comm", "SGD", "AGD 1 comm", "AGD 2 comm", "AGD 3 comm"]
    heights = [bar.get_height() for bars in axes.containers[:4] for bar in bars]
    assert sorted(heights) == pytest.approx(sorted(table["rate"]))
    assert [t.get_text() for t in axes.get_legend().get_texts()] == [
        f"{n} device{'s' * (n > 1)}" for n in (1, 2, 4, 8)
    ]


def test_panel_a_shows_what_decides_it(committed):
    artifact = PAPER.artifact("matex_agd/fig1a")
    found = Evidence(committed, artifact.runs("paper"), "paper")
    figure = Figure()
    artifact.draw(found, figure)
    assert len(figure.axes) == 2
    bars = [len(each) for each in figure.axes[1].containers]
    assert bars == [6, 6, 6]


def test_the_headline_is_the_best_of_all_panels(layers):
    found = dict(fig1.measure_headline(layers))
    ratios = []
    for letter in PANELS:
        table = fig1.frame(letter, layers).pivot(index="devices", columns="approach", values="rate")
        ratios.append((table[list(link_readings.DELAYED)].max(axis=1) / table["SGD"])[[2, 4, 8]].max())
    assert found["speedup"].values[0] == pytest.approx(max(ratios))
    assert found["speedup"].low[0] <= max(ratios) <= found["speedup"].high[0]
    assert found["efficiency"].values[0] == pytest.approx(100, abs=2), "the model loses nothing on small batches"


def test_modelled_sentences_hold_in_every_panel_and_decide_none(layers):
    for letter in PANELS:
        found = dict(fig1.measure_model(letter)(layers))
        assert found["modelled: AGD over SGD"].low[0] > 0
        assert found["modelled: AGD over layer-wise"].low[0] > 0
        assert found["modelled: best over no comm"].values[0] <= 1 + 1e-9
        if letter != "a":
            claims = {"agd-best", "layerwise-below-agd", "no-comm-best"}
            measured = {name for m in PAPER.artifact(f"matex_agd/fig1{letter}").measures[:1] for name, _ in m(layers)}
            assert not claims & measured


def test_doubling_the_nodes_pays_less_and_less(layers):
    """Of 32 images on 1 to 32 nodes the last doubling gains least: compute halves, sums do not get shorter."""
    value = dict(fig1.measure_strong_scaling(layers))["strong-scaling-limit"]
    assert 0.9 < value.low[0] < value.values[0] < value.high[0] < 2
    costless = edited(layers, lambda run: forged(run, caffe_googlenet=sent(run, 1e-9)), "layers")
    free = dict(fig1.measure_strong_scaling(costless))["strong-scaling-limit"]
    assert free.low[0] > value.low[0]


def sent(run, times):
    """GoogLeNet's layers with so many times the numbers to send."""
    table = run.curve("caffe_googlenet")
    return table.assign(weights=times * table["weights"], biases=times * table["biases"])


def test_phases_are_shares_of_an_iteration(layers):
    value = dict(fig1.measure_phases(layers))["agd-covers-three-phases"]
    assert 1 / 3 < value.values[0] < 1 / 2


def test_what_can_be_hidden_is_bounded_over_all_links(committed):
    found = Evidence(committed, algorithms.runs("paper"), "paper")
    hidden = dict(algorithms.measure_bounds_of_overlap(found))["overlap-limit"]
    assert hidden.values[0] == pytest.approx(1.1, abs=0.05)
    assert "all 0.998, backward 1.085" in hidden.note
    bounds = dict(algorithms.measure_bounds_of_delay(found))["time-per-iteration"]
    assert bounds.values == pytest.approx((1.0, 1.0), abs=1e-9)


def test_parameters_are_read_in_millions(layers):
    said = {"caffe_alexnet parameters": 60e6, "caffe_googlenet without auxiliary heads": 4e6}
    ratio = {"caffe_googlenet forward multiply-adds": 30, "caffe_alexnet forward multiply-adds": 20}
    found = dict(fig1.measure_counted(algorithms.telling(layers, "layers", {**said, **ratio})))
    assert {name: value.values for name, value in found.items()} == {
        "parameters-alexnet": (60.0,),
        "parameters-googlenet": (4.0,),
        "multiply-adds": (1.5,),
    }


# Seconds without communication


def computed(googlenet, alexnet):
    tables = {ALEXNET: alexnet, GOOGLENET: googlenet}
    rows = [(name, at, value) for name, values in tables.items() for at, value in enumerate(values, start=1)]
    table = pd.DataFrame(rows, columns=["network", "repeat", "seconds"])
    return evidence({"compute": (settings.COMPUTE,)}, lambda name, spec: run_of(spec, {}, compute=table), "reduced")


def compute_ratio(found):
    value = dict(fig1.measure_compute(found))["compute-ratio"]
    return verdict("fig1d/compute-ratio", value, "reduced"), value


def test_seconds_per_image_are_compared_by_repetition():
    found = computed([0.2, 0.4, 0.8], [0.1, 0.21, 0.39])
    told, value = compute_ratio(found)
    assert told == "reproduced"
    assert value.values[0] == pytest.approx((2 * 0.4 / 0.21 * 0.8 / 0.39) ** (1 / 3))
    assert (value.proxy, value.n) == (False, 3)
    for world in COUNTERFEITS["matex_agd/fig1d/compute-ratio"]:
        assert compute_ratio(world(found))[0] == "not reproduced"
    less = computed([0.12, 0.24, 0.48], [0.1, 0.21, 0.39])
    assert compute_ratio(less)[0] == "not reproduced"
    for world in GENUINE["matex_agd/fig1d/compute-ratio"]:
        assert compute_ratio(world(less))[1].values == pytest.approx((2.0,))


def test_both_networks_are_timed_in_turns_after_one_to_warm_up(tmp_path, monkeypatch):
    seen = []

    def counted(work, device):
        work()
        seen.append(device)
        return float(len(seen))

    monkeypatch.setattr(compute, "timed", counted)
    small = {"model": "digits_lenet", "beside": "caffe_lenet", "batches": [2, 4], "repeats": 2}
    spec = RunSpec("matex_agd/compute", small)
    table = compute.compute(spec, Context(tmp_path, numerics.choose(spec, "cpu", 1))).curves["compute"]
    assert seen == ["cpu"] * 6
    assert table["network"].tolist() == ["digits_lenet", "caffe_lenet"] * 2
    assert table["repeat"].tolist() == [1, 1, 2, 2]
    assert table["seconds"].tolist() == [3 / 2, 4 / 4, 5 / 2, 6 / 4]  # an image


def test_the_batches_are_the_papers():
    assert dict(zip(("model", "beside"), settings.COMPUTE.settings["batches"], strict=True)) == {
        "model": 32,
        "beside": 256,
    }
    assert fig1.runs_and_compute("smoke").keys() == {"layers"}
