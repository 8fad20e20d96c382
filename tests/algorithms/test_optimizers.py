"""The local solvers against PyTorch's own and against Caffe's rule written out."""

from __future__ import annotations

import pytest
import torch

from suite.models.network import parameter_specs
from suite.training.build import make_network, make_optimizer
from suite.training.flat import FlatModule
from suite.training.optimizers import LARS, AdaGrad, Adam, AdamW, CaffeSGD, TorchSGD

D, STEPS = 5, 30
SCALE = torch.tensor([1.0, 2.0, 1.0, 0.0, 1.0], dtype=torch.float64)
DECAYS = torch.tensor([1.0, 0.0, 250.0, 1.0, 0.5], dtype=torch.float64)


def gradients():
    draw = torch.Generator().manual_seed(0)
    return torch.randn(STEPS, D, generator=draw, dtype=torch.float64)


def rate(t):
    return 0.1 / (1 + t // 10)


def run(optimizer):
    x = torch.ones(D, dtype=torch.float64)
    memory = optimizer.init(x)
    for t, g in enumerate(gradients()):
        x, memory = optimizer.step(memory, x, g, torch.tensor(rate(t), dtype=torch.float64))
    return x


def run_optimizer(make):
    parameters = [torch.ones(1, dtype=torch.float64, requires_grad=True) for _ in range(D)]
    optimizer = make(parameters)
    base = [group["lr"] for group in optimizer.param_groups]
    for t, g in enumerate(gradients()):
        for group, lr in zip(optimizer.param_groups, base, strict=True):
            group["lr"] = lr * rate(t)
        for parameter, value in zip(parameters, g, strict=True):
            parameter.grad = value[None].clone()
        optimizer.step()
    return torch.cat(parameters).detach()


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.9, 0.01)])
def test_torch_equals_torch(momentum, decay):
    theirs = run_optimizer(lambda p: torch.optim.SGD(p, 1.0, momentum=momentum, weight_decay=decay))
    torch.testing.assert_close(run(TorchSGD(momentum, decay)), theirs, rtol=1e-12, atol=1e-12)


