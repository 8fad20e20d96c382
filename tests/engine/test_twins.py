"""The ways to compute gradients agree: looped, functional, vectorised, joined, captured."""

from __future__ import annotations

import pytest
import torch
from engine_cases import agree, bound, points, problem
from rehearsal import Rehearsal
from torch import nn

from reference_impls.contract import Points
from suite.models.table import networks
from suite.training.flat import FlatModule
from suite.training.gradients.backend import AutogradGradients, Functional, Vectorised, compute_gradients
from suite.training.gradients.cuda_graph import Captured
from suite.training.gradients.native import Native
from suite.training.gradients.paths import backend, refusals
from suite.training.numerics import OwnKernels
from suite.training.problem import Classification, QuadraticProblem

SMALL = 1e8  # operations per example up to which a network is tested at every run


def cases() -> list:
    return [
        pytest.param(name, marks=() if counts.flops_per_example < SMALL else pytest.mark.slow)
        for name, counts in networks().items()
        if " " not in name
    ]


@pytest.mark.parametrize("channels_last", [True, False], ids=["channels-last", "channels-first"])
@pytest.mark.parametrize("name", cases())
def test_every_way_agrees_on_every_network(name, channels_last):
    """Looped, functional, vectorised, captured (rehearsed) and joined."""
    case = without_masks(problem(name, channels_last=channels_last))
    x, rows = points(case, 2), case.b0().repeat(2, 1)
    examples = torch.arange(6).view(2, 3)
    batches = [case.fetch(part) for part in examples]
    looped = tuple(part.clone() for part in AutogradGradients(case)(x, rows, batches))
    agree(looped, Functional(case)(x, rows, batches), case.d)
    agree(looped, Vectorised(case)(x, rows, batches), case.d)
    agree(looped, AutogradGradients(case.under(OwnKernels()))(x, rows, batches), case.d)
    if not networks()[name].has_dropout:
        agree(looped, Captured(case, Rehearsal()).indexed(x, rows, examples), case.d)
    at = Points(x[:1], (2,), torch.zeros(2, dtype=torch.int64))
    joined = tuple(part.clone() for part in compute_gradients(AutogradGradients(case), at, rows, examples))
    apart = compute_gradients(AutogradGradients(case), at, rows, examples, join=False)
    assert float((joined[1] - apart[1]).norm()) <= bound(apart[1], case.d)


LARGER = {
    "vgg_medium": {},
    "crossbow_resnet32": {},
    "caffe_googlenet": {"input_size": 96, "classes": 7, "aux": False},
}


@pytest.mark.parametrize("name", LARGER)
def test_replicas_of_larger_networks_have_the_gradients_and_statistics_of_each_alone(name):
    case = without_masks(problem(name, examples=6, **LARGER[name]))
    x, rows = points(case, 2), case.b0().repeat(2, 1)
    batches = [case.fetch(part) for part in torch.arange(6).view(2, 3)]
    looped = tuple(part.clone() for part in AutogradGradients(case)(x, rows, batches))
    agree(looped, Vectorised(case)(x, rows, batches), case.d)


def without_masks(case):
    """Dropout that drops nothing: what masks do is tested apart."""
    for layer in case.flat.module.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    case.dropout = False
    return case


def with_dropout() -> list:
    return [case for case in cases() if networks()[case.values[0]].has_dropout]


def test_what_is_refused_is_what_cannot_be_had(monkeypatch):
    """A network whose dropout keeps everything draws no masks. Native gradients have tests of their own."""
    monkeypatch.setattr(Native, "refusal", lambda problem: "is not asked here")
    masked = problem("crossbow_lenet")
    assert "vectorised" in refusals(masked)
    assert backend("vectorised", without_masks(masked)).name == "vectorised"
    quadratic = QuadraticProblem(torch.ones(2, 2), torch.ones(2))
    assert backend("vectorised", quadratic).name == "vectorised"
    for case in (problem("linear"), quadratic):
        assert set(refusals(case)) - {"native"} == {"captured"}


def test_joined_batches_drop_out_what_one_batch_of_all_would():
    case = problem("crossbow_lenet")
    at = Points(points(case, 1), (2,), torch.zeros(2, dtype=torch.int64))
    examples, rows = torch.arange(8).view(2, 4), case.b0().repeat(2, 1)
    torch.manual_seed(3)
    joined = compute_gradients(AutogradGradients(case), at, rows, examples)[1].clone()
    torch.manual_seed(3)
    whole = AutogradGradients(case)(at.parameters, rows[:1], [case.fetch(examples.reshape(-1))])[1]
    assert torch.equal(joined, 2 * whole)


@pytest.mark.parametrize("name", with_dropout())
def test_the_same_masks_of_dropout_give_the_same_gradients(name):
    case = problem(name)
    assert case.dropout
    x, batch = points(case, 1), [case.fetch(torch.arange(4))]
    gradients = []
    for function, mask in ((AutogradGradients(case), 3), (Functional(case), 3), (AutogradGradients(case), 4)):
        torch.manual_seed(mask)
        gradients.append(function(x, case.b0()[None], batch)[1].clone())
    assert float((gradients[0] - gradients[1]).norm()) <= bound(gradients[0], case.d)
    assert float((gradients[0] - gradients[2]).norm()) > 1000 * bound(gradients[0], case.d)


