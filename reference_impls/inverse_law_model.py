"""The time to converge as a function of mini-batch, learners and hardware: the inverse law's closed forms.

Citation in :mod:`reference_impls.inverse_law`. The formulas are rebuilt from what the paper's text says each
one states. Plain numbers in, plain numbers out.

Update rules, with M examples per update over P learners:

    T_conv    = N_update T_update                                                            (Eq. 1)
    N_update  = N_inf + alpha / M                                                            (Eqs. 2, 13)
    T_update  = Gamma(M / P) + Delta(P)                                                      (Eq. 3)
    Gamma(m)  = gamma max(m, M_T)                                                            (Eq. 4)
    Delta(1)  = 0;  Delta(P) = delta (all-reduce) or delta P (parameter server)
    T_conv    = (N_inf + alpha / M) [gamma max(M / P, M_T) + Delta(P)]                       (Eqs. 5, 7)
    T_conv    = N_update [T_update + Gamma_CV(M_CV / P) / N_CV]                              (Eq. 6)
    M_opt(P)  = max( sqrt(alpha Delta(P) P / (N_inf gamma)), M_T P );  M_opt(1) = M_T        (Eqs. 8, 9)
    T_min(P)  = ( sqrt(N_inf Delta(P)) + sqrt(alpha gamma / P) )^2 where the square root is the larger,
              = (N_inf + alpha / (M_T P)) (gamma M_T + Delta(P)) elsewhere                   (Eq. 10)
    sum_i C_i = C;  d T_min / d C_i equal for all i                                          (Eqs. 11, 12)

    paper    | code                | unit
    N_inf    | floor               | updates
    alpha    | sensitivity         | updates x examples
    M, P     | batch, learners     | examples, learners
    gamma    | seconds_per_example | seconds/example
    M_T      | knee                | examples, the least that fill a learner
    delta    | exchange_seconds    | seconds
    C_gamma  | compute             | money spent on compute; gamma = a / C_gamma
    C_delta  | bandwidth           | money spent on bandwidth; delta = b / C_delta

Differs from the paper: nothing known; M is continuous and loads are even, as there. Where N_inf is not
positive (the paper fits one such value) several learners have no finite optimum; asking for it is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p, sqrt
from typing import Literal


@dataclass(frozen=True)
class Law:
    """N_update(M), Eq. 2."""

    floor: float  # N_inf, updates
    sensitivity: float  # alpha, updates x examples

    def updates(self, batch: float) -> float:
        return self.floor + self.sensitivity / batch


@dataclass(frozen=True)
class System:
    """T_update(M, P), Eqs. 3-4. Raises ValueError unless the first two are positive and the third is not
    negative."""

    seconds_per_example: float  # gamma
    knee: float  # M_T, examples
    exchange_seconds: float = 0.0  # delta
    topology: Literal["all_reduce", "server"] = "all_reduce"

    def __post_init__(self) -> None:
        if not (self.seconds_per_example > 0 and self.knee > 0 and self.exchange_seconds >= 0):
            raise ValueError(
                f"inverse_law: seconds_per_example={self.seconds_per_example} and knee={self.knee} must be "
                f"positive and exchange_seconds={self.exchange_seconds} not negative"
            )
        if self.topology not in ("all_reduce", "server"):
            raise ValueError(f"inverse_law: topology={self.topology!r} must be 'all_reduce' or 'server'")

    def compute(self, share: float) -> float:
        """Gamma: seconds for a learner's ``share`` of a batch."""
        return self.seconds_per_example * max(share, self.knee)

    def exchange(self, learners: int) -> float:
        """Delta: seconds to exchange gradients."""
        if learners == 1:
            return 0.0
        return self.exchange_seconds * (learners if self.topology == "server" else 1)

    def update(self, batch: float, learners: int) -> float:
        """Seconds per update."""
        return self.compute(batch / learners) + self.exchange(learners)


def convergence_seconds(law: Law, system: System, batch: float, learners: int = 1) -> float:
    """Eqs. 5 and 7; strong scaling keeps ``batch``, weak scaling keeps batch / learners."""
    return law.updates(batch) * system.update(batch, learners)


def validated_seconds(
    law: Law,
    system: System,
    batch: float,
    learners: int,
    *,
    validation_examples: float,
    updates_per_validation: float,
    validation: System,
) -> float:
    """Eq. 6: every so many updates the learners share a validation set; ``validation`` times its examples."""
    extra = validation.compute(validation_examples / learners) / updates_per_validation
    return law.updates(batch) * (system.update(batch, learners) + extra)


def communication_bound_batch(law: Law, system: System, learners: int) -> float:
    """The square root of Eq. 9, in examples. Raises ValueError if it does not exist."""
    exchange = system.exchange(learners)
    if exchange == 0:
        return 0.0
    if not (law.floor > 0 and law.sensitivity >= 0):
        raise ValueError(
            f"inverse_law: floor={law.floor} and sensitivity={law.sensitivity} give {learners} learners no "
            "finite best batch; floor must be positive and sensitivity not negative: fit the law again "
            "over more or larger batches"
        )
    return sqrt(law.sensitivity * exchange * learners / (law.floor * system.seconds_per_example))


