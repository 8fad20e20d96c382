"""What Crossbow does besides its two numbered algorithms: restart, averaging on two levels, memory, scheduling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper_figures.crossbow import plots, settings
from paper_figures.crossbow.readings import on_gpu, require, results, spread, telling
from paper_figures.crossbow.tables import accuracy_table
from suite.claims.estimate import exact, point
from suite.papers.artifact import Artifact, Evidence, Quantities
from suite.papers.counterfeits import counterfeit, edited, forged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from suite.runs.store import Run

MIB = 2**20


def runs_restart(profile: str) -> settings.Groups:
    return {"algebra": (settings.ALGEBRA,)}


def runs_hierarchical(profile: str) -> settings.Groups:
    """Learners averaged flat, and as many on several devices with a reference model each."""
    learners, devices = settings.TWO_LEVEL[profile]
    trained = settings.groups(profile, f"sma {learners}", f"sma {learners} devices {devices}")
    return {"algebra": (settings.ALGEBRA,), **trained}


def runs_memory(profile: str) -> settings.Groups:
    return {"sizes": (settings.SIZES,), "tasks": (settings.TASKS,), **settings.memory(profile)}


def runs_scheduler(profile: str) -> settings.Groups:
    return {"tasks": (settings.TASKS,)}


def measure_restart(evidence: Evidence) -> Quantities:
    return results(evidence, "algebra", {"from-average": ("restart", "restart_code")})


@counterfeit("crossbow/alg-restart/from-average")
def replicas_stay(evidence: Evidence) -> Evidence:
    """A restart leaves replicas where they are."""
    apart = evidence.run("algebra").results["least_distance"]
    return telling(evidence, "algebra", restart=apart, restart_code=apart)


def measure_hierarchical(evidence: Evidence) -> Quantities:
    return results(evidence, "algebra", {"single-gpu-flat": "single_learner_devices", "flat-equivalence": "staged"})


@counterfeit("crossbow/alg-hierarchical/single-gpu-flat", "crossbow/alg-hierarchical/flat-equivalence")
def levels_matter(evidence: Evidence) -> Evidence:
    """Averaging in two stages ends elsewhere than averaging at once."""
    apart = evidence.run("algebra").results["least_distance"]
    return telling(evidence, "algebra", single_learner_devices=apart, staged=apart)


def saved(run: Run) -> list[float]:
    """Per cent of the output buffers' bytes that the offline plan saves, network by network."""
    pairs = [(run.results[f"{name}_planned"], run.results[f"{name}_bytes"]) for name in settings.NETWORKS]
    return [100 * (1 - planned / apart) for planned, apart in pairs]


def measure_plans(evidence: Evidence) -> Quantities:
    run = evidence.run("sizes")
    yield "half", exact(saved(run), runs=[run.id], note=", ".join(settings.NETWORKS.values()))
    overwrites = [run.results[f"{name}_overwrites"] for name in settings.NETWORKS]
    yield "no-live-overwrite", exact(overwrites, runs=[run.id])


@counterfeit("crossbow/alg-memory/no-live-overwrite")
def buffer_released_early(evidence: Evidence) -> Evidence:
    return telling(evidence, "sizes", **{f"{name}_overwrites": 1.0 for name in settings.NETWORKS})


def measure_buffer(evidence: Evidence) -> Quantities:
    """Batches in use at one time in the virtual schedule, per learner."""
    run = evidence.run("tasks")
    table = run.curve("virtual")
    learn = table[table["kind"] == "learn"]
    held = [learn[learn["iteration"] == i]["batch"].nunique() for i in learn["iteration"].unique()]
    yield "buffer-size", exact(min(held) / learn["learner"].nunique(), runs=[run.id])


