"""Every network: exact counts, the rules of its parameters, training in every way the suite uses."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from paper_figures.crossbow.experiments import sizes
from paper_figures.crossbow.settings import NETWORKS
from suite.models import build, initialise, table
from suite.models.network import Network, parameter_specs
from suite.models.registry import CLASSIFIERS, construct
from suite.models.transformer import CausalMixing

# What the papers print, or what their authors' files add up to.
PARAMETERS: list[tuple[str, dict[str, Any], int]] = [
    ("caffe_lenet", {}, 431_080),
    ("caffe_lenet", {"input_size": 32}, 656_080),
    ("caffe_cifar_quick", {}, 145_578),
    ("caffe_cifar_full", {}, 89_578),
    ("caffe_alexnet", {}, 60_965_224),
    ("caffe_alexnet", {"groups": 1}, 62_378_344),
    ("narrow_alexnet", {}, 371_284),
    ("caffe_googlenet", {}, 13_378_280),
    ("caffe_googlenet", {"aux": False}, 6_998_552),
    ("lenet_small", {}, 43_158),
    ("lenet_medium", {}, 169_506),
    ("lenet_medium", {"classes": 2}, 167_898),
    ("lenet_large", {}, 671_802),
    ("cifar_lenet", {}, 487_458),
    ("cifar_lenet", {"classes": 100}, 505_548),
    ("vgg_medium", {}, 1_125_090),
    ("vgg_medium", {"classes": 100}, 1_143_180),
    ("vgg_large", {}, 1_862_754),
    ("vgg_large", {"classes": 100}, 1_880_844),
    ("resnet20", {}, 270_410),
    ("crossbow_lenet", {}, 1_111_946),
    ("crossbow_resnet32", {}, 469_114),
    ("crossbow_vgg16", {}, 15_038_116),
    ("crossbow_resnet50", {}, 25_557_032),
    ("digits_lenet", {}, 8_474),
    ("character_transformer", {}, 116_576),
    ("character_transformer", {"width": 96, "blocks": 4}, 472_224),
]
# Every network at a size that one core trains in well under a second.
SMALL: dict[str, dict[str, Any]] = {
    "caffe_alexnet": {"input_size": 67, "classes": 7},
    "caffe_googlenet": {"input_size": 96, "classes": 7},
    "crossbow_resnet50": {"input_size": 48, "classes": 7},
}
HEAVY = ("caffe_alexnet", "caffe_googlenet", "crossbow_resnet50", "crossbow_vgg16")
LIGHT = [name for name in CLASSIFIERS if name not in HEAVY]


def network(name: str, seed: int = 0, **options: Any) -> Network:
    module = build(name, **options)
    assert isinstance(module, Network)
    initialise(module, seed)
    return module


def examples(module: Network, batch: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(batch, *module.input_shape, generator=generator).to(dtype)
    if module.label_shape:  # it reads codes of classes
        inputs = torch.randint(module.classes, inputs.shape, generator=generator).to(dtype)
    return inputs, torch.randint(module.classes, (batch, *module.label_shape), generator=generator)


@pytest.mark.parametrize(("name", "options", "parameters"), PARAMETERS)
def test_parameter_counts(name: str, options: dict[str, Any], parameters: int) -> None:
    assert sum(p.numel() for p in construct(name, **options).parameters()) == parameters


def test_table_is_what_the_networks_are() -> None:
    assert table.PATH.read_text(encoding="utf-8") == table.regenerate(), "sgd-suite refresh counts them anew"
    assert [name for name in table.networks() if " " not in name] == list(CLASSIFIERS)


def test_communicated_tensors() -> None:
    """matex_agd exchanges each tensor by itself: 16 a step for AlexNet, 128 for GoogLeNet."""
    assert table.counts("caffe_alexnet").tensors == 16
    assert table.counts("caffe_googlenet").tensors == 128


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_flops_agree_with_torchs_counter(name: str) -> None:
    module = construct(name)
    assert isinstance(module, Network)
    with FlopCounterMode(display=False) as counter:
        module(torch.empty(2, *module.input_shape, device="meta"))
    assert counter.get_total_flops() == 2 * table.counts(name).flops_per_example


def test_crossbow_operator_counts() -> None:
    got = {name: sizes.count(construct(name), data_transform=name in sizes.AUGMENTED) for name in NETWORKS}
    assert got == {"crossbow_lenet": 24, "crossbow_resnet32": 267, "crossbow_vgg16": 121, "crossbow_resnet50": 384}


def test_caffe_multipliers() -> None:
    made = network("caffe_lenet"), network("caffe_cifar_full"), construct("caffe_alexnet")
    lenet, full, alexnet = (dict(parameter_specs(module)) for module in made)
    assert (lenet["ip1.weight"].lr_multiplier, lenet["ip1.bias"].lr_multiplier) == (1.0, 2.0)
    assert {spec.decay_multiplier for spec in lenet.values()} == {1.0}
    assert {name: spec.lr_multiplier for name, spec in full.items()} == {
        "conv1.weight": 1.0,
        "conv1.bias": 2.0,
        "conv2.weight": 1.0,
        "conv2.bias": 2.0,
        "conv3.weight": 1.0,
        "conv3.bias": 1.0,
        "ip1.weight": 1.0,
        "ip1.bias": 2.0,
    }
    decays = {name: spec.decay_multiplier for name, spec in full.items()}
    assert {name: m for name, m in decays.items() if m != 1.0} == {"ip1.weight": 250.0, "ip1.bias": 0.0}
    for name, spec in alexnet.items():
        assert spec.decay_multiplier == (0.0 if name.endswith("bias") else 1.0)
        assert spec.lr_multiplier == (2.0 if name.endswith("bias") else 1.0)


def test_initial_values_of_caffes_networks() -> None:
    quick = dict(network("caffe_cifar_quick").named_parameters())
    for key, std in {"conv1": 1e-4, "conv2": 0.01, "conv3": 0.01, "ip1": 0.1, "ip2": 0.1}.items():
        values = quick[f"{key}.weight"]
        # Six standard errors of the deviation, seed fixed.
        assert abs(values.std().item() / std - 1) < 6 / (2 * values.numel()) ** 0.5
        assert (quick[f"{key}.bias"] == 0).all()
    alexnet = network("caffe_alexnet", **SMALL["caffe_alexnet"])
    for key, bias in {key: p for key, p in alexnet.named_parameters() if key.endswith("bias")}.items():
        assert (bias == (0.0 if key in ("conv1.bias", "conv3.bias", "fc8.bias") else 0.1)).all()
    narrow = dict(network("narrow_alexnet").named_parameters())
    for key, std, fewer in (("conv1", 0.01, 1), ("conv2", 0.01, 8), ("fc6", 0.005, 288), ("fc7", 0.005, 8)):
        values = narrow[f"{key}.weight"]
        assert abs(values.std().item() / (std * fewer**0.5) - 1) < 6 / (2 * values.numel()) ** 0.5
    google = network("caffe_googlenet", **SMALL["caffe_googlenet"])
    zero = [key for key, p in google.named_parameters() if key.endswith("bias") and (p == 0).all()]
    assert zero == ["aux1.6.bias", "aux2.6.bias", "head.3.bias"]


@pytest.mark.usefixtures("small_networks")
def test_initialisation_depends_on_the_seed_alone() -> None:
    module = build("tiny_bn")
    assert all(p.isnan().all() for p in module.parameters())
    state = torch.get_rng_state()
    initialise(module, 3)
    again = network("tiny_bn", seed=3).double()
    assert torch.equal(state, torch.get_rng_state())
    for one, other in zip(module.parameters(), again.parameters(), strict=True):
        assert torch.equal(one.double(), other)
    doubled = build("tiny_bn").double()
    initialise(doubled, 3)
    for one, other in zip(doubled.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(next(iter(network("tiny_bn", seed=4).parameters())), next(module.parameters()))


@pytest.mark.usefixtures("small_networks")
def test_initialise_resets_running_statistics() -> None:
    module = network("tiny_bn")
    module(examples(module, 4)[0])
    initialise(module, 0)
    buffers = dict(module.named_buffers())
    assert (buffers["norm1.running_mean"] == 0).all()
    assert (buffers["norm1.running_var"] == 1).all()


def test_initialise_refuses_a_foreign_module() -> None:
    with pytest.raises(ValueError, match=r"parameter 0\.weight has no initialiser"):
        initialise(torch.nn.Sequential(torch.nn.Linear(2, 2)), 0)


def mean_loss(outputs: Tensor | tuple[Tensor, ...], targets: Tensor) -> Tensor:
    """Mean cross-entropy; each of GoogLeNet's auxiliary heads counts 0.3."""
    main, *auxiliary = (outputs,) if isinstance(outputs, Tensor) else outputs
    return F.cross_entropy(main, targets) + sum(0.3 * F.cross_entropy(head, targets) for head in auxiliary)


