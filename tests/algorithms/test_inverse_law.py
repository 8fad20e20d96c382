"""Mini-batch SGD by hand, and the closed forms of the inverse law against numeric minimisation."""

from __future__ import annotations

import random
from math import inf, sqrt

import pytest
import torch
from scipy.optimize import minimize_scalar

from reference_impls import inverse_law_model as forms
from reference_impls.inverse_law import SGD
from reference_impls.inverse_law_model import Law, Prices, Recursion, System
from suite.battery.quadratic import close, drive, lockstep
from suite.communication.collectives import Local
from suite.training.optimizers import CaffeSGD


def test_sgd_by_hand():
    """Two workers, gradients 1 and 3, rate 0.1, Caffe momentum 0.5: v = 0.2 then 0.3; x = 1, 0.8, 0.5."""
    algorithm = SGD(CaffeSGD(0.5), Local(2))
    state = algorithm.init(torch.ones(1))
    for expected in (0.8, 0.5):
        state = algorithm.update(state, lockstep(2, 0), torch.zeros(2), torch.tensor([[4.0]]), torch.tensor(0.1))
        assert state.x.item() == pytest.approx(expected)


def test_workers_equal_one_on_the_joint_batch():
    optimizer = CaffeSGD(0.9, 1e-3)
    close(drive(SGD(optimizer, Local(4)), 100).x, drive(SGD(optimizer, Local(1)), 100).x)


def draws(count):
    draw = random.Random(0)
    for _ in range(count):
        law = Law(10 ** draw.uniform(1, 4), 10 ** draw.uniform(2, 6))
        system = System(
            10 ** draw.uniform(-6, -3),
            10 ** draw.uniform(0, 2),
            10 ** draw.uniform(-5, -1),
            draw.choice(["all_reduce", "server"]),
        )
        yield law, system, draw.choice([1, 2, 3, 8, 64, 1024])


def test_optimum_equals_the_numeric_minimum():
    regimes = set()
    for law, system, learners in draws(500):
        knee = system.knee * learners
        best = forms.optimal_batch(law, system, learners)

        def seconds(log_batch, law=law, system=system, learners=learners):
            return forms.convergence_seconds(law, system, 10**log_batch, learners)

        found = minimize_scalar(seconds, bounds=(-2, 12), method="bounded", options={"xatol": 1e-10})
        assert forms.minimal_seconds(law, system, learners) == pytest.approx(found.fun, rel=1e-6)
        assert forms.convergence_seconds(law, system, best, learners) == pytest.approx(
            forms.minimal_seconds(law, system, learners), rel=1e-12
        )
        regimes.add((best > knee, system.topology))
    assert len(regimes) == 4


def test_without_noise_no_batch_pays_for_its_exchange():
    """alpha = 0: updates do not fall with the batch, so the smallest one that fills the learners is the best."""
    law, system = Law(100.0, 0.0), System(1e-3, 32.0, 0.5)
    assert forms.communication_bound_batch(law, system, 4) == 0.0
    assert forms.optimal_batch(law, system, 4) == 4 * 32.0


def test_one_learner_is_best_at_the_knee():
    law, system = Law(100, 5000), System(1e-3, 32, 0.5)
    assert forms.optimal_batch(law, system) == 32
    assert forms.minimal_seconds(law, system) == pytest.approx(1e-3 * (100 * 32 + 5000))
    assert system.exchange(1) == 0


def test_one_learner_has_a_best_batch_under_any_fitted_floor():
    """The paper fits floors below zero; only with something to exchange do they leave no finite optimum."""
    assert forms.optimal_batch(Law(-5, 10), System(1, 32, 1)) == 32


def test_times_of_no_stated_number_of_learners_are_those_of_one():
    law, system = Law(100, 5000), System(1e-3, 32, 0.5)
    assert forms.convergence_seconds(law, system, 64) == forms.convergence_seconds(law, system, 64, 1)


def test_a_system_of_no_stated_exchange_exchanges_for_nothing():
    assert System(1, 1).exchange(8) == 0


def test_a_floor_below_one_update_has_a_best_batch_too():
    """sqrt(2 x 1 x 2 / (0.5 x 2)) = 2; the exchange takes a second exactly."""
    assert forms.communication_bound_batch(Law(0.5, 2.0), System(2.0, 0.1, 1.0), 2) == 2


def test_many_learners_approach_the_floor_and_weak_scaling():
    law, system = Law(100, 5000), System(1e-3, 32, 0.5)
    assert forms.minimal_seconds(law, system, 10**9) == pytest.approx(100 * (0.032 + 0.5), rel=1e-6)
    turn = forms.weak_scaling_is_optimal_from(law, system)
    assert turn == pytest.approx(5000 * 0.5 / (100 * 1e-3 * 32**2))
    for learners in (int(turn) + 1, 100, 1000):
        assert forms.minimal_seconds(law, system, learners) == pytest.approx(
            forms.convergence_seconds(law, system, 32 * learners, learners), rel=1e-12
        )
    below = int(turn) - 1
    assert forms.optimal_batch(law, system, below) > 32 * below
    assert forms.minimal_seconds(law, system, below) < forms.convergence_seconds(law, system, 32 * below, below)


