"""What is measured and drawn of an experiment of one's own: curves, and the test error at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from suite.claims.estimate import over_seeds
from suite.claims.intervals import mean_interval, paired_difference
from suite.papers.artifact import Evidence, Missing, Quantities
from suite.report.style import LINES, PALETTE
from suite.runs.store import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def stored(evidence: Evidence) -> Iterator[tuple[str, tuple[Run, ...]]]:
    """Each group with those of its runs that are stored. Raises Missing where there is none at all."""
    ids, count = evidence.source.ids(), 0
    for group, specs in evidence.groups.items():
        present = tuple(spec for spec in specs if spec.id in ids)
        if present:
            count += 1
            yield group, evidence.restricted({group: present}).runs(group)
    if not count:
        raise Missing(f"no run is stored at {evidence.profile}")


def frame(evidence: Evidence) -> pd.DataFrame:
    """A row per evaluation of each run: examples seen, test error and loss, bytes sent by a worker."""
    import pandas as pd

    parts = []
    for group, runs in stored(evidence):
        for run in runs:
            each = run.spec.settings["batch"] * run.spec.settings["workers"]
            table = run.curve("evaluations")
            shown = table[[name for name in ("test_error", "test_loss", "sent") if name in table]]
            parts.append(shown.assign(examples=table["update"] * each, method=group, seed=run.spec.seed))
    return pd.concat(parts, ignore_index=True)


def ends(evidence: Evidence) -> dict[str, dict[int, float]]:
    """By group and seed, the test error at the end in per cent; of runs that did not diverge."""
    return {
        group: {run.spec.seed: 100 * run.results["test_error"] for run in runs if run.status != "diverged"}
        for group, runs in stored(evidence)
    }


def measure(evidence: Evidence) -> Quantities:
    """The test error at the end of each method, and its difference to the first one's over the seeds of both."""
    found = {group: values for group, values in ends(evidence).items() if values}
    ids = {group: [run.id for run in runs] for group, runs in stored(evidence)}
    for group, values in found.items():
        yield f"{group}: test error (%)", over_seeds(mean_interval(list(values.values())), ids[group])
    for group in list(found)[1:]:
        first = next(iter(found))
        if seeds := sorted(found[first].keys() & found[group].keys()):
            base, ours = ([found[each][seed] for seed in seeds] for each in (first, group))
            name = f"{group}: less {first} (points)"
            yield name, over_seeds(paired_difference(base, ours), [*ids[first], *ids[group]])


def draw(evidence: Evidence, figure: Figure) -> None:
    """Left the mean curves with the range of their seeds, right the ends with their 95% intervals."""
    curves, last = figure.subplots(1, 2, width_ratios=(3, 2))
    table, groups = frame(evidence), dict(stored(evidence))
    for place, (group, values) in enumerate(ends(evidence).items()):
        colour, line = PALETTE[place % len(PALETTE)], LINES[place // len(PALETTE) % len(LINES)]
        tests = table[(table["method"] == group) & (table["examples"] > 0)].groupby("examples")["test_error"]
        curves.plot(100 * tests.mean(), color=colour, linestyle=line)
        curves.fill_between(tests.mean().index, 100 * tests.min(), 100 * tests.max(), color=colour, alpha=0.2, lw=0)
        if values:
            end = mean_interval(list(values.values()))
            half = end.high - end.mean if end.n > 1 else 0.0
            last.errorbar(end.mean, place, xerr=half, color=colour, linestyle=line, marker="o", capsize=3)
    curves.set(xlabel="training examples seen", ylabel="test error (%)", yscale="log")
    last.set(xlabel="final test error (%), 95%", ylim=(len(groups) - 0.5, -0.5))
    last.set_yticks(range(len(groups)), [_label(evidence, *each) for each in groups.items()])


def _label(evidence: Evidence, group: str, runs: tuple[Run, ...]) -> str:
    """The name of a method, and what is to be said of its runs: seeds that are missing, runs that diverged."""
    planned, diverged = len(evidence.groups[group]), sum(run.status == "diverged" for run in runs)
    few = f"{len(runs)} of {planned} seeds" if len(runs) < planned else ""
    return "\n".join(filter(None, (group, few, f"{diverged} diverged" if diverged else "")))
