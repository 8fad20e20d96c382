"""What is switched off changes no update beyond rounding, and its ratio is paired with its own way."""

from __future__ import annotations

import pytest
import torch

from benchmarks import ablation, ours
from benchmarks.workloads import named
from suite.training.numerics import apply

LOOP = {"path": "looped", "channels_last": True, "onednn": True, "width": 1, "precision": "float32", "device": "cpu"}
LOOP |= {"threads": 1, "deterministic": True}


@pytest.mark.parametrize("name", ["LeNet/MNIST, M=1", "SMA LeNet, b=16, k=4"])
@pytest.mark.parametrize("what", [name for name in ablation.SWITCHES if "all that" not in name])
def test_what_is_switched_off_leaves_the_updates_what_they_were(what, name):
    apply(LOOP)
    plain, changed = (ours.session(named(name), LOOP) for _ in range(2))
    update = ablation.SWITCHES[what](changed)
    if plain.step is None and what == "gradient and step in one":
        assert update is None  # averaging has no such update
        return
    for one in (ablation.whole(plain), update):
        for _ in range(3):
            one()
    found, wanted = (made.algorithm.model(made.state) for made in (changed, plain))
    assert changed.t == plain.t == 3
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-7)


def test_gradient_and_step_alone_move_the_weights():
    apply(LOOP)
    made = ours.session(named("LeNet/MNIST, M=1"), LOOP)
    before = made.state.x.clone()
    ablation.without_bookkeeping(made)()
    assert not torch.equal(before, made.state.x)
    assert made.t == 0


def test_a_ratio_is_paired_round_by_round_with_the_way_that_it_belongs_to():
    base = [1.0, 2.0, 4.0] * 5
    seconds = {("machine code", ""): base, ("autograd", ""): [10.0] * 15}
    seconds |= {("machine code", "x"): [1.5 * b for b in base], ("autograd", "x"): [20.0] * 15}
    lines = ablation.rows("LeNet", seconds)
    assert lines[2] == "| LeNet | machine code | x | 1.500 | 1.500 to 1.500 |"
    assert lines[3] == "| LeNet | autograd | x | 2.000 | 2.000 to 2.000 |"
    assert "nothing: 2e+03 ms" in lines[0]
    assert ablation.table({"LeNet": seconds}, 15).count("\n| LeNet") == 4


def test_an_interval_holds_the_median_and_is_wider_for_scattered_ratios():
    middle, low, high = ablation.interval([1.0, 1.1, 0.9, 1.2, 0.8, 1.05, 0.95] * 3)
    assert low < middle < high
    assert middle == 1.0
