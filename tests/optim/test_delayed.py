"""Delayed and layer-wise exchange: when segments leave, gradients written where they are summed, what is refused."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import partial

import optim_bodies as bodies
import pytest
import torch
from door import RATE, closure, examples, network, rows, weights
from torch import Tensor, nn

from suite.communication.collectives import Alone, CompletedSum, CountingCollective
from suite.communication.launch import spawn
from suite.optim import DelayedSGD
from suite.optim.vector import Vector
from suite.training.schedules import buckets


@pytest.mark.parametrize("limit", [100, 1600, 10**6])
def test_buckets_cover_everything_from_the_last_parameter_to_the_first(limit: int):
    vector = Vector([list(network().parameters())])
    single = buckets(vector.segments, 4, 0)
    assert single == vector.segments[::-1]
    parts = buckets(vector.segments, 4, limit)
    assert (parts[0].stop, parts[-1].start) == (vector.d, 0)
    assert all(later.start == earlier.stop for later, earlier in itertools.pairwise(parts))
    assert all((part.stop - part.start) * 4 <= limit or part in single for part in parts)
    assert (len(parts) == 1) == (limit == 10**6)


def test_a_bucket_is_filled_to_the_byte_from_behind():
    """Of fifty numbers of four bytes: the last parameter of 10, 20, 30 and 40 stands alone, the next two fill one."""
    vector = Vector([[nn.Parameter(torch.zeros(size)) for size in (10, 20, 30, 40)]])
    assert buckets(vector.segments, 4, 200) == (slice(60, 100), slice(10, 60), slice(0, 10))
    assert buckets(vector.segments, 4, 199) == (slice(60, 100), slice(30, 60), slice(0, 30))


class Noted(CountingCollective):
    """Keeps the numbers of each sum."""

    def start(self, rows, each=None):
        self.sizes.append(rows.shape[-1])
        return super().start(rows, each)


def test_segments_leave_during_backward_in_one_order():
    """When the first layer's gradient arrives, those of all others have left; without layers, nothing has."""
    for layerwise in (True, False):
        module = network()
        opt = DelayedSGD(module, lr=RATE, layerwise=layerwise, fused=False)
        counted, seen = Noted(opt.core.algorithm.collective), []
        counted.sizes = []
        opt.core.algorithm = replace(opt.core.algorithm, collective=counted)
        first = next(module.parameters())
        first.register_post_accumulate_grad_hook(lambda _, counted=counted, seen=seen: seen.extend(counted.sizes))
        inputs, targets = examples()
        opt.step(closure(opt, module, inputs[rows(0)], targets[rows(0)]))
        sizes = [p.numel() for p in module.parameters()][::-1]
        assert counted.sizes == (sizes if layerwise else [sum(sizes)])
        assert seen == (sizes[: len(seen)] if layerwise else [])
        assert len(seen) >= (len(sizes) - 2) * layerwise


@pytest.mark.parametrize("fused", [False, True], ids=["figures' solver", "fused solver"])
@pytest.mark.parametrize(
    "options", [{}, {"delay": 2}, {"layerwise": True}, {"layerwise": True, "delay": 1, "order": "completed"}], ids=str
)
def test_gradients_written_where_they_are_summed_have_the_same_bits(options: dict, fused: bool):
    """They are the parameters' only until the step, as the memory is the sum's from there on, if there is one."""
    ends = []
    for copied in (True, False):
        module = network()
        module[4].bfloat16()  # which a vector of float32 cannot be written by
        forward = lambda x, module=module: module[6](module[5](module[4](module[:4](x).bfloat16()).float()))
        opt = DelayedSGD(module, lr=RATE, momentum=0.9, fused=fused, **options)
        inputs, targets = examples()
        places = set()
        for t in range(12):
            opt.zero_grad(set_to_none=copied)
            nn.functional.cross_entropy(forward(inputs[rows(t)]), targets[rows(t)]).backward()
            places.add(module[0].weight.grad.data_ptr())
            opt.step()
            assert (module[0].weight.grad is None) == (bool(options) and not copied)
        opt.finish()
        ends.append(weights(module))
    assert torch.equal(*ends)
    assert len(places) == options.get("delay", 0) + 1


