"""What is measured and drawn of an experiment of one's own: curves, and the test error at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from suite.claims.intervals import Interval, mean_interval, paired_difference
from suite.lazy import Figure, pd
from suite.papers.artifact import STORED, Artifact, Frame, Groups, Quantity
from suite.report.style import LINES, PALETTE


def panel(artifact: str, title: str, runs: Callable[[str], Groups]) -> Artifact:
    """The panel of an experiment whose groups are methods, each compared with the first of them."""
    made = Artifact(artifact, title, runs, size=(8.0, 4.0), frame=table, more=quantities)
    made.drawing(draw)
    return made


def methods(frame: Frame) -> list[str]:
    """The groups of which a run is stored."""
    return list(filter(frame.results, frame.groups))


def finished(frame: Frame, group: str) -> list[int]:
    """The seeds of a method's stored runs that did not diverge."""
    return [row["seed"] for row in frame.results(group) if frame.stored[row["run"]].status != "diverged"]


def ends(group: str, frame: Frame) -> pd.Series:
    """By seed, the test error of a method at the end in per cent; of runs that did not diverge."""
    errors: pd.Series = frame[group].set_index("seed")["test_error"]
    return 100 * errors.loc[finished(frame, group)].astype(float)


def difference(first: str, group: str, frame: Frame) -> Interval:
    """The error of a method less that of the first, in points, over the seeds of both."""
    seeds = sorted({*finished(frame, first)}.intersection(finished(frame, group)))
    base, ours = (ends(each, frame)[seeds].tolist() for each in (first, group))
    return paired_difference(base, ours)


def quantities(frame: Frame) -> dict[str, Quantity]:
    """The test error at the end of each method, and its difference to the first one's."""
    seeds = {group: {*finished(frame, group)} for group in methods(frame)}
    able = [group for group in seeds if seeds[group]]
    found = {f"{group}: test error (%)": Quantity(partial(ends, group), (group,), STORED) for group in able}
    for group in able[1:]:
        if seeds[able[0]] & seeds[group]:
            value = partial(difference, able[0], group)
            found[f"{group} minus {able[0]} (points)"] = Quantity(value, (able[0], group), STORED)
    return found


def table(frame: Frame) -> pd.DataFrame:
    """A row per evaluation of each run: examples seen, test error and loss, bytes sent by a worker."""
    tests = frame.table("evaluations")
    settings = {run: frame.stored[run].spec.settings for run in tests["run"].unique()}
    each = tests["run"].map(lambda run: settings[run]["batch"] * settings[run]["workers"])
    shown = tests[[name for name in ("test_error", "test_loss", "sent") if name in tests]]
    return shown.assign(examples=tests["update"] * each, method=tests["group"], seed=tests["seed"])


def draw(frame: Frame, figure: Figure) -> None:
    """Test error against training examples seen, and at the end with 95% intervals, of each method."""
    curves, last = figure.subplots(1, 2, width_ratios=(3, 2))
    tests, groups = table(frame), methods(frame)
    for place, group in enumerate(groups):
        colour, line = PALETTE[place % len(PALETTE)], LINES[place // len(PALETTE) % len(LINES)]
        error = tests[(tests["method"] == group) & (tests["examples"] > 0)].groupby("examples")["test_error"]
        curves.plot(100 * error.mean(), color=colour, linestyle=line)
        curves.fill_between(error.mean().index, 100 * error.min(), 100 * error.max(), color=colour, alpha=0.2, lw=0)
        if finished(frame, group):
            end = mean_interval(ends(group, frame).tolist())
            half = end.high - end.mean if end.n > 1 else 0.0
            last.errorbar(end.mean, place, xerr=half, color=colour, linestyle=line, marker="o", capsize=3)
    curves.set(xlabel="training examples seen", ylabel="test error (%)", yscale="log")
    last.set(xlabel="final test error (%), 95%", ylim=(len(groups) - 0.5, -0.5))
    last.set_yticks(range(len(groups)), [label(frame, group) for group in groups])


def label(frame: Frame, group: str) -> str:
    """The name of a method, and what is to be said of its runs: seeds that are missing, runs that diverged."""
    planned, stored = len(frame.groups[group]), len(frame.results(group))
    few = f"{stored} of {planned} seeds" if stored < planned else ""
    diverged = stored - len(finished(frame, group))
    return "\n".join(filter(None, (group, few, f"{diverged} diverged" if diverged else "")))
