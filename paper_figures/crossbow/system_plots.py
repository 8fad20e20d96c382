"""Drawings of the system: tasks on streams, the auto-tuner, idle time and memory (Figs. 7, 8; sections 3.4, 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paper_figures.crossbow import settings
from suite.papers.artifact import Evidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIMELINES = {"recorded": (1000, "ms, two learners on threads"), "virtual": (1, "task lengths, 2 GPUs of 2 learners")}


def draw_timelines(*names: str) -> Callable[[Evidence, Figure], None]:
    """Figs. 7 and 8: a recorded run of two learners on threads, and 2 GPUs with 2 learners in virtual time."""

    def draw(evidence: Evidence, figure: Figure) -> None:
        rows = figure.subplots(len(names), 1, squeeze=False)[:, 0]
        for axes, name in zip(rows, names, strict=True):
            _timeline(axes, evidence.run("tasks").curve(name), name)
        handles, labels = rows[0].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=3, loc="outside upper left")

    return draw


def _timeline(axes: Any, table: Any, name: str) -> None:
    colours = {"learn": "C0", "local": "C1", "global": "C2"}
    titles = {
        "learn": "learning task, with its batch",
        "local": "local synchronisation",
        "global": "global synchronisation",
    }
    scale, unit = TIMELINES[name]
    table = table[table["iteration"] < 4]
    several = table["device"].nunique() > 1
    streams = sorted(set(zip(table["device"], table["stream"], strict=True)), reverse=True)
    seen: set[str] = set()
    rows: list[dict[Any, Any]] = table.to_dict("records")
    for row in rows:
        kind, place = row["kind"], streams.index((row["device"], row["stream"]))
        left, length = scale * row["start"], scale * (row["end"] - row["start"])
        width = max(length, 0.02 if name == "recorded" else 0.0)
        axes.barh(place, width, left=left, color=colours[kind], label=None if kind in seen else titles[kind])
        seen.add(kind)
        if kind == "learn":
            axes.text(
                left + length / 2, place, f"B{row['batch']}", va="center", ha="center", fontsize=6.5, color="white"
            )
    labels = [f"GPU {device}, {stream}" if several else stream for device, stream in streams]
    axes.set_yticks(
        range(len(streams)),
        [text.removesuffix(" 0").removesuffix(" 1") if "sync" in text else text for text in labels],
    )
    axes.set_xlabel(f"time ({unit})")
    axes.grid(visible=False)


def draw_tuner(evidence: Evidence, figure: Figure) -> None:
    """Learners after each reading, Algorithm 2 and the settling rule, with a peak at 4."""
    axes = figure.subplots()
    table = evidence.run("tuner").curve("walks")
    for rule, rows in table[table["peak"] == 4].groupby("rule"):
        axes.step(rows["reading"], rows["learners"], where="post", label=str(rule))
    axes.axhline(4, color="0.5", linewidth=0.8, linestyle=":")
    axes.locator_params(axis="y", integer=True)
    axes.set_xlabel("reading of the throughput")
    axes.set_ylabel("learners")
    axes.legend()


def draw_idle(evidence: Evidence, figure: Figure) -> None:
    axes = figure.subplots()
    found = evidence.run("tasks").results
    axes.boxplot([found["idle_first_come"], found["idle_round_robin"]], tick_labels=["first come", "round robin"])
    axes.set_ylabel("idle stream-seconds (virtual)")


def draw_memory(evidence: Evidence, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    draw_plans_into(left, evidence)
    table = evidence.run("memory").curve("memory")
    table = table[table["batch"] == table["batch"].max()]
    for shared, rows in table.groupby("shared"):
        label = "activations shared" if shared else "activations of their own"
        right.plot(rows["learners"], rows["bytes"] / rows["bytes"].iloc[0], marker="o", label=label)
    right.set_xticks(sorted(table["learners"].unique()))
    right.set_xlabel("learners")
    right.set_ylabel("bytes / one learner's")
    right.legend()


def draw_plans_into(axes: object, evidence: Evidence) -> None:
    found = evidence.run("sizes").results
    saved = [100 * (1 - found[f"{name}_planned"] / found[f"{name}_bytes"]) for name in settings.NETWORKS]
    axes.bar(list(settings.NETWORKS.values()), saved)  # type: ignore[attr-defined]
    axes.axhline(50, color="C1", linestyle="--")  # type: ignore[attr-defined]
    axes.annotate("printed limit", (-0.4, 50.5), va="bottom")  # type: ignore[attr-defined]
    axes.set_ylim(0, 56)  # type: ignore[attr-defined]
    axes.grid(visible=False, axis="x")  # type: ignore[attr-defined]
    axes.set_ylabel("saved by the offline plan (%)")  # type: ignore[attr-defined]
    axes.tick_params(axis="x", rotation=30)  # type: ignore[attr-defined]