@counterfeit("crossbow/alg-memory/buffer-size")
def batches_shared_by_two(evidence: Evidence) -> Evidence:
    """Two learners work on one batch."""

    def edit(run: Run) -> Run:
        table = run.curve("virtual")
        return forged(run, virtual=table.assign(batch=table["batch"] // 2))

    return edited(evidence, edit, "tasks")


def measure_memory(evidence: Evidence) -> Quantities:
    """Exponents of bytes against batch and against learners, what a lone parameter vector takes left in."""
    import numpy as np

    run = evidence.run("memory")
    table = run.curve("memory")
    table = table[~table["shared"]]
    one, smallest = table[table["learners"] == 1], table[table["batch"] == table["batch"].min()]
    slopes = [
        float(np.polyfit(np.log(rows[axis]), np.log(rows["bytes"]), 1)[0])
        for rows, axis in ((one, "batch"), (smallest, "learners"))
    ]
    device = "a GPU" if on_gpu(run) else "a CPU"
    require("extra_own" in run.results, "a memory run that keeps the bytes of one learner more")
    own, shared = (run.results[f"extra_{how}"][-1] / MIB for how in ("own", "shared"))
    note = (
        f"{run.spec.settings['model']} on {device}; one learner more takes {own:.3g} MiB with activations of its own "
        f"and {shared:.3g} MiB sharing them, at batch {run.spec.settings['batches'][-1]}"
    )
    yield "linear", point(slopes, spread=0.05, runs=[run.id], note=note)


@counterfeit("crossbow/alg-memory/linear")
def activations_shared(evidence: Evidence) -> Evidence:
    """Learners that take turns with one set of activations: one more takes its replica alone."""
    import pandas as pd

    def edit(run: Run) -> Run:
        table = run.curve("memory")
        taken = table[table["shared"]].assign(shared=False)
        return forged(run, memory=pd.concat([table[table["shared"]], taken], ignore_index=True))

    return edited(evidence, edit, "memory")


def measure_idle(evidence: Evidence) -> Quantities:
    """Idle stream-seconds that first come, first served saves."""
    run = evidence.run("tasks")
    pairs = zip(run.results["idle_first_come"], run.results["idle_round_robin"], strict=True)
    steps = [slow - fast for fast, slow in pairs]
    yield "beats-round-robin", spread(steps, [run.id], "virtual time; 100 iterations")


def measure_tasks(evidence: Evidence) -> Quantities:
    """Learning tasks of a replica in an iteration, in the virtual and in the recorded trace."""
    return results(
        evidence, "tasks", {"one-task-per-replica": ("virtual_learn_per_replica", "recorded_learn_per_replica")}
    )


@counterfeit("crossbow/alg-scheduler/beats-round-robin")
def assignments_exchanged(evidence: Evidence) -> Evidence:
    found = evidence.run("tasks").results
    fast, slow = found["idle_first_come"], found["idle_round_robin"]
    return telling(evidence, "tasks", idle_first_come=slow, idle_round_robin=fast)


@counterfeit("crossbow/alg-scheduler/one-task-per-replica")
def every_other_replica(evidence: Evidence) -> Evidence:
    return telling(evidence, "tasks", virtual_learn_per_replica=0.5, recorded_learn_per_replica=0.5)


def draw_hierarchical(evidence: Evidence, figure: Figure) -> None:
    plots.curves(evidence, figure.subplots(), settings.FINAL_TARGET)


def draw_memory(evidence: Evidence, figure: Figure) -> None:
    """What the offline plan saves, and bytes against learners at the largest batch."""
    left, right = figure.subplots(1, 2)
    left.bar(list(settings.NETWORKS.values()), saved(evidence.run("sizes")))
    left.axhline(50, color="C1", linestyle="--")
    left.annotate("printed limit", (-0.4, 50.5), va="bottom")
    left.set_ylim(0, 56)
    left.grid(visible=False, axis="x")
    left.set_ylabel("saved by the offline plan (%)")
    left.tick_params(axis="x", rotation=30)
    table = evidence.run("memory").curve("memory")
    table = table[table["batch"] == table["batch"].max()]
    for shared, rows in table.groupby("shared"):
        label = "activations shared" if shared else "activations of their own"
        right.plot(rows["learners"], rows["bytes"] / rows["bytes"].iloc[0], marker="o", label=label)
    right.set_xticks(sorted(table["learners"].unique()))
    right.set_xlabel("learners")
    right.set_ylabel("bytes / one learner's")
    right.legend()


def draw_scheduler(evidence: Evidence, figure: Figure) -> None:
    axes = figure.subplots()
    found = evidence.run("tasks").results
    axes.boxplot([found["idle_first_come"], found["idle_round_robin"]], tick_labels=["first come", "round robin"])
    axes.set_ylabel("idle stream-seconds (virtual)")


ARTIFACTS = (
    Artifact(
        "crossbow/alg-restart",
        "Restart of averaging when a learning-rate change does not help",
        runs_restart,
        (measure_restart,),
    ),
    Artifact(
        "crossbow/alg-hierarchical",
        "Two-level synchronisation: inside a GPU, then between GPUs",
        runs_hierarchical,
        (measure_hierarchical,),
        draw_hierarchical,
        "Test accuracy against epochs, averaged flat and with a reference model for each device.",
        (7.4, 3.8),
        accuracy_table,
    ),
    Artifact(
        "crossbow/alg-memory",
        "Output-buffer reuse with reference counts",
        runs_memory,
        (measure_plans, measure_buffer, measure_memory),
        draw_memory,
        "Share of memory saved by the offline plan for four networks, and bytes against learners.",
    ),
    Artifact(
        "crossbow/alg-scheduler",
        "First-come first-served assignment of batches to free replicas",
        runs_scheduler,
        (measure_idle, measure_tasks),
        draw_scheduler,
        "Idle time under both ways to assign batches.",
    ),
)
