"""Native gradients: autograd's to the bound of rounding, built once, chosen by measurement, absent without a word."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from engine_cases import agree, compute, digits, points, problem, residual, stored
from torch import nn
from torch.nn import functional as F

from suite.models.initialisers import Constant, Xavier
from suite.models.layers import BatchNorm, Conv2d, Linear, ResidualBlock
from suite.models.network import Chain
from suite.runner import autotune
from suite.training import machine_code
from suite.training.flat import FlatModule
from suite.training.gradients import native
from suite.training.gradients.backend import AutogradGradients
from suite.training.gradients.native import Native, NativeError, plan
from suite.training.gradients.native_check import bound
from suite.training.gradients.paths import refusals
from suite.training.numerics import choose
from suite.training.problem import Classification, QuadraticProblem


def rounded_badly() -> Chain:
    """Every extent that fits no vector: 3 to 5 channels, strides, padded and clipped windows, 7 classes."""
    layers = [
        ("conv1", Conv2d(3, 5, 3, weight=Xavier(), bias=Xavier(), stride=2, padding=2)),
        ("tanh1", nn.Tanh()),
        ("pool1", nn.MaxPool2d(3, 2, 1, ceil_mode=True)),
        ("conv2", Conv2d(5, 19, 2, weight=Xavier(), bias=Constant(0.1))),
        ("relu2", nn.ReLU()),
        ("pool2", nn.AvgPool2d(2, 1, 1, ceil_mode=True)),
        ("flatten", nn.Flatten()),
        ("ip1", Linear(19 * 5 * 5, 37, weight=Xavier(), bias=Constant(0.1))),
        ("relu3", nn.ReLU()),
        ("ip2", Linear(37, 7, weight=Xavier(), bias=Constant())),
    ]
    return Chain(layers, (3, 15, 15), 7)


def of(network: Chain, dtype: torch.dtype = torch.float64, channels_last: bool = True) -> Classification:
    draw = torch.Generator().manual_seed(1)
    pixels = torch.randint(256, (40, *network.input_shape), generator=draw, dtype=torch.uint8)
    flat = FlatModule(network.to(dtype), channels_last=channels_last)
    targets = torch.randint(network.classes, (40,), generator=draw)
    return Classification(flat, pixels, targets, lambda x: x.to(dtype) / 256 - 0.5)


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
@pytest.mark.parametrize("examples", [1, 5, 13])
@pytest.mark.parametrize("name", ["digits_lenet", "caffe_cifar_full", "rounded badly", "residual"])
def test_a_native_gradient_is_autograds(name, examples):
    """In double precision, where only a wrong formula could differ by more than rounding."""
    made = {"rounded badly": rounded_badly, "residual": residual}
    case = of(made[name]()) if name in made else problem(name, examples=26)
    x, rows = points(case, 2), case.b0().repeat(2, 1)
    batches = [case.fetch(torch.arange(i * examples, (i + 1) * examples)) for i in range(2)]
    expected = tuple(part.clone() for part in AutogradGradients(case)(x, rows, batches))
    agree(expected, Native(case)(x, rows, batches), case.d)


@pytest.fixture
def torch_threads():
    """Sets torch's threads, which are as many as before when the test has ended."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
@pytest.mark.parametrize("name", ["digits_lenet", "caffe_cifar_full", "rounded badly", "dropout", "residual"])
def test_threads_share_a_batch_and_round_no_worse(name, torch_threads):
    """Shares of unequal size; a batch with fewer than two examples a thread is taken by fewer threads."""
    made = {"rounded badly": lambda: of(rounded_badly()), "dropout": dropping_out, "residual": lambda: of(residual())}
    case = made.get(name, lambda: problem(name, examples=26))()
    x, rows, ours = points(case, 1), case.b0()[None], native_of(case)
    for examples, alike in ((3, True), (5, False), (11, False)):
        batch, found = [case.fetch(torch.arange(examples))], {}
        for threads in (1, 2, 3, 2):
            torch_threads(threads)
            torch.manual_seed(0)
            here = tuple(part.clone() for part in ours(x, rows, batch))
            assert all(torch.equal(*pair) for pair in zip(found.setdefault(threads, here), here, strict=True))
        torch.manual_seed(0)
        expected = tuple(part.clone() for part in AutogradGradients(case)(x, rows, batch))
        for here in found.values():
            agree(expected, here, case.d)
            assert torch.equal(here[1], found[1][1]) or not alike


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
@pytest.mark.parametrize("name", ["digits_lenet", "caffe_cifar_full", "rounded badly", "dropout"])
def test_a_native_test_gives_the_loss_of_each_example_without_dropout(name, torch_threads):
    made = {"rounded badly": lambda: of(rounded_badly()), "dropout": dropping_out}
    case = made.get(name, lambda: problem(name, examples=26))()
    x, ours = points(case, 1)[0], native_of(case)
    inputs, targets = case.fetch(torch.arange(11))
    case.flat.load(x)
    case.flat.module.eval()
    with torch.no_grad():
        expected = F.cross_entropy(case.flat.module(inputs), targets, reduction="none").double()
    case.flat.module.train()
    for threads in (1, 3):
        torch_threads(threads)
        found = ours.losses(x, inputs, targets)
        assert found.dtype == torch.float64
        assert float((found - expected).norm()) <= bound(case.d, expected)


