"""Drawings of measured speed: attained against limit (roofline), updates against the batch, and how costs grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from suite.lazy import Axes, Figure, np, pd
from suite.papers.artifact import Artifact
from suite.report import speed
from suite.report.drawing import Drawing, filled, stamped
from suite.report.style import INK, MARKERS

KINDS = (("ours", "o", "ours"), ("plain", "s", "plain loop, fastest form"), ("compiled", "^", "plain loop, compiled"))
AXES = (  # of growth, what it counts
    ("replicas", "replicas averaged in one process"),
    ("batch", "examples of a gradient"),
    ("parameters", "parameters of the network"),
)


def measured_speed() -> list[dict[str, Any]]:
    """What the committed documents say, for the report's page of speed; nothing outside a checkout."""
    return [
        {
            "id": _id(document),
            "title": speed.title(document),
            "figures": [drawn for draw in (roofline, against_batch, growth) if (drawn := draw(document))],
            "rows": speed.rows(document),
            "notes": speed.notes(document),
        }
        for document in speed.committed()
    ]


def roofline(document: Mapping[str, Any]) -> Drawing | None:
    """FLOP/s attained against FLOP per byte, with the limits measured on the device; None without a workload."""
    points = {kind: _attained(document, kind) for kind, _, _ in KINDS}
    if not points["ours"]:
        return None
    shares = sorted(share for *_, share in points["ours"])
    return _measured(
        document,
        partial(_draw_roofline, document, points),
        "roofline",
        "Attained against the limit",
        f"Operations per second against operations per byte on logarithmic axes, {len(shares)} workloads, with the "
        f"device's measured limits as lines; ours attains from {shares[0]:.0%} to {shares[-1]:.0%} of its limit.",
    )


def _attained(document: Mapping[str, Any], kind: str) -> list[tuple[float, float, float]]:
    """(FLOP per byte, FLOP/s, share of the limit) of the fastest side of a kind, for each workload."""
    found = []
    for workload in document["workloads"].values():
        side = speed.fastest(speed.timed(workload, kind))
        if workload["family"] != "growth" and side:
            reached = speed.attained(workload, side, document["floors"])
            if reached:
                found.append((reached.intensity, reached.flops_per_second, reached.share))
    return found


def _draw_roofline(
    document: Mapping[str, Any], points: Mapping[str, list[tuple[float, float, float]]], figure: Figure
) -> None:
    axes = figure.add_subplot()
    every = [x for reached in points.values() for x, *_ in reached]
    ends = [min(every) / 2, max(every) * 2]
    for name, floor in document["floors"].items():
        peak, copied = floor["flops_per_second"], floor["bytes_per_second"]
        corner = peak / copied
        inside = [x for x in (ends[0], corner, ends[1]) if ends[0] <= x <= ends[1]]
        label = "limit on the GPU" if name == "cuda" else f"limit of {name} thread{'s' if name != '1' else ''}"
        limit, dashes = [min(peak, x * copied) for x in inside], "-" if name != "1" else "--"
        axes.plot(inside, limit, color=INK, linestyle=dashes, linewidth=1, label=label)
    for kind, marker, label in KINDS:
        if points[kind]:
            x, y, _ = zip(*points[kind], strict=True)
            axes.plot(x, y, linestyle="none", marker=marker, label=label, alpha=0.85)
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel="operations per byte moved (FLOP / byte), both counted", ylabel="operations per second (FLOP/s)")
    axes.legend()


WHO = "who updates"
LINES: dict[str, Callable[[str], bool]] = {  # sides of one line, by their names without threads
    "plain loop": lambda name: name == "plain",
    "plain loop, fastest other form": lambda name: name.startswith("plain "),
    "plain loop, compiled": lambda name: name.startswith("compiled"),
    "JAX, fastest form": lambda name: name.startswith("jax"),
    "ours": lambda name: name == "ours",
}


def against_batch(document: Mapping[str, Any]) -> Drawing | None:
    """Milliseconds of an update of LeNet against the batch, of everyone and of the limit; None if not measured."""
    table = updates_by_batch(document)
    if not table:
        return None
    who = list(dict.fromkeys(row[WHO] for row in table))
    return _measured(
        document,
        partial(_draw_against_batch, table),
        "batch",
        "An update of LeNet against its batch",
        f"Milliseconds of one update against the examples of its batch, on logarithmic axes, for {'; '.join(who)}. "
        "Each is in its fastest form and number of threads. Bands reach from the first to the third quartile.",
    )


