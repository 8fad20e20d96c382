"""Crops and flips as part of an order: same choices as :class:`CropFlip`, recomputable, and wired into training."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from suite.data.augmentation import Augmentation, Augmented
from suite.data.order import FixedCycle
from suite.data.transforms import CropFlip
from suite.spec import RunSpec
from suite.training.build import assemble
from suite.training.flat import FlatModule
from suite.training.problem import Classification

RULE = CropFlip(crop=6, margin=2)
NUMBERS, WORKERS = torch.tensor([0, 3, 3]), torch.tensor([0, 0, 1])


def pictures():
    return torch.rand(20, 3, 6, 6, generator=torch.Generator().manual_seed(0))


def test_codes_say_what_crop_flip_does():
    order = FixedCycle(20, 4, seed=1)
    codes = Augmented(FixedCycle(20, 4, seed=1), Augmentation(RULE, 6, 6), seed=7).indices(NUMBERS, WORKERS)
    made = Augmentation(RULE, 6, 6)
    examples, top, left, mirror = made.decode(codes)
    assert torch.equal(examples, order.indices(NUMBERS))
    expected = RULE(pictures()[examples], 7, NUMBERS, WORKERS)
    found = made.cut(pictures()[examples.flatten()], top.flatten(), left.flatten(), mirror.flatten())
    assert torch.equal(found.view_as(expected), expected)


def test_choices_depend_on_worker_and_number_and_return_alone():
    order = Augmented(FixedCycle(20, 4, seed=1), Augmentation(RULE, 6, 6), seed=7)
    codes = order.indices(NUMBERS, WORKERS)
    assert not torch.equal(codes[1], codes[2]), "two workers cut the same examples differently"
    assert torch.equal(order.indices(NUMBERS[2:], WORKERS[2:])[0], codes[2])


def test_encode_and_decode_are_inverse_at_the_ends():
    made = Augmentation(RULE, 6, 6)
    for parts in ((0, 0, 0, False), (19, 4, 4, True), (7, 0, 4, True)):
        tensors = [torch.tensor([part]) for part in parts]
        assert [t.item() for t in made.decode(made.encode(*tensors))] == list(parts)


def test_a_crop_has_as_many_places_as_fit_in_the_padded_picture():
    made = Augmentation(CropFlip(crop=3, margin=2), 6, 8)
    assert (made.rows, made.columns) == (8, 10)
    assert Augmentation(CropFlip(crop=6), 6, 6).encode(*torch.zeros(4, 1, dtype=torch.int64)).item() == 0


@pytest.mark.parametrize(("height", "width"), [(6, 6), (7, 6), (6, 7)])
def test_refuses_a_crop_that_does_not_fit(height: int, width: int):
    with pytest.raises(ValueError, match="crop=11 exceeds"):
        Augmentation(CropFlip(crop=11, margin=2), height, width)


def settings(**more):
    return {
        "data": {"name": "colours", "transform": "signed", "examples": 64},
        "model": {"name": "crossbow_resnet32"},
        "algorithm": {"name": "sgd"},
        "descent": {"rule": "caffe"},
        "rate": 0.1,
        "batch": 4,
        "workers": 2,
        "updates": 1,
        "evaluate": {"every": 1},
        **more,
    }


EXECUTION = {"device": "cpu", "precision": "float32", "channels_last": True}


def test_training_reads_augmented_pictures_and_tests_plain_ones():
    plain = assemble(RunSpec("train", settings()).settings, 0, EXECUTION, None)
    spec = RunSpec("train", settings(augment={"crop": 32, "margin": 4}))
    made = assemble(spec.settings, 0, EXECUTION, None)
    numbers, workers = torch.tensor([0, 0]), torch.tensor([0, 1])
    examples, codes = plain.order.indices(numbers, workers), made.order.indices(numbers, workers)
    before, labels = plain.problem.fetch(examples[0])
    after, same = made.problem.fetch(codes[0])
    assert torch.equal(labels, same)
    assert before.shape == after.shape == (4, 3, 32, 32)
    assert not torch.equal(before, after)
    assert torch.equal(plain.test_inputs, made.test_inputs)
    with pytest.raises(ValueError, match="augment: unknown settings"):
        assemble(RunSpec("train", settings(augment={"zoom": 2})).settings, 0, EXECUTION, None)


def test_recomputed_batch_norm_statistics_are_those_of_the_point():
    made = assemble(RunSpec("train", settings()).settings, 0, EXECUTION, None)
    x, inputs = made.x0, made.problem.inputs[:32]
    found = made.problem.recomputed_buffers(x, inputs, chunk=16)
    flat = made.problem.flat
    first = flat.module[0] if not hasattr(flat.module, "conv1") else flat.module.conv1
    flat.load(x)
    with torch.no_grad():
        parts = [first(made.problem.transform(part)) for part in inputs.split(16)]
    mean = torch.stack([part.mean((0, 2, 3)) for part in parts]).mean(0)
    torch.testing.assert_close(found[:16], mean, rtol=1e-4, atol=1e-5)
    assert flat.module.training
    assert torch.equal(flat.buffers, made.problem.b0()), "the module is left as it was"


def test_recomputed_statistics_are_those_without_dropout():
    module = nn.Sequential(nn.Dropout(0.5), nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    pictures = torch.randint(256, (8, 3, 6, 6), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    problem = Classification(FlatModule(module), pictures, torch.zeros(8, dtype=torch.int64), lambda x: x / 256)
    first, again = (problem.recomputed_buffers(problem.flat.point(), pictures) for _ in range(2))
    assert torch.equal(first, again)
    with torch.no_grad():
        torch.testing.assert_close(first[:4], module[1](pictures / 256).mean((0, 2, 3)), rtol=1e-4, atol=1e-5)
    assert all(layer.training for layer in module)