@pytest.mark.compiler
def test_single_precision_errs_no_more_than_autograd_does():
    exact, case = problem("digits_lenet"), problem("digits_lenet", dtype=torch.float32)
    x, rows = points(exact, 1), exact.b0()[None]
    truth = AutogradGradients(exact)(x, rows, [exact.fetch(torch.arange(12))])[1].clone()
    batch = [case.fetch(torch.arange(12))]
    errors = [float((kind(case)(x.float(), rows, batch)[1] - truth).norm()) for kind in (AutogradGradients, Native)]
    assert errors[1] < 4 * errors[0]


def dropping_out() -> Classification:
    """On a CPU torch draws nothing where all or none are kept; what it draws for the third must follow the first."""
    shares = (("drop1", 0.4), ("drop2", 0.0), ("drop3", 0.25))
    layers: list[tuple[str, nn.Module]] = [("flatten", nn.Flatten())]
    for i, (name, p) in enumerate(shares):
        layers += [
            (f"ip{i}", Linear((12, 31, 10)[i], (31, 10, 9)[i], weight=Xavier(), bias=Constant(0.1))),
            (f"relu{i}", nn.ReLU()),
            (name, nn.Dropout(p)),
        ]
    return of(Chain([*layers, ("ip3", Linear(9, 4, weight=Xavier(), bias=Constant()))], (3, 2, 2), 4))


@pytest.mark.compiler
@pytest.mark.usefixtures("hastily")
@pytest.mark.parametrize("training", [True, False])
def test_native_dropout_draws_what_autograds_would(training):
    """Two batches of unequal length in one call: the masks of the second follow those of the first."""
    case = dropping_out()
    case.flat.module.train(training)
    x, rows = points(case, 2), case.b0().repeat(2, 1)
    batches = [case.fetch(torch.arange(13)), case.fetch(torch.arange(13, 20))]
    found = []
    for gradients, seed in ((AutogradGradients(case), 3), (native_of(case), 3), (AutogradGradients(case), 4)):
        torch.manual_seed(seed)
        found.append(tuple(part.clone() for part in gradients(x, rows, batches)))
    agree(found[0], found[1], case.d)
    assert torch.equal(found[0][1], found[2][1]) is not training


def native_of(case: Classification) -> Native:
    """Its first comparison with autograd draws masks, and leaves the generator as it was."""
    before = torch.get_rng_state()
    native.library.cache_clear()
    made = Native(case)
    assert torch.equal(torch.get_rng_state(), before)
    return made


@pytest.mark.compiler
def test_what_is_no_number_stays_so_through_a_pool():
    case = problem("digits_lenet", dtype=torch.float32)
    x = points(case, 1)
    x[0, 3] = torch.nan
    loss, grads, _ = Native(case)(x, case.b0()[None], [case.fetch(torch.arange(4))])
    assert loss.isnan().all()
    assert grads.isnan().any()


@pytest.mark.compiler
def test_rows_are_computed_at_their_own_points_and_with_the_bits_of_each_alone():
    case = problem("digits_lenet", dtype=torch.float32)
    x, rows = points(case, 3), case.b0().repeat(3, 1)
    batches = [case.fetch(torch.arange(i, i + 4)) for i in range(3)]
    ours = Native(case)
    losses, grads, _ = (part.clone() for part in ours(x, rows, batches))
    for i, batch in enumerate(batches):
        alone = ours(x[i : i + 1], rows[i : i + 1], [batch])
        assert torch.equal(alone[0][0], losses[i])
        assert torch.equal(alone[1][0], grads[i])


