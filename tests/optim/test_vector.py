"""The vector of the trained parameters: their layouts, what is a view of it, and where a module must lie."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from door import RATE, network
from torch import nn

from suite.communication.group import Group
from suite.optim import DelayedSGD
from suite.optim.module import check_device
from suite.optim.vector import Vector


@pytest.mark.parametrize(
    ("layer", "kept"),
    [
        (nn.Conv2d(3, 4, 2), torch.channels_last),
        (nn.Conv3d(3, 4, 2), torch.channels_last_3d),
        (nn.Linear(3, 4), None),
    ],
    ids=["pictures", "volumes", "rows"],
)
def test_a_parameter_that_fills_its_memory_keeps_its_order_of_coordinates(
    layer: nn.Module, kept: torch.memory_format | None
):
    if kept is not None:
        layer.to(memory_format=kept)
    begun, strides = layer.weight.detach().clone(), layer.weight.stride()
    vector = Vector([list(layer.parameters())])
    assert layer.weight.stride() == strides
    assert torch.equal(layer.weight, begun)
    assert layer.weight.data_ptr() == vector.x.data_ptr()


def test_a_parameter_with_gaps_in_its_memory_is_laid_out_row_by_row():
    wide = torch.arange(12.0).view(3, 4)
    parameter = nn.Parameter(wide[:, ::2])
    vector = Vector([[parameter]])
    assert vector.x.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert parameter.stride() == (2, 1)


def test_on_the_cpu_a_parameter_is_a_view_of_the_vector_wherever_it_starts():
    parameters = [nn.Parameter(torch.ones(size)) for size in (1, 2, 4)]
    vector = Vector([parameters])
    vector.x.copy_(torch.arange(7.0))
    assert [parameter.tolist() for parameter in parameters] == [[0.0], [1.0, 2.0], [3.0, 4.0, 5.0, 6.0]]


@pytest.mark.parametrize("others", [torch.float32, torch.float16], ids=str)
def test_a_parameter_of_a_narrower_type_is_rounded_from_the_vector_at_every_step(others: torch.dtype):
    module = network().to(others)
    module[4].bfloat16()
    opt = DelayedSGD(module, lr=1.0)
    begun = opt.vector.x.clone()
    for _ in range(2):
        for parameter in module.parameters():
            parameter.grad = torch.full_like(parameter, 0.5)
        opt.step()
    torch.testing.assert_close(opt.vector.x, begun - 1)
    assert torch.equal(module[4].weight, opt.vector.views(opt.vector.x)[4].bfloat16())


def test_a_module_that_lies_elsewhere_than_its_process_exchanges_is_refused(monkeypatch: pytest.MonkeyPatch):
    vector = Vector([list(nn.Linear(3, 2).parameters())])
    lone, second = (Group(dist.HashStore(), size - 1, size, 0.1, "gloo") for size in (1, 2))
    monkeypatch.setattr(Group, "device", torch.device("cuda", 1))
    check_device(vector, lone)
    message = (
        r"on cpu, and process 1 exchanges over gloo on cuda:1; move it there with \.to\(suite.optim.device\(\)\)"
    )
    with pytest.raises(ValueError, match=message):
        check_device(vector, second)


@pytest.mark.parametrize("fused", [True, False], ids=["fused solver", "figures' solver"])
def test_weights_written_before_a_group_is_added_are_trained_on(fused: bool):
    module = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    opt = DelayedSGD(module, module[0].parameters(), lr=0.0, fused=fused)
    with torch.no_grad():
        module[0].weight.fill_(7)
    opt.add_param_group({"params": module[1].parameters()})
    module(torch.ones(1, 3)).sum().backward()
    opt.step()
    assert module[0].weight.tolist() == [[7.0] * 3] * 2
    assert opt.average()[0].weight.tolist() == [[7.0] * 3] * 2


def test_a_parameter_that_is_thawed_later_is_trained_once_it_is_added():
    module = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    module[0].requires_grad_(False)
    opt = DelayedSGD(module, lr=RATE)

    def step() -> None:
        opt.zero_grad()
        module(torch.ones(1, 3)).sum().backward()
        opt.step()

    step()
    module[0].requires_grad_(True)
    with pytest.raises(ValueError, match=r"0\.weight was frozen when DelayedSGD was made and is not any more"):
        step()
    opt.add_param_group({"params": module[0].weight})
    with pytest.raises(ValueError, match=r"parameter 0\.bias was frozen when"):
        step()
    opt.add_param_group({"params": module[0].bias})
    begun = module[0].bias.detach().clone()
    step()
    assert not torch.equal(module[0].bias, begun)


def test_a_parameter_that_a_batch_does_not_use_has_no_gradient_left_of_the_batch_before():
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    vector = Vector([list(module.parameters())])
    place = torch.full_like(vector.x, 7.0)
    views = vector.views(place)
    module(torch.ones(1, 2)).sum().backward()
    vector.gradient(views)
    assert torch.equal(place, torch.cat([p.grad.flatten() for p in module.parameters()]))
    module.zero_grad()
    module[1](torch.ones(1, 2)).sum().backward()
    vector.gradient(views)
    assert place.tolist() == [0.0] * 6 + [1.0] * 3