def test_time_to_converge_by_hand():
    """(10 + 20 / 8) updates of 2 x 4 + 5 seconds on two learners, of 2 x 8 on one, which exchanges nothing."""
    law, system = Law(10, 20), System(2.0, 3, 5.0)
    assert [forms.convergence_seconds(law, system, 8, p) for p in (1, 2)] == [12.5 * 16, 12.5 * 13]


def test_strong_scaling_keeps_the_updates_and_weak_scaling_the_time_of_one():
    law, system, learners = Law(100, 5000), System(1e-3, 16, 0.5), [2**k for k in range(1, 10)]
    for p in learners:
        updates = forms.convergence_seconds(law, system, 4096, p) / system.update(4096, p)
        assert updates == pytest.approx(law.updates(4096), rel=1e-12)
        assert system.update(32 * p, p) == pytest.approx(system.update(64, 2), rel=1e-12)
        assert forms.convergence_seconds(law, system, 32 * p, p) > law.floor * system.update(32 * p, p)
    updates = [law.updates(32 * p) for p in learners]
    assert updates == sorted(updates, reverse=True)
    assert system.compute(-(-100 // 3)) > system.compute(100 / 3)  # whole examples: the fullest learner decides


def test_while_communication_counts_the_best_batch_grows_as_the_root_of_the_learners():
    law, system = Law(100, 5e6), System(1e-3, 1, 0.5)
    assert forms.optimal_batch(law, system, 16) / forms.optimal_batch(law, system, 4) == pytest.approx(2, rel=1e-12)


def test_a_lower_floor_gains_more_from_many_learners():
    system = System(1e-3, 16)
    gains = [
        forms.minimal_seconds(law, system, 1) / forms.minimal_seconds(law, system, 512)
        for law in (Law(100, 5000), Law(50, 5000))
    ]
    assert gains[0] < gains[1]


def test_compute_time_has_a_knee():
    system = System(2.0, 10)
    assert [system.compute(share) for share in (1, 10, 20)] == [20, 20, 40]


def test_exchange_time_by_topology():
    assert [System(1, 1, 3).exchange(p) for p in (1, 2, 10)] == [0, 3, 3]
    assert [System(1, 1, 3, "server").exchange(p) for p in (1, 2, 10)] == [0, 6, 30]


def test_server_optimum_grows_linearly_with_the_learners():
    law, system = Law(100, 5e6), System(1e-3, 1, 0.5, "server")
    batches = [forms.optimal_batch(law, system, p) for p in (2, 4, 8)]
    assert batches == pytest.approx([p * sqrt(5e6 * 0.5 / (100 * 1e-3)) for p in (2, 4, 8)])


def test_strong_scaling_bottoms_where_each_learner_has_its_knee():
    law, system = Law(100, 5000), System(1e-3, 16, 1e-3)
    seconds = [forms.convergence_seconds(law, system, 512, p) for p in (2, 8, 31, 32, 33, 100)]
    assert seconds[0] > seconds[1] > seconds[2] > seconds[3]
    assert seconds[3] == seconds[4] == seconds[5]


def test_optimal_scaling_is_never_beaten():
    for law, system, learners in draws(300):
        best = forms.minimal_seconds(law, system, learners) * (1 - 1e-12)
        for batch in (1, 10, 100, 1000, 10**5):
            assert best <= forms.convergence_seconds(law, system, batch, learners)
            assert best <= forms.convergence_seconds(law, system, batch * learners, learners)


def test_validation_by_hand():
    """(10 + 20 / 4) updates of (2 x 2 + 1) + 0.5 x 100 / 2 / 5 seconds."""
    seconds = forms.validated_seconds(
        Law(10, 20),
        System(2, 1, 1),
        4,
        2,
        validation_examples=100,
        updates_per_validation=5,
        validation=System(0.5, 1),
    )
    assert seconds == 15 * (5 + 5)


def test_mix_of_hardware_equals_the_numeric_minimum():
    draw, regimes = random.Random(1), set()
    for law, system, learners in draws(300):
        if learners == 1:
            continue
        prices, money = Prices(10 ** draw.uniform(-4, 0), 10 ** draw.uniform(-3, 1)), 10 ** draw.uniform(0, 3)
        compute, bandwidth = forms.best_mix(law, prices, system.knee, learners, money)
        assert compute + bandwidth == pytest.approx(money)

        def seconds(log_ratio, law=law, prices=prices, knee=system.knee, learners=learners, money=money):
            spent = money * 10**log_ratio / (1 + 10**log_ratio)
            return forms.minimal_seconds(law, prices.system(spent, money - spent, knee), learners)

        found = minimize_scalar(seconds, bounds=(-6, 6), method="bounded", options={"xatol": 1e-9})
        built = prices.system(compute, bandwidth, system.knee)
        assert forms.minimal_seconds(law, built, learners) == pytest.approx(found.fun, rel=1e-6)
        regimes.add(forms.optimal_batch(law, built, learners) > system.knee * learners)
    assert regimes == {True, False}


def test_a_mix_by_hand_below_one_update_and_one_update_example():
    """alpha = N_inf = 1/2, two learners: r^3 = 1 / 2, and r is above 2 knee^2, so communication bounds the batch."""
    compute, bandwidth = forms.best_mix(Law(0.5, 0.5), Prices(1, 1), 0.1, 2, 3.0)
    assert compute / bandwidth == pytest.approx(0.5 ** (1 / 3))
    assert compute + bandwidth == pytest.approx(3.0)


@pytest.mark.parametrize("rate", [1e-2, 1e-3])
@pytest.mark.parametrize("target", [0.1, 0.3])
@pytest.mark.parametrize("share", [0.1, 0.4, 0.8, 0.95])
def test_bound_covers_the_recursion_tightly(rate, target, share):
    noise, excess, count = share * target, 1.0, 0
    bound = Recursion(rate, noise).updates(1.0, target)
    while excess > target:
        before, excess = excess, excess - rate * (excess**2 - noise**2)
        assert noise < excess < before  # it falls, and stays above its floor
        count += 1
    assert count - 1 <= bound <= 1.01 * count


@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_the_bound_is_finite_only_above_the_noise(noise):
    assert Recursion(1e-3, noise).updates(2.3, noise * 1.001) < float("inf")
    for target in (noise, 0.9 * noise):
        with pytest.raises(ValueError, match="noise"):
            Recursion(1e-3, noise).updates(2.3, target)


def test_small_noise_form_is_the_inverse_law_and_fails_where_it_must():
    rate, target, theta = 1e-3, 0.1, 1.0
    law = forms.law_of_bound(rate, theta, 1.0, target)
    least = forms.smallest_batch(theta, target)
    assert least == pytest.approx(100)

    def exact(batch):
        return Recursion(rate, sqrt(theta / batch)).updates(1.0, target)

    assert law.updates(least / 0.3**2) == pytest.approx(exact(least / 0.3**2), rel=6e-3)
    assert law.updates(least / 0.95**2) < 0.7 * exact(least / 0.95**2)
    with pytest.raises(ValueError, match="larger batch"):
        exact(least)


def test_the_small_noise_form_by_hand():
    """A = 2 - 1/2, B = 8 - 1/8: A / lambda = 15, theta B / (3 lambda) = 3 x 7.875 / 0.3."""
    law = forms.law_of_bound(0.1, 3.0, start=2.0, target=0.5)
    assert (law.floor, law.sensitivity) == pytest.approx((15.0, 78.75))


@pytest.mark.parametrize(
    ("constants", "rate", "variance"),
    [((1.0, 1.0, 2.0, 3.0), 0.5 / 4, 4 * 3), ((0.5, 3.0, 3.0, 2.0), 0.5 * 0.25 / 9, 1.5 * 9 * 2 / 0.5)],
)
def test_constants_of_the_bound_by_hand(constants, rate, variance):
    """lambda = eta (1 - eta L / 2) / R^2 and sigma^2 = eta L R^2 phi^2 / (2 - eta L)."""
    bound = Recursion.of(*constants)
    assert (bound.rate, bound.noise) == pytest.approx((rate, sqrt(variance)))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: forms.optimal_batch(Law(-5, 10), System(1, 1, 1), 2),
        lambda: forms.communication_bound_batch(Law(0, 10), System(1, 1, 1), 2),
        lambda: forms.best_mix(Law(0, 10), Prices(1, 1), 1, 2, 1),
        lambda: forms.best_mix(Law(10, 0), Prices(1, 1), 1, 2, 1),
        lambda: forms.best_mix(Law(10, 10), Prices(1, 1), 1, 1, 1),
        lambda: Recursion.of(0.0, 1.0, 2.0, 3.0),
        lambda: Recursion.of(2.0, 1.0, 2.0, 3.0),
        lambda: Recursion(1e-3, 0.0).updates(1.0, 0.1),
        lambda: System(0, 1),
        lambda: System(1, 0),
        lambda: System(1, 1, -inf),
        lambda: System(1, 1, 1, "ring"),
    ],
)
def test_refuses_what_has_no_answer(ask):
    with pytest.raises(ValueError, match="inverse_law: "):
        ask()
