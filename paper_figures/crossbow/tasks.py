"""Table 1 and the system: tasks on streams, the auto-tuner's rule, memory (Figs. 7 and 8, section 4)."""

from __future__ import annotations

from paper_figures.crossbow import arithmetic, settings
from paper_figures.crossbow.readings import always, ids, on_gpu, require, results, spread
from paper_figures.crossbow.system_plots import draw_idle, draw_memory, draw_timelines, draw_tuner
from suite.claims.measured import Measured, exact, point
from suite.papers.artifact import Artifact, Evidence, Quantities

TASKS = always("tasks", settings.TASKS)
TUNER = always("tuner", settings.TUNER)
SIZES = always("sizes", settings.SIZES)
CLAIM_OF = {"crossbow_lenet": "lenet", "crossbow_resnet32": "resnet-32", "crossbow_vgg16": "vgg-16"}
CLAIM_OF["crossbow_resnet50"] = "resnet-50"


def measure_sizes(evidence: Evidence) -> Quantities:
    """Table 1: parameters and operators of the networks that the run built."""
    run = evidence.run("sizes")
    for network, claim in CLAIM_OF.items():
        size = run.results[f"{network}_parameters"] * arithmetic.FLOAT / arithmetic.MIB
        yield f"{claim}-model-mb", exact(size, runs=[run.id])
        yield f"{claim}-ops", exact(run.results[f"{network}_operators"], runs=[run.id])
    resnet = [run.results[f"crossbow_resnet50_{what}"] for what in ("parameters", "operators", "bytes")]
    text = (resnet[0] * arithmetic.FLOAT / arithmetic.MIB, resnet[1], resnet[2] / 2**30)
    batch = run.spec.settings["batch"]
    note = f"outputs of forward and gradient operators at batch {batch}, each in its own buffer"
    yield "resnet50-text", point(text, kind="proxy", runs=[run.id], note=note)


def measure_plans(evidence: Evidence) -> Quantities:
    run = evidence.run("sizes")
    found = run.results
    saved = [100 * (1 - found[f"{name}_planned"] / found[f"{name}_bytes"]) for name in settings.NETWORKS]
    yield "half", exact(saved, runs=[run.id], note="LeNet, ResNet-32, VGG-16, ResNet-50")
    yield "no-live-overwrite", exact([found[f"{name}_overwrites"] for name in settings.NETWORKS], runs=[run.id])


def measure_buffer(evidence: Evidence) -> Quantities:
    """Batches in use at one time in the recorded and virtual schedules, per learner."""
    run = evidence.run("tasks")
    table = run.curve("virtual")
    learn = table[table["kind"] == "learn"]
    held = [learn[learn["iteration"] == i]["batch"].nunique() for i in learn["iteration"].unique()]
    yield "buffer-size", exact(min(held) / learn["learner"].nunique(), runs=[run.id])


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
    device = "a GPU" if on_gpu(run) else "a CPU, where saved tensors and state are counted"
    made = "measured" if on_gpu(run) else "proxy"
    require("extra_own" in run.results, "a memory run that keeps the bytes of one learner more")
    own, shared = (run.results[f"extra_{how}"][-1] / arithmetic.MIB for how in ("own", "shared"))
    note = (
        f"{run.spec.settings['model']} on {device}; one learner more takes {own:.3g} MiB with activations of its own "
        f"and {shared:.3g} MiB sharing them, at batch {run.spec.settings['batches'][-1]}"
    )
    yield "linear", point(slopes, kind=made, spread=0.05, runs=[run.id], note=note)


def measure_idle(evidence: Evidence) -> Quantities:
    run = evidence.run("tasks")
    pairs = zip(run.results["idle_first_come"], run.results["idle_round_robin"], strict=True)
    steps = [slow - fast for fast, slow in pairs]
    yield "beats-round-robin", spread(steps, "simulated", [run.id], "virtual time; 100 iterations")


def measure_few_first(evidence: Evidence) -> Quantities:
    """Growing from 1 to 4 learners against 4 throughout: difference of mean test error, a proxy of epochs."""
    steps = []
    for grown, fixed in zip(evidence.runs("growing"), evidence.runs("followed"), strict=True):
        errors = [run.curve("models")["centre_error"].mean() for run in (fixed, grown)]
        steps.append(100 * float(errors[0] - errors[1]))
    note = "points of mean test error over five epochs, in place of epochs"
    yield (
        "few-first",
        Measured(*_bounds(steps), "proxy", len(steps), tuple(ids(evidence, "growing", "followed")), note),
    )


