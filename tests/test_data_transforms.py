"""Transforms and augmentation, against their definitions and a picture-by-picture twin."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from suite.data.transforms import RULES, CropFlip, centre_crop, fit

SCALES: list[tuple[str, float, float]] = [("scale", 0, 256), ("unit", 0, 255), ("signed", 127.5, 127.5)]


@pytest.fixture(scope="module")
def pixels() -> Tensor:
    return torch.randint(0, 256, (60, 3, 12, 12), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


@pytest.mark.parametrize(("rule", "shift", "divisor"), SCALES)
def test_fixed_rules(pixels: Tensor, rule: str, shift: float, divisor: float) -> None:
    expected = (pixels.double() - shift) / divisor
    found = fit(rule, pixels)(pixels)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), expected, rtol=0, atol=2**-22)  # two roundings near 1


def test_mean_image_is_taken_per_pixel_and_unscaled(pixels: Tensor) -> None:
    found = fit("mean-image", pixels)(pixels).double()
    expected = pixels.double() - pixels.double().mean(0)
    assert torch.allclose(found, expected, rtol=0, atol=2**-15)  # float32 near 255
    assert float(found.mean(0).abs().max()) < 1e-4


def test_pictures_are_enlarged_between_their_pixels_after_scaling() -> None:
    columns = torch.tensor([[0, 100], [0, 100]], dtype=torch.uint8).expand(3, 1, 2, 2)
    found = replace(fit("unit", columns), enlarge=4)(columns)
    assert found.shape == (3, 1, 4, 4)
    assert torch.allclose(255 * found, torch.tensor([0.0, 25.0, 75.0, 100.0]).expand(3, 1, 4, 4))


@pytest.mark.parametrize(("rule", "over"), [("standardise", (0, 2, 3)), ("standardise-global", (0, 1, 2, 3))])
def test_standardised_training_sets_have_mean_0_and_deviation_1(
    pixels: Tensor, rule: str, over: tuple[int, ...]
) -> None:
    tinted = pixels // torch.tensor([1, 2, 4], dtype=torch.uint8)[:, None, None]
    found = fit(rule, tinted)(tinted).double()
    assert float(found.mean(over).abs().max()) < 1e-6
    assert float((found.var(over, correction=0) - 1).abs().max()) < 1e-5
    if rule == "standardise-global":  # the tint must survive
        assert float(found.mean((0, 2, 3)).abs().min()) > 0.1


@pytest.mark.parametrize("rule", RULES)
def test_a_column_of_a_table_is_prepared_as_a_channel_is(pixels: Tensor, rule: str) -> None:
    rows = pixels.flatten(1)
    channels = rows[..., None, None]
    torch.testing.assert_close(fit(rule, rows)(rows), fit(rule, channels)(channels)[..., 0, 0])


def test_statistics_do_not_depend_on_how_the_set_is_cut(pixels: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fit("standardise", pixels)
    monkeypatch.setattr("suite.data.transforms._FIT_ROWS", 7)
    assert torch.equal(fit("standardise", pixels).shift, whole.shift)
    assert torch.equal(fit("standardise", pixels).scale, whole.scale)


def test_padding_is_zero_after_scaling(pixels: Tensor) -> None:
    found = fit("signed", pixels, size=16)(pixels)
    assert found.shape == (60, 3, 16, 16)
    assert torch.equal(found[..., 2:-2, 2:-2], fit("signed", pixels)(pixels))
    frame = found.clone()
    frame[..., 2:-2, 2:-2] = 0
    assert not frame.any()


def twin(inputs: Tensor, augment: CropFlip, top: Tensor, left: Tensor, mirror: Tensor) -> Tensor:
    """The augmentation, one picture and one step at a time."""
    batches = []
    for n in range(inputs.shape[0]):
        batch = []
        for b in range(inputs.shape[1]):
            channels, height, width = inputs.shape[2:]
            canvas = torch.zeros(channels, height + 2 * augment.margin, width + 2 * augment.margin).to(inputs)
            canvas[:, augment.margin : augment.margin + height, augment.margin : augment.margin + width] = inputs[
                n, b
            ]
            row, column = int(top[n, b]), int(left[n, b])
            picture = canvas[:, row : row + augment.crop, column : column + augment.crop]
            batch.append(picture.flip(-1) if bool(mirror[n, b]) else picture)
        batches.append(torch.stack(batch))
    return torch.stack(batches)


@pytest.mark.parametrize("augment", [CropFlip(12, 4), CropFlip(9), CropFlip(12, 4, flip=False), CropFlip(12)])
def test_augmentation_equals_its_slow_twin(pixels: Tensor, augment: CropFlip) -> None:
    inputs = fit("signed", pixels)(pixels).view(3, 20, 3, 12, 12)
    numbers, workers = torch.tensor([4, 0, 4]), torch.tensor([0, 1, 1])
    found = augment(inputs, 11, numbers, workers)
    assert torch.equal(found, twin(inputs, augment, *augment.choices(12, 12, 20, 11, numbers, workers)))
    assert found.is_contiguous()


def test_augmentation_of_a_batch_depends_on_seed_worker_and_number_alone(pixels: Tensor) -> None:
    inputs = fit("signed", pixels)(pixels).view(3, 20, 3, 12, 12)
    augment = CropFlip(12, 4)
    together = augment(inputs, 11, torch.tensor([4, 5, 6]))
    for n in range(3):
        assert torch.equal(augment(inputs[n : n + 1], 11, torch.tensor([4 + n]))[0], together[n])
    same = inputs[:1].expand(3, *inputs.shape[1:])
    assert not torch.equal(*augment(same, 11, torch.tensor([4, 5, 6]))[:2])
    assert not torch.equal(augment(same[:1], 11, torch.tensor([4])), augment(same[:1], 12, torch.tensor([4])))
    one, other = augment(same[:2], 11, torch.tensor([4, 4]), torch.tensor([0, 1]))
    assert not torch.equal(one, other)


def test_every_offset_and_both_mirrors_are_equally_frequent() -> None:
    top, left, mirror = CropFlip(12, 4).choices(12, 12, 500, 0, torch.arange(100))
    # 50,000 joint draws over 9 x 9 x 2 = 162 cells, chi-square of 161 degrees of freedom:
    # mean 161, deviation 18; above 260 with probability below 1e-6
    cells = ((top * 9 + left) * 2 + mirror.long()).flatten().bincount(minlength=162).double()
    expected = 50_000 / 162
    assert len(cells) == 162
    assert float(((cells - expected) ** 2 / expected).sum()) < 260


def test_centre_crop_is_the_middle(pixels: Tensor) -> None:
    assert torch.equal(centre_crop(pixels, 8), pixels[..., 2:10, 2:10])
    assert torch.equal(centre_crop(pixels, 12), pixels)


def test_what_does_not_fit_is_refused(pixels: Tensor) -> None:
    with pytest.raises(ValueError, match=r"transform 'whiten' does not exist; choose one of .*scale"):
        fit("whiten", pixels)
    with pytest.raises(ValueError, match="12x12 cannot be padded equally to size=15"):
        fit("scale", pixels, size=15)
    with pytest.raises(ValueError, match="size=10"):
        fit("scale", pixels, size=10)
    with pytest.raises(ValueError, match="deviation of the pixels, which is 0"):
        fit("standardise", torch.zeros(4, 1, 2, 2, dtype=torch.uint8))
    with pytest.raises(ValueError, match="got no pictures"):
        fit("mean-image", pixels[:0])
    with pytest.raises(ValueError, match="crop=13 exceeds pictures of 12x12"):
        CropFlip(13)(pixels[None], 0, torch.tensor([0]))
    with pytest.raises(ValueError, match="crop=13 exceeds"):
        centre_crop(pixels, 13)
    with pytest.raises(ValueError, match="margin=-1"):
        CropFlip(3, -1)
    with pytest.raises(ValueError, match="crop=0 must be at least 1"):
        CropFlip(0)
    assert CropFlip(1)(pixels[None], 0, torch.tensor([0])).shape[-2:] == (1, 1)
    assert set(RULES) >= {"scale", "mean-image", "standardise", "signed"}