def optimal_batch(law: Law, system: System, learners: int = 1) -> float:
    """M_opt in examples (Eqs. 8 and 9)."""
    return max(communication_bound_batch(law, system, learners), system.knee * learners)


def minimal_seconds(law: Law, system: System, learners: int = 1) -> float:
    """T_min (Eq. 10), which optimal scaling takes: M chosen for every P."""
    exchange, gamma, knee = system.exchange(learners), system.seconds_per_example, system.knee
    if communication_bound_batch(law, system, learners) > knee * learners:
        return (sqrt(law.floor * exchange) + sqrt(law.sensitivity * gamma / learners)) ** 2
    return (law.floor + law.sensitivity / (knee * learners)) * (gamma * knee + exchange)


def weak_scaling_is_optimal_from(law: Law, system: System) -> float:
    """P* = alpha delta / (N_inf gamma M_T^2) learners, with an all-reduce; below it M_opt exceeds M_T P."""
    return (law.sensitivity * system.exchange_seconds) / (law.floor * system.seconds_per_example * system.knee**2)


@dataclass(frozen=True)
class Prices:
    """What money buys: gamma = compute_price / money, delta = bandwidth_price / money."""

    compute_price: float  # a, money x seconds/example
    bandwidth_price: float  # b, money x seconds

    def system(self, compute: float, bandwidth: float, knee: float) -> System:
        return System(self.compute_price / compute, knee, self.bandwidth_price / bandwidth)


def best_mix(law: Law, prices: Prices, knee: float, learners: int, money: float) -> tuple[float, float]:
    """Money for (compute, bandwidth) that minimises T_min with an all-reduce, learners > 1 (Eqs. 11, 12).

    With r = C_gamma / C_delta, marginal gains balance at r^3 = alpha a / (P N_inf b) where the batch is bound
    by communication (r above P N_inf a M_T^2 / (alpha b)), and at r^2 = a M_T / b elsewhere. T_min has a
    continuous slope and one minimum, so one of the two lies in its own region.
    Raises ValueError unless floor and sensitivity are positive and learners > 1.
    """
    if not (law.floor > 0 and law.sensitivity > 0 and learners > 1):
        raise ValueError(
            f"inverse_law: a mix needs positive floor={law.floor} and sensitivity={law.sensitivity}, and "
            f"more than one learner, got {learners}"
        )
    a, b = prices.compute_price, prices.bandwidth_price
    boundary = learners * law.floor * a * knee**2 / (law.sensitivity * b)
    bound = (law.sensitivity * a / (learners * law.floor * b)) ** (1 / 3)
    ratio = bound if bound > boundary else sqrt(a * knee / b)
    return money * ratio / (1 + ratio), money / (1 + ratio)


@dataclass(frozen=True)
class Recursion:
    """The convex bound: Delta_{k+1} = Delta_k - lambda (Delta_k^2 - sigma^2) on the excess loss.

    For w_{k+1} = w_k - eta (grad f + xi) with E xi = 0, Var xi <= phi^2, an L-Lipschitz gradient and
    |w_k - w*| <= R. It bounds the mean excess from above, so the counts below bound updates from above.
    """

    rate: float  # lambda, 1 / loss
    noise: float  # sigma, loss; falls as 1 / sqrt(M)

    @classmethod
    def of(cls, eta: float, lipschitz: float, radius: float, noise_variance: float) -> Recursion:
        """lambda = eta (1 - eta L / 2) / R^2, sigma^2 = eta L R^2 phi^2 / (2 - eta L).

        Raises ValueError unless 0 < eta L < 2.
        """
        step = eta * lipschitz
        if not 0 < step < 2:
            raise ValueError(f"inverse_law: eta L = {step} must lie in (0, 2); choose eta below {2 / lipschitz}")
        return cls(eta * (1 - step / 2) / radius**2, sqrt(step * radius**2 * noise_variance / (2 - step)))

    def updates(self, start: float, target: float) -> float:
        """An N from which on Delta_N <= target, given Delta_0 = start.

        Raises ValueError unless noise < target < start: the recursion never falls below its noise.
        """
        s = self.noise
        if not 0 < s < target < start:
            raise ValueError(
                f"inverse_law: noise={s} must be positive and below target={target}, and that below "
                f"start={start}; a larger batch lowers the noise"
            )
        return log1p(2 * s * (start - target) / ((target - s) * (start + s))) / log1p(2 * self.rate * s)


def law_of_bound(rate: float, noise_squared_times_batch: float, start: float, target: float) -> Law:
    """The small-noise form N = A / lambda + theta B / (3 lambda M), with sigma^2 = theta / M.

    A = 1/target - 1/start, B = 1/target^3 - 1/start^3. It drops a term A sigma ~ 1/sqrt(M), negligible where
    lambda target << 1, and holds for M well above :func:`smallest_batch` only.
    """
    a, b = 1 / target - 1 / start, 1 / target**3 - 1 / start**3
    return Law(a / rate, noise_squared_times_batch * b / (3 * rate))


def smallest_batch(noise_squared_times_batch: float, target: float) -> float:
    """theta / target^2 examples, at and below which the bound diverges: the inverse law must fail there."""
    return noise_squared_times_batch / target**2