def _bounds(steps: list[float]) -> tuple[tuple[float], tuple[float], tuple[float]]:
    mean = sum(steps) / len(steps)
    return (mean,), (min(steps),), (max(steps),)


def measure_milliseconds(evidence: Evidence) -> Quantities:
    """The longest change of the number of learners, in iterations of one learner here; on a GPU in milliseconds."""
    for name in evidence.groups:
        if name in settings.NETWORKS or name == "digits_lenet":
            run = evidence.run(name)
            require("resize_seconds" in run.results, "a throughput run that keeps the seconds of a change")
            share = run.results["resize_over_iteration"]
            note = f"{name}: {share:.2f} of one learner's iteration, on {'a GPU' if on_gpu(run) else 'a CPU'}"
            seconds = run.results["resize_seconds"]
            yield "milliseconds", point(1000 * seconds, kind="proxy", runs=[run.id], note=note)


def tuner_runs(profile: str) -> settings.Groups:
    return {
        **TUNER(profile),
        "algebra": (settings.ALGEBRA,),
        **settings.throughput(profile),
        **settings.followed(profile),
    }


BOTH = ("virtual", "recorded")

ARTIFACTS = {
    "table1": Artifact(
        "crossbow/table1", "Benchmark models and data sets", SIZES, (arithmetic.table1_inputs, measure_sizes)
    ),
    "fig7": Artifact(
        "crossbow/fig7",
        "Learners, streams and batches of a run",
        TASKS,
        (results("tasks", {"pools": tuple(f"{name}_learn_after_return" for name in BOTH)}),),
        draw_timelines("virtual"),
        "Timelines of learning, local and global synchronisation tasks on their streams.",
        (6.4, 3.4),
    ),
    "fig8": Artifact(
        "crossbow/fig8",
        "Learning and synchronisation tasks on streams: a recorded run and 2 GPUs with 2 learners each",
        TASKS,
        (
            results(
                "tasks",
                {
                    "one-local-per-replica": (
                        *(f"{name}_local_per_replica" for name in BOTH),
                        *(f"{name}_local_on_stream_of_learning" for name in BOTH),
                    ),
                    "overlap": tuple(f"{name}_iterations_overlapping" for name in BOTH),
                    "dependency": tuple(f"{name}_local_after_average" for name in BOTH),
                },
            ),
            arithmetic.fig8,
        ),
        draw_timelines("recorded", "virtual"),
        "Timelines of learning, local and global synchronisation tasks on their streams.",
        (6.4, 5.0),
    ),
    "alg2": Artifact(
        "crossbow/alg2",
        "Choosing the number of learners per GPU from throughput",
        tuner_runs,
        (
            results(
                "tuner",
                {
                    "starts-at-one": "starts_at",
                    "adds-first": "after_first",
                    "adds-on-rise": "on_rise",
                    "removes-on-fall": "on_fall",
                    "holds-on-plateau": "on_plateau",
                    "finds-peak": "literal_distance",
                },
            ),
            results("algebra", {"new-replica-from-average": "newcomer"}),
            measure_milliseconds,
            measure_few_first,
        ),
        draw_tuner,
        "Algorithm 2 cycles around a peak at four learners; the settling rule stops there.",
    ),
    "alg-memory": Artifact(
        "crossbow/alg-memory",
        "Output-buffer reuse with reference counts",
        lambda profile: {**SIZES(profile), **TASKS(profile), **settings.memory(profile)},
        (measure_plans, measure_buffer, measure_memory),
        draw_memory,
        "Share of memory saved by the offline plan for four networks, and bytes against learners.",
    ),
    "alg-scheduler": Artifact(
        "crossbow/alg-scheduler",
        "First-come first-served assignment of batches to free replicas",
        TASKS,
        (
            measure_idle,
            results("tasks", {"one-task-per-replica": tuple(f"{name}_learn_per_replica" for name in BOTH)}),
        ),
        draw_idle,
        "Idle time under both ways to assign batches.",
    ),
}
