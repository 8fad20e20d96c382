"""Measured speed as committed documents: what ``nox -s benchmark`` writes, its ratios, and its limits.

A document (``format`` 1) belongs to one machine class. ``workloads`` maps names to ``sides``, each with its seconds
per update in interleaved rounds: samples of equal index come from one round. A ratio is the time of the fastest of
all others over ours of the same round, above 1 where the suite is faster. Nothing here imports torch, numpy or
matplotlib.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from suite.report.numerals import markdown
from suite.runs.environment import ROOT
from suite.speed.baselines import read

RESULTS = ROOT / "benchmarks" / "results"  # one document per machine class and torch


def committed() -> list[dict[str, Any]]:
    """The committed documents by machine class, the newest torch of a machine first; none outside a checkout."""
    return [read(path) for path in sorted(RESULTS.glob("*.json"), reverse=True)]


def timed_of_ours(workload: Mapping[str, Any]) -> dict[str, list[float]]:
    """Seconds of our sides that were measured: ``ours``, ``ours, 2 threads``, ``ours in waves``."""
    sides = workload["sides"].items()
    return {name: side["seconds"] for name, side in sides if "seconds" in side and name.startswith("ours")}


def fastest(sides: Mapping[str, Sequence[float]]) -> str | None:
    """The side of the least median."""
    return min(sides, key=lambda name: statistics.median(sides[name]), default=None)


def ratio(workload: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fastest of all others over the fastest of ours, round by round: names, median and quartiles.

    The fastest is chosen by the medians on both sides alike: a user of either would. None without both.
    """
    ours = timed_of_ours(workload)
    rivals = {
        name: side["seconds"] for name, side in workload["sides"].items() if "seconds" in side and name not in ours
    }
    mine, rival = fastest(ours), fastest(rivals)
    if mine is None or rival is None:
        return None
    each = [b / a for a, b in zip(ours[mine], rivals[rival], strict=True)]
    low, middle, high = statistics.quantiles(each, n=4) if len(each) > 1 else each * 3
    return {"rival": rival, "ours": mine, "median": middle, "quartiles": [low, high]}