def test_rows_of_the_loop_have_the_bits_of_each_alone():
    case = problem("digits_lenet", dtype=torch.float32)
    x, rows = points(case, 3), case.b0().repeat(3, 1)
    batches = [case.fetch(torch.arange(i, i + 4)) for i in range(3)]
    together = tuple(part.clone() for part in AutogradGradients(case)(x, rows, batches))
    for i, batch in enumerate(batches):
        alone = AutogradGradients(case)(x[i : i + 1], rows[i : i + 1], [batch])
        assert torch.equal(together[0][i], alone[0][0])
        assert torch.equal(together[1][i], alone[1][0])


def test_a_vectorised_row_does_not_see_what_the_other_rows_hold():
    case = problem("digits_lenet", dtype=torch.float32)
    x, batch = points(case, 3), case.fetch(torch.arange(4))
    rows = case.b0().repeat(3, 1)
    before = Vectorised(case)(x, rows, [batch] * 3)
    disturbed = x.clone()
    disturbed[1] = torch.nan
    after = Vectorised(case)(disturbed, rows, [batch] * 3)
    for i in (0, 2):
        assert torch.equal(before[1][i], after[1][i])
    assert after[1][1].isnan().all()


@pytest.mark.parametrize(
    "path",
    [Vectorised, lambda case: Captured(case, Rehearsal()), pytest.param(Native, marks=pytest.mark.compiler)],
    ids=["vectorised", "captured", "native"],
)
@pytest.mark.usefixtures("hastily")
def test_unequal_shares_are_joined_by_every_path(path):
    """Two of one length: what a path gave for the first is no longer there after the last."""
    case = problem("digits_lenet")
    at = Points(points(case, 3), (1, 3, 1), torch.zeros(5, dtype=torch.int64))
    examples, rows = torch.arange(10).view(5, 2), case.b0().repeat(5, 1)
    looped = tuple(part.clone() for part in compute_gradients(AutogradGradients(case), at, rows, examples))
    agree(looped, compute_gradients(path(case), at, rows, examples), case.d)


def test_unequal_shares_that_are_not_joined_are_summed_point_by_point():
    case = problem("digits_lenet")
    at = Points(points(case, 3), (1, 3, 2), torch.zeros(6, dtype=torch.int64))
    examples, rows = torch.arange(12).view(6, 2), case.b0().repeat(6, 1)
    joined = compute_gradients(AutogradGradients(case), at, rows, examples)[1].clone()
    losses, sums, _ = compute_gradients(AutogradGradients(case), at, rows, examples, join=False)
    assert (losses.shape, sums.shape) == ((6,), (3, case.d))
    assert float((sums - joined).norm()) <= bound(joined, case.d)


def test_batches_of_a_network_with_batch_norm_are_never_joined():
    case = problem("tiny_bn")
    at = Points(points(case, 1), (2,), torch.zeros(2, dtype=torch.int64))
    examples, rows = torch.arange(8).view(2, 4), case.b0().repeat(2, 1)
    _, sums, after = compute_gradients(AutogradGradients(case), at, rows, examples)
    separate = AutogradGradients(case)(at.parameters.repeat(2, 1), rows, [case.fetch(part) for part in examples])
    assert torch.equal(sums[0], separate[1].sum(0))
    assert not torch.equal(after[0], after[1])  # each worker's statistics are of its own batch


def test_quadratics_have_twins_too():
    generator = torch.Generator().manual_seed(0)
    case = QuadraticProblem(
        torch.randn(20, 6, generator=generator, dtype=torch.float64), torch.linspace(1, 2, 6).double()
    )
    x, rows = torch.randn(3, 6, generator=generator, dtype=torch.float64), torch.zeros(3, 0, dtype=torch.float64)
    batches = [case.fetch(torch.arange(i, i + 5)) for i in range(3)]
    looped = backend("looped", case)(x, rows, batches)
    agree(looped, Vectorised(case)(x, rows, batches), case.d)
    expected = case.curvature * (x[0] - batches[0][0].mean(0))
    assert float((looped[1][0] - expected).norm()) <= bound(expected, case.d)


class Half(nn.Module):
    """Of its two layers it uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 2), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.used(x.flatten(1))


def test_a_parameter_without_effect_has_gradient_zero_by_every_path_and_whatever_stood_there_before():
    pixels = torch.randint(256, (6, 1, 2, 2), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    case = Classification(FlatModule(Half().double()), pixels, torch.arange(6) % 2, lambda x: x.double() / 256)
    x, rows, examples = points(case, 1), case.b0()[None], torch.arange(6)[None]
    looped = AutogradGradients(case)
    looped._grads.fill_(7.0)
    expected = tuple(part.clone() for part in looped.indexed(x, rows, examples))
    assert expected[1][0, :10].count_nonzero() == 10
    assert not expected[1][0, 10:].any()
    for twin in (Functional(case), Vectorised(case), Captured(case, Rehearsal())):
        agree(expected, twin.indexed(x, rows, examples), case.d)
