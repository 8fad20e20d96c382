"""Pairs of SGD and ISGD with the same seeds: what is read of their tests, seed by seed (Fig. 5, zeta)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suite.claims.intervals import at_least
from suite.papers.figure import Frame, Missing, np, pd

PAIR = ("sgd", "isgd")
# accuracies marked on the axes of Figs. 5a and 5b, and what serves for other data
TICKS: dict[str, Sequence[float]] = {
    "mnist": (0.97, 0.975, 0.98, 0.985, 0.99),
    "cifar10": (0.60, 0.65, 0.70, 0.72, 0.73, 0.74, 0.75),
    "cifar100": [percent / 100 for percent in range(1, 100)],
}
COARSE_TICKS = (0.8, 0.85, 0.9, 0.95)
LEARNED = 0.01  # by so much an error falls below that of the untrained network where something is learned


def settings_of(frame: Frame, group: str = "sgd") -> Any:
    """The settings of a group's first stored run; the others do not count as read."""
    first = next(run for row in frame.groups[group] if (run := frame.stored.get(row["run"])))
    return first.spec.settings


def data_of(frame: Frame, group: str = "sgd") -> str:
    """The data set that a group is trained on."""
    chosen = settings_of(frame, group)
    return str(chosen["data"]["name"]) if "data" in chosen else "imagenet"


def tests(frame: Frame, group: str) -> list[pd.DataFrame]:
    """The table of tests of each run of a group, by seed; the first test is before training."""
    return [run.curve("evaluations") for run in frame.runs_of(group)]


def column(frame: Frame, group: str, name: str) -> np.ndarray:
    """One column of the tests of a group [seeds, tests]; a run that diverged early keeps what its last test found."""
    longest = max(len(table) for each in frame.groups for table in tests(frame, each))
    return np.array([np.pad(table[name], (0, longest - len(table)), "edge") for table in tests(frame, group)])


def error_lead(frame: Frame, treated: str, name: str) -> np.ndarray:
    """SGD's error minus that of ``treated`` [pairs, tests]; no number in a pair of which neither learns."""
    both = np.array([column(frame, group, name) for group in ("sgd", treated)])  # [2, pairs, tests]
    learned = np.nanmin(both, axis=(0, 2)) < both[:, :, 0].min(0) - LEARNED
    return np.where(learned[:, None], both[0] - both[1], np.nan)


def first_below(table: pd.DataFrame, error: float, column: str = "test_error") -> float:
    """Gradient evaluations at the first test with at most this error, NaN without one."""
    return float(table.loc[at_least(-table[column], -error), "update"].min())


def common_error(frame: Frame, *groups: str) -> float:
    """Test error at the highest tick of the figure's accuracy axis that every run of these groups reaches.

    In the first epoch the methods are the same by construction, so a low accuracy cannot tell them apart.
    """
    reached = 1 - max(float(table["test_error"].min()) for group in groups for table in tests(frame, group))
    ticks = [tick for tick in TICKS.get(data_of(frame), COARSE_TICKS) if at_least(reached, tick)]
    if not ticks:
        raise Missing("lacks an accuracy on the figure's axis that every run reaches")
    return 1 - max(ticks)


def log_speed(frame: Frame, treated: str = "isgd", also: tuple[str, ...] = ()) -> pd.Series:
    """Per seed: log(updates of SGD / updates of ``treated``) until the common error.

    ``also`` names other groups that must have reached that error.
    """
    error = common_error(frame, "sgd", treated, *also)
    plain, ours = ([first_below(t, error) for t in tests(frame, group)] for group in ("sgd", treated))
    return pd.Series(np.log(np.array(plain) / np.array(ours)))


def until(frame: Frame, treated: str = "isgd") -> str:
    """Beside a speed: the accuracy that it is measured to."""
    return f"until {1 - common_error(frame, 'sgd', treated):.1%} test accuracy, {len(frame['sgd'])} paired seeds"


def error_leads(frame: Frame, treated: str = "isgd") -> pd.Series:
    """Per seed: SGD's training error minus that of ``treated``, averaged over the tests of the second half."""
    lead = error_lead(frame, treated, "train_error")
    return pd.Series(lead[:, lead.shape[1] // 2 :].mean(1))