def updates_by_batch(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of a long table: the batch M, who updates, and milliseconds of each round; of the limit one number."""
    found = []
    for batch, workload in speed.grown(document, "batch"):
        timed = {name: side["seconds"] for name, side in workload["sides"].items() if "seconds" in side}
        for label, belongs in LINES.items():
            fastest = speed.fastest({name: s for name, s in timed.items() if belongs(name.partition(", ")[0])})
            found += [{"M": batch, WHO: label, "ms": 1e3 * s} for s in timed.get(fastest or "", ())]
            if label == "ours" and fastest:
                limit = speed.attained(workload, fastest, document["floors"])
                found += [{"M": batch, WHO: "limit of ours", "ms": 1e3 * limit.limit_seconds}] if limit else []
    return found


def _draw_against_batch(table: list[dict[str, Any]], figure: Figure) -> None:
    axes = figure.add_subplot()
    frame = pd.DataFrame(table)
    for marker, (who, rounds) in zip(MARKERS, frame.groupby(WHO, sort=False), strict=False):
        low, middle, high = (rounds.groupby("M")["ms"].quantile(share) for share in (0.25, 0.5, 0.75))
        (line,) = axes.plot(middle, marker=marker, label=str(who))
        axes.fill_between(middle.index, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set(xscale="log", yscale="log")
    batches = sorted(frame["M"].unique())
    axes.set_xticks(batches, [f"{batch:g}" for batch in batches], minor=False)
    axes.set_xticks([], minor=True)
    axes.set(xlabel="examples of the batch, M", ylabel="milliseconds of an update")
    axes.legend()


def growth(document: Mapping[str, Any]) -> Drawing | None:
    """Seconds of a gradient against replicas, batch and parameters, and memory of a replica; None if not measured."""
    if not any(speed.grown(document, axis) for axis, _ in AXES):
        return None
    return _measured(
        document,
        partial(_draw_growth, document),
        "growth",
        "How the cost of a gradient grows",
        "Seconds of one gradient and its share of the update, with the number of threads that is fastest, against "
        "the number of replicas, the batch and the parameters of the network, and bytes that a replica keeps against "
        "parameters, on logarithmic axes. Bars reach from the first to the third quartile.",
        (8.4, 5.6),
    )


def _draw_growth(document: Mapping[str, Any], figure: Figure) -> None:
    panels = list(figure.subplots(2, 2).flat)
    for axes, (axis, label) in zip(panels, AXES, strict=False):
        axes.set(xlabel=label, ylabel="seconds per gradient")
        if measured := speed.grown(document, axis):
            _draw_axis(axes, measured)
            axes.legend()
    axes = panels[len(AXES)]
    axes.set(xlabel=AXES[-1][1], ylabel="bytes that a replica keeps")
    known = [(x, w["memory_per_replica_bytes"]) for x, w in speed.grown(document, "parameters")]
    if known := [(x, kept) for x, kept in known if kept]:
        axes.plot(*zip(*known, strict=True), marker="o")
        axes.set(xscale="log", yscale="log")


def _draw_axis(axes: Axes, measured: list[tuple[float, Mapping[str, Any]]]) -> None:
    for kind, marker, label in KINDS[:2]:
        sides = [(x, workload, speed.fastest(speed.timed(workload, kind))) for x, workload in measured]
        seen = [(x, *(speed.per_gradient(workload, side) or ())) for x, workload, side in sides if side]
        if seen:
            values, low, middle, high = np.array(seen).T  # [points] each
            name = label if kind == "ours" else "plain loop"
            bars = [middle - low, high - middle]
            axes.errorbar(values, middle, yerr=bars, marker=marker, label=name, capsize=2)
    axes.set(xscale="log", yscale="log")


def _id(document: Mapping[str, Any]) -> str:
    """What a document's place on the page is called."""
    return f"speed-{speed.file_stem(document).replace('.', '-')}"


def _measured(
    document: Mapping[str, Any],
    fill: Callable[[Figure], None],
    name: str,
    title: str,
    alt: str,
    size: tuple[float, float] = (6.4, 4.6),
) -> Drawing:
    artifact = Artifact(f"{_id(document)}/{name}", title, alt=alt, size=size)
    return stamped(Drawing(artifact, filled(artifact, fill), "", ("measured",), ()))