def test_layer_wise_exchange_notices_a_change_of_gradients_that_have_left():
    for change in (
        lambda opt, module: nn.utils.clip_grad_norm_(module.parameters(), 1e-3),
        lambda opt, module: module.zero_grad(),
    ):
        module = network()
        opt = DelayedSGD(module, lr=RATE, layerwise=True)
        opt.zero_grad(set_to_none=False)
        module(examples()[0]).sum().backward()
        change(opt, module)
        with pytest.raises(ValueError, match="changed between backward and step"):
            opt.step()


@pytest.mark.processes
def test_processes_whose_graphs_differ_meet_in_the_same_sums():
    """And what is written where it is summed is what is copied there, over processes too."""
    first, second = spawn(bodies.different_graphs, 2, timeout=20)
    assert first == second
    assert first["copied"] == first["written"]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("stepped", "options"),
    [(True, {"delay": 1}), (True, {"delay": 2, "layerwise": True}), (False, {"layerwise": True})],
)
def test_a_state_is_loaded_after_what_is_on_its_way_has_landed(stepped: bool, options: dict):
    """Else a sum would land in memory that a later gradient lies in."""
    assert spawn(bodies.rolled_back, 2, stepped, False, options, timeout=20) == [[-2.0] * 3] * 2


@dataclass(frozen=True)
class Awaited(CompletedSum):
    """A sum that is there, and is told whether it was waited for."""

    seen: list[Tensor]

    def wait(self) -> Tensor:
        self.seen.append(self.value)
        return self.value


class Watched(Alone):
    """The one worker, whose sums are under way until they are waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Tensor] = []
        self.awaited: list[Tensor] = []

    def start(self, rows: Tensor, each: int | None = None) -> CompletedSum:
        self.sent.append(value := rows[0])
        return Awaited(value, self.awaited)


def branched(**options) -> tuple[DelayedSGD, nn.Module, Watched]:
    """An optimiser of two layers, of which batches may use the last one alone, and what it sends."""
    module = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    opt, watched = DelayedSGD(module, lr=RATE, fused=False, **options), Watched()
    opt.core.algorithm = replace(opt.core.algorithm, collective=watched)
    return opt, module, watched


@pytest.mark.parametrize("delay", [1, 3])
def test_all_that_is_on_its_way_is_waited_for_before_a_state_is_loaded(delay: int):
    opt, module, watched = branched(delay=delay)
    begun = opt.state_dict()
    for _ in range(delay):
        module(torch.ones(1, 2)).sum().backward()
        opt.step()
        opt.zero_grad()
    assert watched.awaited == []
    opt.load_state_dict(begun)
    assert list(map(id, watched.awaited)) == list(map(id, watched.sent))
    assert len(watched.awaited) == delay


@pytest.mark.parametrize("loaded", [True, False], ids=["a state is loaded", "weights are taken up"])
def test_a_backward_pass_that_no_step_followed_is_sent_whole_and_waited_for_before(loaded: bool):
    """Other processes may have used the layers that this one left out, and one that began none sends none."""
    opt, module, watched = branched(layerwise=True)
    begun = opt.state_dict()
    put = partial(opt.load_state_dict, begun) if loaded else opt.take_up
    put()
    assert watched.sent == []
    module[1](torch.ones(1, 2)).sum().backward()
    assert len(watched.sent) == 2
    put()
    assert [part.numel() for part in watched.sent] == [1, 2, 2, 4]
    assert list(map(id, watched.awaited)) == list(map(id, watched.sent))


@pytest.mark.parametrize("fused", [False, True], ids=["figures' solver", "fused solver"])
def test_to_finish_applies_what_is_under_way_to_the_weights_that_the_module_holds(fused: bool):
    module = nn.Linear(3, 1, bias=False)
    opt = DelayedSGD(module, lr=1.0, delay=2, fused=fused)
    for _ in range(2):
        module(torch.ones(1, 3)).sum().backward()
        opt.step()
        opt.zero_grad()
    with torch.no_grad():
        module.weight.fill_(7)
    with pytest.raises(ValueError, match=r"take_up came with exchanges under way; call finish\(\) first"):
        opt.take_up()
    with pytest.raises(ValueError, match="add_param_group came with exchanges under way"):
        opt.add_param_group({"params": []})
    opt.finish()
    assert module.weight.tolist() == opt.average().weight.tolist() == [[5.0] * 3]
    opt.take_up()
