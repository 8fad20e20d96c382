"""Figure 1 with exchanges that happen: 2, 4 and 8 hosts that sleep for what computing takes on the paper's machines.

A run is a panel. Its order of methods can come out otherwise than the cost model's, whose equations allow one: sums
really travel, start-ups and updates of weights really take time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from paper_figures.matex_agd.link_readings import DELAYED, LAYER_WISE, lead, swapped
from paper_figures.matex_agd.overlap_cases import PANELS
from paper_figures.matex_agd.settings import EFFECTIVE_BATCH
from suite.claims.estimate import over_seeds, point
from suite.claims.intervals import Interval, least, log_interval
from suite.papers.artifact import Evidence, Missing, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged
from suite.runs.store import Run
from suite.spec import RunSpec

if TYPE_CHECKING:
    import pandas as pd

SHARED = (2, 4, 8)  # device counts at which there is something to communicate
METHODS = ("SGD", *LAYER_WISE, *DELAYED)


def panel_spec(letter: str) -> RunSpec:
    """The run of a panel, at the geometric middle of its machine's ranges; computing takes a second an update."""
    panel = PANELS[letter]
    there = panel.machine.centre()
    return RunSpec(
        "matex_agd/hosts",
        {
            "network": panel.name,
            "batch": EFFECTIVE_BATCH[panel.name],
            "flops": there.flops,
            "memory": there.memory,
            "beta": there.beta,
            "devices": SHARED,
            "seconds": 1.0,
            "numbers": 1_000_000,
            "stages": 16,
            "repeats": 5,
        },
    )


def host_runs(letters: str, profile: str) -> dict[str, tuple[RunSpec, ...]]:
    """Needs root and Linux, and most of an hour of sleep a panel, so it is no part of ``smoke``."""
    return {} if profile == "smoke" else {f"hosts {letter}": (panel_spec(letter),) for letter in letters}


def host_run(letter: str, evidence: Evidence) -> Run:
    """The run of a panel. Raises Missing, with the reason, where there was none."""
    if f"hosts {letter}" not in evidence.groups:
        raise Missing(f"no hosts at {evidence.profile}")
    run = evidence.run(f"hosts {letter}")
    if run.results["skipped"]:
        raise Missing(f"the hosts could not be made: {run.results['skipped']}")
    return run


def seconds(run: Run, devices: int) -> pd.DataFrame:
    """Seconds per update by repetition (rows) and method (columns): of a block's updates the fastest.

    The hosts of one machine wait for its cores, which only ever adds; sums of these panels take less than computing,
    so that every update of a block has the same ones to wait for.
    """
    table = run.curve("hosts")
    table = table[(table["devices"] == devices) & (table["method"] != "empty sum")]
    return table.pivot(index="repeat", columns="method", values="fastest").dropna()


def ratio(table: pd.DataFrame, method: str) -> Interval:
    """Rate of a method over that of no communication, paired by repetition."""
    return log_interval([float(value) for value in table["no comm"] / table[method]])


def leads(run: Run) -> dict[int, tuple[Interval, Interval]]:
    """By number of devices: log of the rate of AGD over that of SGD, and over that of layer-wise exchange."""
    tables = {devices: seconds(run, devices) for devices in SHARED}
    return {n: (lead(t, DELAYED, ("SGD",)), lead(t, DELAYED, LAYER_WISE)) for n, t in tables.items()}


def measure_hosts(letter: str) -> Callable[[Evidence], Quantities]:
    """Measures the sentences on all approaches: each must hold on that number of hosts where it holds least."""

    def measure(evidence: Evidence) -> Quantities:
        run = host_run(letter, evidence)
        found = leads(run)
        note = "log of the rate of AGD 1-3 comm over {}, at that of 2, 4 and 8 hosts where it is least"
        both = [each for pair in found.values() for each in pair]
        yield "agd-best", over_seeds([least(both)], (run.id,), note.format("SGD and layer-wise, the nearer"))
        note = note.format("layer-wise, both orders")
        yield "layerwise-below-agd", over_seeds([least([pair[1] for pair in found.values()])], (run.id,), note)
        seen = [ratio(table, name) for n in SHARED for table in [seconds(run, n)] for name in METHODS]
        most = Interval(max(i.mean for i in seen), max(i.low for i in seen), max(i.high for i in seen), seen[0].n)
        note = "largest rate over no comm of all methods on 2, 4 and 8 hosts"
        yield "no-comm-best", over_seeds([most], (run.id,), note)

    return measure


def measure_trend(evidence: Evidence) -> Quantities:
    """Share of networks and numbers of devices at which AGD is ahead of the others on both machines."""
    runs = {letter: host_run(letter, evidence) for letter in PANELS}
    ahead = {
        letter: {n: min(i.mean for i in pair) > 0 for n, pair in leads(run).items()} for letter, run in runs.items()
    }
    alike = [ahead[cpu][n] and ahead[gpu][n] for cpu, gpu in (("a", "b"), ("c", "d")) for n in SHARED]
    note = "share of 2 networks on 2, 4 and 8 hosts"
    yield "same-trend", point(sum(alike) / len(alike), runs=[run.id for run in runs.values()], note=note)


def frame(letter: str, evidence: Evidence) -> pd.DataFrame:
    """Rates over no communication: approach, devices, rate, low and high (95% t interval), source "hosts"."""
    import pandas as pd

    run, rows = host_run(letter, evidence), []
    for devices in SHARED:
        table = seconds(run, devices)
        for name in METHODS:
            seen = ratio(table, name)
            rows.append({"approach": name, "devices": devices, "rate": seen.mean, "low": seen.low, "high": seen.high})
    return pd.DataFrame(rows).assign(source="hosts")


def _renamed(evidence: Evidence, names: dict[str, str]) -> Evidence:
    """On all hosts each method took the seconds of another."""
    edit = lambda table: table.assign(method=table["method"].replace(names))
    groups = [name for name in evidence.groups if name.startswith("hosts")]
    return edited(evidence, lambda run: forged(run, hosts=edit(run.curve("hosts"))), *groups)


ORDERS = [f"matex_agd/fig1{letter}/{name}" for letter in "bcd" for name in ("agd-best", "layerwise-below-agd")]


@counterfeit(*ORDERS, "matex_agd/fig1b/same-trend")
def delay_hides_nothing_between_hosts(evidence: Evidence) -> Evidence:
    """Delayed exchange is as slow as the others were, and they as fast as it was."""
    return _renamed(evidence, swapped(*zip(DELAYED, (*LAYER_WISE, "SGD"), strict=True)))


@counterfeit(*(f"matex_agd/fig1{letter}/no-comm-best" for letter in "bcd"))
def hosts_that_wait_are_faster(evidence: Evidence) -> Evidence:
    return _renamed(evidence, swapped(("AGD 1 comm", "no comm")))