def test_torch_multipliers_equal_parameter_groups():
    theirs = run_optimizer(
        lambda p: torch.optim.SGD(
            [
                {"params": [x], "lr": float(s), "weight_decay": 0.01 * float(w)}
                for x, s, w in zip(p, SCALE, DECAYS, strict=True)
            ],
            momentum=0.9,
        )
    )
    torch.testing.assert_close(run(TorchSGD(0.9, 0.01, SCALE, DECAYS)), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_adam_equals_torch(decay):
    for beta1, beta2 in ((0.9, 0.999), (0.0, 0.5), (0.5, 0.0)):
        theirs = run_optimizer(lambda p, b=(beta1, beta2): torch.optim.Adam(p, 1.0, b, weight_decay=decay))
        torch.testing.assert_close(run(Adam(beta1, beta2, decay=decay)), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adamw_and_adagrad_equal_torch(decay):
    theirs = run_optimizer(lambda p: torch.optim.AdamW(p, 1.0, (0.5, 0.9), weight_decay=decay))
    torch.testing.assert_close(run(AdamW(0.5, 0.9, decay=decay)), theirs, rtol=1e-12, atol=1e-12)
    theirs = run_optimizer(lambda p: torch.optim.Adagrad(p, 1.0, weight_decay=decay))
    torch.testing.assert_close(run(AdaGrad(decay=decay)), theirs, rtol=1e-12, atol=1e-12)


def test_adam_steps_parts_of_the_parameters_as_it_steps_all():
    """Each part by itself, as layer-wise exchange does; the count that the bias needs is that of the part."""
    x, parts = torch.ones(D, dtype=torch.float64), (slice(0, 2), slice(2, D))
    memory = AdamW().init(x)
    for t, g in enumerate(gradients()):
        lr = torch.tensor(rate(t), dtype=torch.float64)
        stepped = [AdamW().step(memory[..., part], x[part], g[part], lr, part) for part in parts]
        x, memory = (torch.cat(pieces, -1) for pieces in zip(*stepped, strict=True))
    assert torch.equal(x, run(AdamW()))


def test_without_settings_the_rules_are_torchs_own():
    adaptive = ((Adam(), torch.optim.Adam), (AdamW(), torch.optim.AdamW), (AdaGrad(), torch.optim.Adagrad))
    for ours, theirs in (*adaptive, (TorchSGD(), torch.optim.SGD)):
        expected = run_optimizer(lambda p, theirs=theirs: theirs(p, 1.0))
        torch.testing.assert_close(run(ours), expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(run(CaffeSGD()), run(TorchSGD()))


@pytest.mark.parametrize("scaled", [False, True])
def test_caffe_equals_its_rule_written_out(scaled):
    lr_mult = SCALE.tolist() if scaled else [1.0] * D
    decay_mult = DECAYS.tolist() if scaled else [1.0] * D
    w, history = [1.0] * D, [0.0] * D
    for t, g in enumerate(gradients().tolist()):
        for i in range(D):
            local_rate = rate(t) * lr_mult[i]
            diff = g[i] + 0.01 * decay_mult[i] * w[i]
            history[i] = 0.9 * history[i] + local_rate * diff
            w[i] -= history[i]
    ours = run(CaffeSGD(0.9, 0.01, SCALE, DECAYS) if scaled else CaffeSGD(0.9, 0.01))
    torch.testing.assert_close(ours, torch.tensor(w, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_conventions_agree_at_a_constant_rate_and_part_when_it_changes():
    """After one gradient of 1 and then none: rates 1, 0 leave Caffe's velocity and stop PyTorch's."""
    for optimizer, expected in ((CaffeSGD(0.5), -1.5), (TorchSGD(0.5), -1.0)):
        x, memory = torch.zeros(1), torch.zeros(1)
        for g, lr in ((1.0, 1.0), (0.0, 0.0)):
            x, memory = optimizer.step(memory, x, torch.tensor([g]), torch.tensor(lr))
        assert x.item() == expected


@pytest.mark.parametrize(
    "optimizer",
    [CaffeSGD(0.9, 0.01, SCALE, DECAYS), TorchSGD(0.9, 0.01, SCALE, DECAYS), Adam(decay=0.01)],
    ids=["Caffe", "Torch", "Adam"],
)
def test_parts_stepped_alone_equal_the_whole(optimizer):
    """Also when the parts take turns: the count of Adam belongs to each parameter."""
    whole = run(optimizer)
    for part in (slice(0, 2), slice(2, 5)):
        x = torch.ones(D, dtype=torch.float64)[part]
        memory = optimizer.init(torch.ones(D, dtype=torch.float64))[..., part]
        for t, g in enumerate(gradients()):
            lr = torch.tensor(rate(t), dtype=torch.float64)
            x, memory = optimizer.step(memory, x, g[part], lr, part)
        assert torch.equal(x, whole[part])


@pytest.mark.parametrize("optimizer", [CaffeSGD(0.9, 0.01), TorchSGD(0.9, 0.01), Adam()])
def test_rows_are_independent_and_keep_their_dtype(optimizer):
    points = torch.rand(3, D, generator=torch.Generator().manual_seed(1))
    grads = torch.rand(3, D, generator=torch.Generator().manual_seed(2))
    memory, lr = optimizer.init(points), torch.tensor(0.1)
    together, kept = optimizer.step(memory, points, grads, lr)
    assert together.dtype == kept.dtype == torch.float32
    for j in range(3):
        alone, memory_alone = optimizer.step(memory[j], points[j], grads[j], lr)
        assert torch.equal(together[j], alone)
        assert torch.equal(kept[j], memory_alone)


def test_values_on_the_edge_are_taken():
    assert run(Adam(0.0, 0.0, 0.0, 0.0)).isfinite().all()
    assert torch.equal(run(TorchSGD(0.0, 0.0)), run(TorchSGD()))


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        (CaffeSGD, {"momentum": 1.0}),
        (CaffeSGD, {"momentum": 9.0}),
        (CaffeSGD, {"momentum": -0.1}),
        (TorchSGD, {"decay": -1}),
        (Adam, {"beta1": 1}),
        (Adam, {"beta2": 1}),
        (Adam, {"beta1": -0.1}),
        (Adam, {"epsilon": -1}),
        (Adam, {"decay": -1}),
    ],
)
def test_refuses_values_out_of_range(rule, change):
    ((name, value),) = change.items()
    bound = "inf" if name in ("epsilon", "decay") else 1
    with pytest.raises(ValueError, match=rf"^{rule.__name__}: {name}={value} must lie in \[0, {bound}\)$"):
        rule(**change)


def test_lars_takes_each_layer_by_the_ratio_of_its_norms():
    """Algorithm 1 of the paper, layer by layer in plain numbers, for two replicas and with a layer at rest."""
    layers = (slice(0, 2), slice(2, 5))
    rule = LARS(trust=0.1, momentum=0.5, decay=0.01, layers=layers)
    start = torch.tensor([[3.0, 4.0, 0.0, 0.0, 0.0], [1.0, 1.0, 2.0, -1.0, 2.0]], dtype=torch.float64)
    x, memory = start, rule.init(start)
    mine, velocity = start.clone(), torch.zeros_like(start)
    for t, g in enumerate(gradients()[:4]):
        both, lr = torch.stack([g, -g]), torch.tensor(rate(t), dtype=torch.float64)
        x, memory = rule.step(memory, x, both, lr)
        for row in range(2):
            for layer in layers:
                w, gradient = mine[row, layer], both[row, layer]
                size = float(w.square().sum().sqrt())
                ratio = 0.1 * size / (float(gradient.square().sum().sqrt()) + 0.01 * size) if size else 1.0
                velocity[row, layer] = 0.5 * velocity[row, layer] + lr * ratio * (gradient + 0.01 * w)
                mine[row, layer] = w - velocity[row, layer]
    torch.testing.assert_close(x, mine)
    part, _ = rule.step(memory[..., 2:], x[..., 2:], both[..., 2:], lr, slice(2, 5))
    torch.testing.assert_close(part, rule.step(memory, x, both, lr)[0][..., 2:])
    alone, _ = rule.step(memory[0], x[0], both[0], lr)  # one model [d], as SGD has it
    torch.testing.assert_close(alone, rule.step(memory, x, both, lr)[0][0])
    with pytest.raises(ValueError, match="parameters 1 to 5 cut a layer"):
        rule.step(memory[..., 1:], x[..., 1:], both[..., 1:], lr, slice(1, 5))


@pytest.mark.usefixtures("small_networks")
def test_who_builds_a_solver_hands_it_the_networks_multipliers_and_the_layers_it_asks_for():
    full = FlatModule(make_network({"name": "caffe_cifar_full"}, 0, "cpu", torch.float32))
    for rule in ("torch", "caffe"):
        plain, scaled = (make_optimizer({"rule": rule, "multipliers": asked}, full) for asked in (False, True))
        assert plain.lr_scale is plain.decay_scale is None
        for name, spec in parameter_specs(full.module):
            assert full.named(scaled.lr_scale)[name].unique().tolist() == [spec.lr_multiplier]
            assert full.named(scaled.decay_scale)[name].unique().tolist() == [spec.decay_multiplier]
    flat = FlatModule(make_network({"name": "linear"}, 0, "cpu", torch.float32))
    assert make_optimizer({"rule": "lars", "trust": 0.01}, flat).layers == flat.segments
    with pytest.raises(ValueError, match="descent lars: got an unexpected keyword argument 'layers'"):
        make_optimizer({"rule": "lars", "layers": []}, flat)