def check_training_step(module: Network, batch: int = 2) -> None:
    inputs, targets = examples(module, batch)
    outputs = module(inputs)
    cost = mean_loss(outputs, targets)
    cost.backward()
    main = outputs if isinstance(outputs, Tensor) else outputs[0]
    assert main.shape == (batch, module.classes, *module.label_shape)
    assert main.dtype == torch.float32
    assert cost.isfinite()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    assert sum(p.grad.abs().sum().item() for p in module.parameters() if p.grad is not None) > 0


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_forward_and_backward(name: str) -> None:
    """Of large networks on small images."""
    check_training_step(network(name, **SMALL.get(name, {})))


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_forward_and_backward_at_full_size(name: str) -> None:
    check_training_step(network(name))


@pytest.mark.parametrize("name", [*LIGHT, "caffe_alexnet", "caffe_googlenet"])
def test_channels_last_changes_nothing(name: str) -> None:
    module = network(name, **SMALL.get(name, {})).eval().double()
    inputs, _ = examples(module, 2, torch.float64)
    expected = module(inputs)
    turned = module.to(memory_format=torch.channels_last)
    got = turned(inputs.to(memory_format=torch.channels_last))
    torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-12)


def test_a_character_is_foretold_from_those_up_to_its_place_alone() -> None:
    module = network("character_transformer")
    codes, _ = examples(module, 1)
    changed = codes.clone()
    changed[..., 40] = (changed[..., 40] + 1) % module.classes
    moved = (module(codes) != module(changed)).any(1)[0]  # [T]
    assert moved.nonzero().flatten().tolist() == list(range(40, 64))
    parts = torch.randn(3, 2, 4, 8, 16, generator=torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(CausalMixing()(*parts), F.scaled_dot_product_attention(*parts, is_causal=True))


def test_googlenet_has_auxiliary_heads_in_training_only() -> None:
    module = network("caffe_googlenet", **SMALL["caffe_googlenet"])
    inputs, targets = examples(module, 2)
    assert [head.shape for head in module(inputs)] == 3 * [(len(targets), module.classes)]
    assert isinstance(module.eval()(inputs), Tensor)
    plain = network("caffe_googlenet", **SMALL["caffe_googlenet"], aux=False)
    assert isinstance(plain(inputs), Tensor)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lenet5", {}, "no network is called 'lenet5'; there are caffe_lenet, "),
        ("resnet20", {"depth": 20}, "network resnet20: .*'depth'; options are classes"),
        ("caffe_alexnet", {"input_size": 8}, r"an input of \(3, 8, 8\) leaves layer .*give a larger input_size"),
        ("caffe_googlenet", {"input_size": 32}, "auxiliary pool .*give a larger input_size"),
        ("digits_lenet", {"classes": 0}, "classes=0 must be at least 1"),
    ],
)
def test_refusals(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(name, **options)
