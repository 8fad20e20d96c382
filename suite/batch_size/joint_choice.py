"""Batch size and learning rate chosen together, from a few cheap counts of updates.

    from suite.optim import choose_batch_and_rate

    choice = choose_batch_and_rate(make_model, loss, (inputs, targets), rates=(0.0125, 0.05, 0.2), threshold=0.3)
    print(choice.batch, choice.rate, choice.smallest)

1. measure the seconds of an update at every batch size;
2. count updates to the threshold at the largest batch with the largest and the smallest rate, which gives t0; then at
   smaller and smaller batches, which give tau kappa and kappa, as far as the law fitted to the counts so far
   (:class:`JointLaw`) says that the next one arrives;
3. take the pair with the least N(M, eta) T(M), of those whose kappa eta / M leaves room to the pole;
4. count there; fit and choose again where the count says otherwise.

No pair is tried that cannot reach the threshold by the counts so far, and the answer names the smallest batch that
works at each rate.

Updates to a threshold over batch size M and learning rate eta together, and the fit of this law.

A loss that relaxes exponentially, with the time t = updates x rate, to a floor proportional to rate / M reaches a
threshold after

    N(M, eta) = (t0 - tau ln(1 - kappa eta / M)) / eta        updates.

The first order in kappa eta / M is the inverse law: N_inf = t0 / eta, alpha = tau kappa whatever the rate. Where
kappa eta / M reaches 1 the floor of the loss is the threshold, and no number of updates suffices: at a rate the batch
must have more than kappa eta examples. The noise scale rate / M is that of Smith and Le (2018); the number of steps
of McCandlish et al. (2018), S_min (1 + B_noise / B), is the first order at one rate.

The fit is weighted least squares on the means, over seeds, of the logarithms of the updates. A point at which a seed
did not arrive within its limit is a bound: a law that foretells fewer updates misfits there, one that foretells more
does not. Where the counts leave kappa and tau apart undetermined (far from the pole only their product shows), a weak
penalty holds tau near t0, a factor e at the price of one standard error; the determined ones lie within it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from suite.batch_size.choice import Method, check_pair, check_sizes, listed
from suite.batch_size.law import FitError, Updates
from suite.batch_size.trainer import Diverged, Trainer, check_positive
from suite.lazy import np, pd, scipy, torch

Counts = Mapping[float, Sequence[Updates]]  # by learning rate
LEAST_ERROR = 0.01  # of a mean log count: below it the form of the law, not the seeds, decides how well it fits
STARTS = (0.02, 0.1, 0.4, 0.7, 0.95)  # shares of the largest kappa from which the search begins
FARTHEST = 0.999  # of the kappa at which the law would not reach a point that was reached
FIRST_ORDER = 1e-5  # of the same, below which the logarithm is its first order
NEVER = 1e-9  # distance from the pole that counts as none
PENALTY = 1.0  # log tau / t0 at the price of one standard error


@dataclass(frozen=True)
class JointLaw:
    """The constants of one network and threshold.

    Attributes:
        way: t0, updates x rate to the threshold with exact gradients.
        relaxation: tau, updates x rate in which the distance to the floor falls by the factor e.
        noise: kappa, examples per unit of rate at which the floor is the threshold.
    """

    way: float
    relaxation: float
    noise: float

    def load(self, batch: float, rate: float) -> float:
        """kappa rate / M, the floor of the loss over the threshold."""
        return self.noise * rate / batch

    def predict(self, batch: float, rate: float) -> float:
        """Updates to the threshold, infinite where it is never reached.

        >>> law = JointLaw(way=5.0, relaxation=6.0, noise=20.0)
        >>> round(law.predict(64, 0.05))
        102
        >>> law.predict(1, 0.05)
        inf
        """
        load = self.load(batch, rate)
        return math.inf if load >= 1 else (self.way - self.relaxation * math.log1p(-load)) / rate


def fit_joint_law(counts: Counts, *, pole: bool = True) -> JointLaw:
    """Fit t0, tau and kappa.

    Args:
        counts: updates to one threshold by learning rate; the rates need not share batch sizes.
        pole: without it kappa is held near 0, which leaves the inverse law of all rates, t0 / eta + tau kappa / M.

    Raises:
        FitError: fewer than two points at which every seed arrived.
    """
    rates, batches, mean, error, limited = _points(counts)
    ratio = rates / batches  # [P]
    top = float(ratio[~limited].max())

    def residuals(theta: np.ndarray) -> np.ndarray:
        rest = np.maximum(1 - theta[2] * ratio / top, NEVER)  # [P], how far a point is from the pole
        times = np.exp(theta[0]) - np.exp(theta[1]) * np.log(rest)
        misfit = (np.log(times / rates) - mean) / error
        bounded = np.where(rest > NEVER, np.minimum(misfit, 0), 0)
        return np.append(np.where(limited, bounded, misfit), pole * (theta[1] - theta[0]) / PENALTY)

    shortest = math.log((np.exp(mean) * rates).min())
    bounds = [-np.inf, -np.inf, 0.0], [np.inf, np.inf, FARTHEST if pole else FIRST_ORDER]
    starts = (
        [(shortest, share) for share in STARTS] if pole else [(shortest - math.log(FIRST_ORDER), FIRST_ORDER / 2)]
    )
    fits = [scipy.optimize.least_squares(residuals, [shortest, tau, share], bounds=bounds) for tau, share in starts]
    best = min(fits, key=lambda fit: fit.cost)
    return JointLaw(math.exp(best.x[0]), math.exp(best.x[1]), float(best.x[2]) / top)


def _points(counts: Counts) -> tuple[np.ndarray, ...]:
    """Rates, batch sizes, means of log updates, their standard errors, and where a limit stands for one; all [P].

    A point's squared error is half its own seeds' and half that of the median point."""
    found = [(rate, u) for rate, curve in sorted(counts.items()) for u in curve]
    limited = np.array([u.censored > 0 for _, u in found], dtype=bool)
    if (usable := int((~limited).sum())) < 2:
        raise FitError(f"the joint law needs two points at which every seed arrived, not {usable}; count at others")
    logs = [np.log([n or u.limit or math.nan for n in u.seen]) for _, u in found]
    own = np.array([np.std(each, ddof=1) / math.sqrt(len(each)) if len(each) > 1 else 0.0 for each in logs])
    error = np.sqrt((own**2 + np.median(own[~limited]) ** 2) / 2 + LEAST_ERROR**2)
    rates, batches = np.array([(rate, u.batch) for rate, u in found]).T
    return rates, batches, np.array([np.mean(each) for each in logs]), error, limited


Pair = tuple[int, float]  # batch size, learning rate
ROOM = 0.8  # of the pole, up to which a pair is chosen
PROBED = 0.6  # of the pole, up to which a batch is counted in step 2
STEP = 4  # between the batch sizes counted in step 2
CHECKS = 3  # counts at a chosen pair, at most


@dataclass(frozen=True)
class JointChoice:
    """The chosen pair and how it was found.

    Attributes:
        batch, rate: the pair with the least predicted seconds.
        law: t0, tau and kappa, fitted to ``counted``.
        seconds: per update, by batch size.
        predicted: seconds to the threshold by pair, infinite where it is not reached or too near the pole to rely on.
        counted: updates by pair; those that did not arrive within the limit are None.
    """

    batch: int
    rate: float
    law: JointLaw
    seconds: Mapping[int, float]
    predicted: Mapping[Pair, float]
    counted: Mapping[Pair, Updates]

    @property
    def smallest(self) -> dict[float, int | None]:
        """By rate, the smallest batch size offered that works; None where none does."""
        rates = sorted({rate for _, rate in self.predicted})
        working = {rate: [b for (b, r), s in self.predicted.items() if r == rate and s < math.inf] for rate in rates}
        return {rate: min(found, default=None) for rate, found in working.items()}

    def frame(self) -> pd.DataFrame:
        """A row per pair: kappa rate / M, updates counted and predicted, seconds, and whether it is chosen."""
        rows = []
        for (batch, rate), seconds in sorted(self.predicted.items()):
            seen = self.counted.get((batch, rate))
            row: dict[str, Any] = {"batch": batch, "rate": rate, "load": self.law.load(batch, rate)}
            row |= {"updates counted": seen.seen if seen else (), "updates": self.law.predict(batch, rate)}
            rows.append(row | {"seconds": seconds, "chosen": (batch, rate) == (self.batch, self.rate)})
        return pd.DataFrame(rows)


def choose_jointly(
    count: Callable[[int, float], Updates], seconds: Mapping[int, float], rates: Sequence[float]
) -> JointChoice:
    """Steps 2 to 4 on measurements.

    Args:
        count: updates to the threshold at a batch size and a rate, from one seed or several.
        seconds: per update, by batch size; the sizes to choose among.
        rates: learning rates to choose among. The largest are left out that do not arrive at the largest batch.

    Raises:
        FitError: no rate reaches the threshold at the largest batch size, or fewer than two pairs arrive.
        ValueError: fewer than three batch sizes, no rate, or a time or rate that is not positive and finite.

    >>> truth = JointLaw(way=5.0, relaxation=6.0, noise=20.0)
    >>> count = lambda batch, rate: Updates(batch, (truth.predict(batch, rate),))
    >>> seconds = {1: 1.0, 2: 1.0, 4: 1.1, 16: 2.0, 64: 6.0}
    >>> choice = choose_jointly(count, seconds, rates=(0.01, 0.1))
    >>> choice.batch, choice.rate, choice.smallest
    (4, 0.1, {0.01: 1, 0.1: 4})
    """
    sizes, rates = sorted(seconds), sorted(rates)
    if len(sizes) < 3 or not rates:
        raise ValueError(f"batch sizes {sizes} and rates={rates}: give at least three sizes and one rate")
    for number in (*seconds.values(), *rates):
        check_positive("a rate or the seconds of an update", number)
    counted: dict[Pair, Updates] = {}

    def ask(batch: int, rate: float) -> bool:
        """Whether every seed arrives at a pair."""
        if (batch, rate) not in counted:
            counted[batch, rate] = count(batch, rate)
        return not counted[batch, rate].censored

    usable = _usable_rates(ask, sizes[-1], rates)
    top = usable[-1]
    ask(sizes[-1], usable[0])
    # Down in steps of which the counts so far say that the next one arrives, until kappa shows.
    size = sizes[-1]
    while smaller := [m for m in sizes if m < size and (size == sizes[-1] or _fitted(counted).load(m, top) < PROBED)]:
        size = max((m for m in smaller if m <= size / STEP), default=smaller[0])
        if not ask(size, top):
            break
    for _ in range(CHECKS):
        choice = _choice(_fitted(counted), seconds, usable, counted)
        if (choice.batch, choice.rate) in counted:
            return choice
        ask(choice.batch, choice.rate)
    return _choice(_fitted(counted), seconds, usable, counted)


def _usable_rates(ask: Callable[[int, float], bool], largest: int, rates: list[float]) -> list[float]:
    """The rates up to the largest one that arrives with the least noise."""
    for last in range(len(rates), 0, -1):
        if ask(largest, rates[last - 1]):
            return rates[:last]
    raise FitError(
        f"none of rates={rates} reaches the threshold with batch={largest}; take smaller rates, a higher threshold "
        f"or a larger limit"
    )


def _fitted(counted: Mapping[Pair, Updates]) -> JointLaw:
    by_rate: dict[float, list[Updates]] = {}
    for (_, rate), updates in counted.items():
        by_rate.setdefault(rate, []).append(updates)
    return fit_joint_law(by_rate)


def _choice(
    law: JointLaw, seconds: Mapping[int, float], rates: Sequence[float], counted: Mapping[Pair, Updates]
) -> JointChoice:
    """The pair with the least predicted seconds; one that was counted and did not arrive is none."""

    def total(batch: int, rate: float) -> float:
        seen = counted.get((batch, rate))
        if law.load(batch, rate) >= ROOM or (seen and seen.censored):
            return math.inf
        return law.predict(batch, rate) * seconds[batch]

    predicted = {(batch, rate): total(batch, rate) for rate in rates for batch in sorted(seconds)}
    batch, rate = min(predicted, key=lambda pair: predicted[pair])
    return JointChoice(batch, rate, law, dict(seconds), predicted, dict(counted))


def choose_batch_and_rate(
    make_model: Callable[[int], torch.nn.Module],
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    data: tuple[torch.Tensor, torch.Tensor],
    *,
    rates: Sequence[float],
    threshold: float,
    batches: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128, 256),
    seeds: Sequence[int] = (0,),
    limit: int = 20_000,
    share: float = 0.2,
    growth: float = 0.01,
    rounds: int = 5,
    callback: Callable[[Any], Any] | None = None,
) -> JointChoice:
    """Choose batch size and learning rate of plain SGD together on a user's model.

    Args:
        make_model: an initialised module from a seed, always of the same architecture.
        loss: mean loss of (outputs [b, ...], targets [b, ...]), never negative.
        data: (inputs [N, ...], targets [N, ...]) on the model's device; updates draw from all of it.
        rates: learning rates to choose among; too large ones are found at the largest batch and left out.
        threshold: of the mean loss, in evaluation mode, on a fixed random ``share`` of the data.
        batches: sizes to time and choose among.
        seeds: from each of which updates are counted.
        limit: updates after which a count ends without having arrived.
        share: of the data that is tested on, in (0, 1].
        growth: updates between two tests, as a fraction of those so far.
        rounds: in which the seconds of an update are measured.
        callback: is told the progress of the timing, as in ``choose_batch``.

    Returns:
        The pair, the law behind it, and the smallest batch size that works at each rate.

    Raises:
        ValueError: sizes that do not fit the data, fewer than three of them, no rate or seed, equal seeds, numbers
            out of range, a threshold that the untrained model meets, or one module handed out twice.
        TypeError: ``data`` is no pair of tensors.
        FitError: no rate reaches the threshold at the largest batch size.

    Example:
        >>> import torch
        >>> generator = torch.Generator().manual_seed(0)
        >>> inputs = torch.randn(400, 5, generator=generator)  # [N, 5]
        >>> targets = inputs.sum(1, keepdim=True) + torch.randn(400, 1, generator=generator)  # [N, 1]
        >>> def make_model(seed):
        ...     torch.manual_seed(seed)
        ...     return torch.nn.Linear(5, 1)
        >>> loss = torch.nn.functional.mse_loss
        >>> found = choose_batch_and_rate(
        ...     make_model, loss, (inputs, targets), rates=(0.02, 0.05), threshold=1.2, batches=(4, 16, 64)
        ... )
        >>> found.batch in (4, 16, 64) and found.rate in (0.02, 0.05)
        True

    Source: :class:`JointLaw`, a question of ours; Eq. 2 of the paper is its first order in rate / M.
    """
    check_pair(data)
    batches, rates, seeds = listed("batches", batches), listed("rates", rates), listed("seeds", seeds)
    check_sizes(batches, None, len(data[0]), len(data[1]))
    sizes = sorted(set(batches))
    if len(sizes) < 3 or not rates:
        raise ValueError(f"batches={sizes} must be three or more sizes, and rates={rates} one rate or more")
    for rate in rates:
        check_positive("rate", rate)
    trainer = Trainer(make_model, loss, data, min(rates), share)
    method = Method(trainer, seeds, threshold, limit, growth, rounds, None, callback)
    method.check_models()
    method.time(method.fitting(sizes, None))

    def count(batch: int, rate: float) -> Updates:
        trainer.rate = rate
        return Updates(batch, tuple(arrival(seed, batch) for seed in seeds), float(limit))

    def arrival(seed: int, batch: int) -> float | None:
        """Updates to the threshold; a rate at which the loss becomes infinite does not arrive."""
        try:
            return trainer.count(seed, batch, threshold, growth, limit)
        except Diverged:
            return None

    return choose_jointly(count, method.seconds, rates)