def untimed(workload: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Entries of rivals that took no part, with the reason: each could be faster than the one that is compared."""
    sides = workload["sides"].items()
    return {name: side for name, side in sides if "not_available" in side and not name.startswith("ours")}


def reasons(document: Mapping[str, Any]) -> list[str]:
    """Why rivals of the tabled workloads took no part, each reason once; slower forms of a kind need none."""
    every = [side for _, workload, _ in tabled(document) for side in untimed(workload).values()]
    return list(dict.fromkeys(side["not_available"] for side in every if "times_as_long" not in side))


def absent(workload: Mapping[str, Any], known: Sequence[str]) -> str:
    """Who took no part in a workload: names with the number of their reason in ``known``; slower forms counted."""
    names: dict[int, list[str]] = {}
    slower = []
    for name, side in untimed(workload).items():
        if "times_as_long" in side:
            slower.append(side["times_as_long"])
        else:
            names.setdefault(1 + known.index(side["not_available"]), []).append(name)
    told = [f"{', '.join(those)} [{number}]" for number, those in names.items()]
    if slower:
        span = f"{min(slower):.1f}" if min(slower) == max(slower) else f"{min(slower):.1f} to {max(slower):.1f}"
        told.append(f"{len(slower)} more form{'s'[: len(slower) > 1]} ({span} times as long when warmed up)")
    return "; ".join(told)


def attained(workload: Mapping[str, Any], side: str, floors: Mapping[str, Any]) -> tuple[float, str] | None:
    """The longest of what a side cannot do without, over its median update, and which it is.

    None where that is unknown on the threads it used.

    *Products* are all operations by the processor's multiply-adds: a side is below that only if it makes fewer
    multiplications, as Winograd's convolutions do. Without that speed they are all operations at the rate of the
    library's best product, or, in an older document, its products as timed at their own shapes. *Copies* are
    the bytes at a copy's speed; *calls* the framework's, of a side that goes layer by layer.
    """
    entry = workload["sides"].get(side, {})
    key = "cuda" if "cuda" in floors else str(entry.get("threads"))
    floor = floors.get(key)
    if "seconds" not in entry or not floor or not workload["flops"] or not workload["bytes"]:
        return None
    median = statistics.median(entry["seconds"])
    products = workload["flops"] / (floor.get("processor_flops_per_second") or floor["flops_per_second"])
    if "processor_flops_per_second" not in floor:
        products = workload.get("products", {}).get(key) or products
    # The smallest copy counts that is at least as large.
    speeds = [speed for copied, speed in floor.get("copies", ()) if copied >= workload["bytes"]]
    copied = speeds[0] if speeds else floor["bytes_per_second"]
    least = {"products": products, "copies": workload["bytes"] / copied}
    execution = entry.get("execution", {})
    if execution.get("path", side.split()[0].rstrip(",")) in ("looped", "plain"):
        calls = workload.get("calls", 0) * floor.get("call_seconds", 0.0)
        least["calls"] = calls / execution.get("processes", 1)
    bound = max(least, key=least.__getitem__)
    return least[bound] / median, bound


COLUMNS = (
    "workload",
    "ours against the fastest of all others",
    "quartiles",
    "the fastest of all others",
    "not timed",
    "of the limit",
    "limited by",
)


def title(document: Mapping[str, Any]) -> str:
    """The machine of a document in words."""
    machine, versions = document["machine"], document["versions"]
    loads = " to ".join(f"{document[when]['load_average']:g}" for when in ("started", "ended"))
    name = machine.get("gpu") or f"{machine['cpu']}, {machine['cores']} cores"
    made = f"{name}, torch {versions.get('torch', 'unknown')}, load average {loads}"
    stolen = [
        spread["median"]
        for workload in document["workloads"].values()
        if (spread := workload.get("telemetry", {}).get("cpu", {}).get("stolen_percent"))
    ]
    if not stolen or max(stolen) <= 0.5:  # a half is rounded to 0 too
        return made
    return f"{made}, up to {max(stolen):.0f}% of the processors' time taken by other virtual machines"


def tabled(document: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], dict[str, Any]]]:
    """Name, entry and ratio of the workloads with ours and another."""
    workloads = document["workloads"].items()
    return [(name, workload, main) for name, workload in workloads if (main := ratio(workload))]


def rows(document: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """One row of ``COLUMNS`` for each tabled workload; empty cells are not known, numbers those of ``reasons``."""
    known = reasons(document)
    for name, workload, main in tabled(document):
        low, high = main["quartiles"]
        share, bound = attained(workload, main["ours"], document["floors"]) or (None, "")
        yield (
            name if main["ours"] == "ours" else f"{name} ({main['ours']})",
            f"{main['median']:.2f} x",
            f"{low:.2f} to {high:.2f}",
            main["rival"],
            absent(workload, known),
            f"{share:.0%}" if share else "",
            bound,
        )


def table(document: Mapping[str, Any]) -> str:
    """Ratios of a document's workloads as Markdown, below them why rivals were not timed and what learners gain."""
    told = [f"[{number}] {why}" for number, why in enumerate(reasons(document), 1)]
    not_timed = f"Not timed: {'; '.join(told)}." if told else ""
    notes = " ".join(filter(None, (not_timed, learners_gain(document))))
    parts = f"{title(document)}:", markdown(COLUMNS, rows(document), "lrrllrl"), notes
    return "\n\n".join(filter(None, parts))


def learners_gain(document: Mapping[str, Any]) -> str:
    """Examples per second of ours with k learners over one, for every network averaged at several k; or nothing."""
    speeds: dict[str, dict[str, float]] = {}
    for name, workload in document["workloads"].items():
        side = fastest(timed_of_ours(workload))
        if workload["family"] == "averaging" and side:
            network, _, k = name.rpartition(", ")
            seconds = statistics.median(workload["sides"][side]["seconds"])
            speeds.setdefault(network, {})[k] = workload["examples"] / seconds
    parts = []
    for network, by_k in speeds.items():
        if (alone := by_k.pop("k=1", None)) and by_k:
            gains = (f"{speed / alone:.2f} times with {k}" for k, speed in by_k.items())
            parts.append(f"{network}: {', '.join(gains)}")
    return f"Examples per second of ours over those with one learner: {'; '.join(parts)}." if parts else ""
