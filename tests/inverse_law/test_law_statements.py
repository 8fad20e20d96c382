"""The inverse law's statements that no experiment of ours could refute: Table 1, settings, bounds, messages."""

from __future__ import annotations

import itertools
import math

import pytest
from torch import nn

from paper_figures.inverse_law import equations, fig2
from paper_figures.inverse_law.settings import ROWS, curve_specs
from suite.batch_size.law import Updates, fit_inverse_law
from suite.models import build

TABLE_1 = [  # network, outputs, parameters as printed, layers with weights, rates, batch sizes
    ("lenet_small", 10, 43_158, 4, [0.01], (1, 1024)),
    ("lenet_medium", 10, 169_506, 4, [0.01, 0.05], (1, 1024)),
    ("lenet_medium", 10, 169_506, 4, [0.05], (1, 1024)),  # even/odd: the count implies ten outputs
    ("lenet_large", 10, 671_802, 4, [0.01], (1, 1024)),
    ("cifar_lenet", 10, 487_458, 4, [0.05], (1, 1024)),
    ("vgg_medium", 10, 1_125_090, 9, [0.01, 0.05], (1, 1024)),
    ("vgg_large", 10, 1_862_754, 11, [0.025], (1, 1024)),
    ("resnet20", 10, 270_410, 20, [0.05], (1, 1024)),
    ("cifar_lenet", 100, 487_458, 4, [0.05], (16, 1024)),
    ("vgg_medium", 100, 1_125_090, 9, [0.05], (16, 1024)),
    ("vgg_large", 100, 1_862_754, 11, [0.025, 0.05], (16, 1024)),
]


@pytest.mark.parametrize(("number", "printed"), list(enumerate(TABLE_1, 1)))
def test_table_1(number: int, printed: tuple[str, int, int, int, list[float], tuple[int, int]]) -> None:
    """For 100 classes the printed counts are those of ten outputs: 90 more on 200 units add 18,090."""
    network, classes, parameters, layers, rates, ends = printed
    rows = [row for row in ROWS if row.table == number]
    assert {(row.model, row.classes) for row in rows} == {(network, classes)}
    module = build(network, classes=classes)
    added = 90 * 201 if classes == 100 else 0
    assert sum(p.numel() for p in module.parameters()) == parameters + added
    assert sum(isinstance(layer, nn.Conv2d | nn.Linear) for layer in module.modules()) == layers
    specs = [spec.settings for row in rows for spec in curve_specs(row, "paper")]
    assert sorted({s["rate"] for s in specs if s["descent"]["rule"] == "torch"}) == rates
    assert (min(s["batch"] for s in specs), max(s["batch"] for s in specs)) == ends


def test_losses_are_read_as_printed() -> None:
    """Ten runs on MNIST, a fifth of the data in each sample, every update on MNIST and every 100 on the others."""
    of = {
        data: [s for r in ROWS if r.data == data for s in curve_specs(r, "paper")]
        for data in ("mnist", "cifar10", "cifar100")
    }
    assert len({spec.seed for spec in of["mnist"]}) == 10
    assert {spec.settings["share"] for specs in of.values() for spec in specs} == {0.2}
    assert [{spec.settings["every"] for spec in specs} for specs in of.values()] == [{1}, {100}, {100}]


def test_translation_has_seven_sizes_four_rates_and_five_seeds() -> None:
    specs = [spec for rate in fig2.RATES for spec in fig2.panel_runs(rate, "paper")["panel"]]
    assert sorted({spec.settings["words"] for spec in specs}) == [100, 200, 400, 800, 1600, 3200, 6400]
    assert sorted({spec.settings["rate"] for spec in specs}) == [0.1, 0.2, 0.5, 1.0]
    assert (len({spec.seed for spec in specs}), len(specs)) == (5, 140)


@pytest.mark.parametrize(("noise", "rate"), [(10.0, 50.0), (30.0, 100.0), (100.0, 100.0)])
def test_an_earlier_bound_inverted_is_another_law(noise: float, rate: float) -> None:
    """eps <= c1 / sqrt(N M) + c2 / N solved for N, with noise = c1 / eps and rate = c2 / eps."""
    root = {batch: noise / math.sqrt(batch) for batch in (2**k for k in range(11))}
    counts = {batch: ((u + math.sqrt(u**2 + 4 * rate)) / 2) ** 2 for batch, u in root.items()}
    law = fit_inverse_law([Updates(batch, (n,)) for batch, n in counts.items()])
    assert max(abs(law.predict(batch) / n - 1) for batch, n in counts.items()) > 0.05


def test_an_all_reduce_of_four_halves_twice_and_doubles_twice() -> None:
    """A half and a quarter of the gradients travel over a link, and a quarter and a half come back."""
    wire = (1 / 2 + 1 / 4 + 1 / 4 + 1 / 2) * equations.BYTES / equations.BANDWIDTH
    assert equations.allreduce_seconds(4, 0.5) == pytest.approx(wire + 4 * 0.5)


def test_the_growth_of_an_all_reduce_is_a_slope_over_doublings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times that grow as P^0.2, P^0.3 and P^0.1 at the three latencies: the middle one's, between the ends."""
    powers = dict(zip(equations.LATENCIES, (0.2, 0.3, 0.1), strict=True))
    monkeypatch.setattr(equations, "allreduce_seconds", lambda learners, latency: learners ** powers[latency])
    found = equations.growth(None)  # type: ignore[arg-type]
    assert (found.mean, found.low, found.high) == pytest.approx((0.3, 0.1, 0.3))


def test_every_network_and_rate_of_the_table_is_a_curve() -> None:
    assert len(set(itertools.chain.from_iterable(row.powers for row in ROWS))) == 11  # powers of two, 1 to 1024
    assert len({row.name for row in ROWS}) == len(ROWS) == sum(len(rates) for *_, rates, _ in TABLE_1) + 1  # and Adam