@pytest.mark.usefixtures("fresh")
def test_without_a_compiler_everything_else_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert refusals(problem("digits_lenet"))["native"] == "there is no C++ compiler here"
    spec = digits(0, batch=1)
    changes = autotune.measure_training(spec, choose(spec, "cpu", 1))
    assert changes["path"] != "native"
    assert changes["refused"]["native"] == "there is no C++ compiler here"
    named = digits(0, path="native", updates=2)
    assert [report.state for report in compute(tmp_path, named)] == ["stored"]
    execution = stored(tmp_path, named).environment["execution"]
    assert (execution["path"], execution["reason"]) == ("looped", "no native gradient: there is no C++ compiler here")


@pytest.mark.usefixtures("fresh")
def test_a_compiler_that_does_not_run_is_passed_over(monkeypatch, tmp_path):
    """Named is the next one, by the first line that it says of itself."""
    for name, script in (("broken", "exit 1"), ("c++", 'printf "made up 1.0\\nfree software\\n"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", str(tmp_path / "broken"))
    assert machine_code.compiler() == (str(tmp_path / "c++"), "made up 1.0")
    machine_code.compiler.cache_clear()
    (tmp_path / "c++").unlink()
    with pytest.raises(NativeError, match="there is no C\\+\\+ compiler here"):
        machine_code.compiler()


@pytest.mark.compiler
@pytest.mark.usefixtures("fresh")
def test_what_does_not_compile_is_not_used_and_told_in_the_compilers_words(monkeypatch, tmp_path):
    wrong = tmp_path / "native.cpp"
    wrong.write_text("this is no C++")
    monkeypatch.setattr(native, "SOURCE", replace(native.SOURCE, file=wrong))
    assert f"cannot compile it: {wrong}:1:1: error: " in (Native.refusal(problem("digits_lenet")) or "")


@pytest.mark.parametrize(("activation", "written"), [(nn.Tanh(), "Tanh"), (nn.ReLU(), "Relu")])
def test_an_activation_is_taken_of_the_maximum_and_of_what_is_averaged(activation, written):
    """The same of fewer numbers, as it is monotone; an average of it is another thing."""

    def planned(pool: nn.Module) -> str:
        conv, ip = Conv2d(3, 4, 3, weight=Xavier(), bias=None), Linear(64, 5, weight=Xavier(), bias=Constant())
        layers = [("conv", conv), ("activation", activation), ("pool", pool), ("flatten", nn.Flatten()), ("ip", ip)]
        return plan(Chain(layers, (3, 10, 10), 5))

    assert f"MaxPool<8, 8, 4, 2, 2, 0, 4, 4>, {written}<64>, Flatten" in planned(nn.MaxPool2d(2))
    assert f"{written}<256>, AveragePool<8, 8, 4" in planned(nn.AvgPool2d(2))


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (nn.Conv2d(3, 4, 3, groups=1, dilation=2), r"layer odd \(Conv2d\) has no native form"),
        (nn.Conv2d(3, 4, (3, 2)), r"layer odd \(Conv2d\)"),
        (nn.AvgPool2d(2, padding=1, count_include_pad=False), r"layer odd \(AvgPool2d\)"),
        (nn.BatchNorm2d(3), r"layer odd \(BatchNorm2d\)"),
        (BatchNorm(3), "layer odd normalises 3 channels"),
        (ResidualBlock(Conv2d(3, 3, 1, weight=Xavier(), bias=None), nn.Identity()), "block odd is not made of"),
        (nn.Dropout(), r"layer odd \(Dropout\)"),
        (nn.Flatten(2), r"layer odd \(Flatten\)"),
        (nn.MaxPool2d(2, 2, dilation=2), r"layer odd \(MaxPool2d\)"),
        (nn.AvgPool2d((3, 2)), r"layer odd \(AvgPool2d\)"),
        (nn.Linear(8, 3), "layer odd has no bias, or reads maps"),
    ],
)
def test_layers_without_a_native_form_are_named(layer, why):
    with pytest.raises(NativeError, match=why):
        plan(Chain([("odd", layer), ("flatten", nn.Flatten())], (3, 8, 8), 3))


def test_what_else_has_no_native_gradient():
    channels_first = problem("digits_lenet", channels_last=False)
    assert Native.refusal(channels_first) == "weights of convolutions must lie channels-last"
    assert "cross-entropy" in (Native.refusal(QuadraticProblem(torch.ones(2, 2), torch.ones(2))) or "")
    other = problem("digits_lenet")
    other.criterion = nn.functional.nll_loss
    assert "cross-entropy" in (Native.refusal(other) or "")
    half = problem("digits_lenet", dtype=torch.bfloat16)
    assert Native.refusal(half) == "its numbers must be one of float, double"
    mixed = rounded_badly()
    mixed.get_submodule("ip2").bfloat16()
    with pytest.raises(NativeError, match="its numbers must be one of float, double"):
        plan(mixed)
