"""Crops and flips as part of an order: same choices as :class:`CropFlip`, recomputable, and wired into training."""

from __future__ import annotations

import pytest
import torch

from suite.data.order import FixedCycle
from suite.data.transforms import Augmentation, Augmented, CropFlip
from suite.spec import RunSpec
from suite.training.build import assemble, make_augmentation, random_classification

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
    found = made.rule.cut(pictures()[examples.flatten()], top.flatten(), left.flatten(), mirror.flatten())
    assert torch.equal(found.view_as(expected), expected)


@pytest.mark.parametrize(("height", "width"), [(6, 6), (7, 6), (6, 7)])
def test_refuses_a_crop_that_does_not_fit(height: int, width: int):
    with pytest.raises(ValueError, match="crop=11 exceeds"):
        Augmentation(CropFlip(crop=11, margin=2), height, width)


def test_refuses_to_crop_the_rows_of_a_table():
    with pytest.raises(ValueError, match=r"augment crops pictures \[C, H, W\], not examples of shape \(7,\)"):
        make_augmentation(settings(augment={"crop": 4}), (7,))


def settings(**more):
    return {
        "data": {"name": "digits", "transform": "signed", "size": 32, "examples": 64},
        "model": {"name": "lenet_small"},
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
    assert before.shape == after.shape == (4, 1, 32, 32)
    assert not torch.equal(before, after)
    assert torch.equal(plain.test_inputs, made.test_inputs)
    with pytest.raises(ValueError, match="augment: got an unexpected keyword argument 'zoom'"):
        assemble(RunSpec("train", settings(augment={"crop": 32, "zoom": 2})).settings, 0, EXECUTION, None)


def test_recomputed_batch_norm_statistics_are_those_of_the_point():
    problem = random_classification({"name": "crossbow_resnet32"}, 32, EXECUTION, channels_last=True)
    flat, inputs = problem.flat, problem.inputs
    found = problem.recomputed_buffers(flat.point(), inputs, chunk=16)
    with torch.no_grad():
        parts = [flat.module.conv1(problem.transform(part)) for part in inputs.split(16)]
    mean = torch.stack([part.mean((0, 2, 3)) for part in parts]).mean(0)
    torch.testing.assert_close(found[:16], mean, rtol=1e-4, atol=1e-5)
    assert flat.module.training
    assert torch.equal(flat.buffers, problem.b0()), "the module is left as it was"
