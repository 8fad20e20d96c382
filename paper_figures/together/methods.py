"""The methods of the board: what each may choose, and the training that a choice leads to.

A method is tried at as many settings as every other. A trial draws the rate from the box of its task, the momentum
from ``momenta`` and one parameter of the method's own from ``own``. Rates are drawn on a logarithmic scale, one from
each of as many equal intervals as there are trials; the other two go round their values. All three are shuffled, by
the same seed for all methods.

The rate that is drawn for SGD's family is that over 1 - momentum, by which the weights move in the long run; for
Adam's it is the rate itself. A method of another package registers an object of this kind under the entry-point group
``sgd_suite.methods`` and stands on every board from then on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from paper_figures.together.tasks import TUNING_SEED, Task
from suite.spec import seed
from suite.tables import Table

Settings = dict[str, Any]


class Trial(NamedTuple):
    """What a trial draws: learning rate of the local solver, momentum, and the method's own parameter."""

    rate: float
    momentum: float
    own: float


@dataclass(frozen=True)
class Method:
    """A method with so many learners."""

    name: str
    label: str
    learners: int
    settings: Callable[[Task, Method, Trial], Settings]  # of ``train``, or of a server's training
    time: str  # how its learners exchange: a name of ``seconds.TIMES``
    own: tuple[str, tuple[float, ...]] = ("none", (0.0,))  # of its own parameter: name and values
    momenta: tuple[float, ...] = (0.0, 0.5, 0.9)
    adaptive: bool = False  # its rates are those of Adam's family
    shares: str = ""  # the method whose runs are its own too, since both make the same updates
    by_law: bool = False  # whether its own parameter is the batch size, which the inverse law chooses

    def at(self, learners: int) -> Method:
        """The same method with so many learners; its name says how many."""
        return replace(
            self,
            name=f"{self.name}-{learners}",
            learners=learners,
            shares=f"{self.shares}-{learners}" if self.shares else "",
        )


def trials(task: Task, method: Method) -> list[Trial]:
    """The trials of a method on a task; behind those of the law what else it may choose."""
    return candidates(task, method) if method.by_law else drawn(task, method, task.trials)


def candidates(task: Task, method: Method) -> list[Trial]:
    """Two batch sizes at each of half as many rates, as the law has two constants; then all sizes at these rates."""
    rates, tried = drawn(task, method, task.trials // 2), (4 * task.batch, task.batch // 2, task.batch)
    pilots = [rates[i % len(rates)]._replace(own=tried[i // len(rates)]) for i in range(task.trials)]
    others = [rate._replace(own=size) for rate in rates for size in task.sizes]
    return pilots + [each for each in others if each not in pilots]


def drawn(task: Task, method: Method, count: int) -> list[Trial]:
    """So many trials, drawn."""
    draw = random.Random(seed("together", task.name, count))
    low, high = task.adaptive_rates if method.adaptive else task.rates
    strata = draw.sample(range(count), count)
    places = [(stratum + draw.random()) / count for stratum in strata]
    momenta, own = (draw.sample(range(count), count) for _ in range(2))
    found = []
    for place, i, j in zip(places, momenta, own, strict=True):
        momentum = method.momenta[i % len(method.momenta)]
        rate = low * (high / low) ** place
        scaled = rate if method.adaptive else rate * (1 - momentum)
        found.append(Trial(float(f"{scaled:.4g}"), momentum, method.own[1][j % len(method.own[1])]))
    return found


def training(
    task: Task, method: Method, trial: Trial, algorithm: Settings, *, joint: bool = False, gathered: int = 0
) -> Settings:
    """Settings of one training in which every learner reads batches of the task's size.

    ``joint`` makes one batch of those of all learners. ``gathered`` gradients make an update; 0: one of each learner.
    """
    workers = 1 if joint else method.learners
    each = gathered or method.learners
    return {
        "algorithm": algorithm,
        "descent": {"rule": "torch", "momentum": trial.momentum, "decay": task.decay},
        "rate": trial.rate,
        "schedule": {"warmup": task.warmup // each},
        "batch": task.batch * (method.learners if joint else 1),
        "workers": workers,
        "order": {"kind": "fixed-cycle", **({"share": "pool"} if workers > 1 else {})},
        "updates": task.budget // each,
        "evaluate": {"every": task.every // each},
    }


def sgd(task: Task, method: Method, trial: Trial) -> Settings:
    """One gradient of the batches of all learners an update."""
    return training(task, method, trial, {"name": "sgd"}, joint=True)


def sgd_of_batch(task: Task, method: Method, trial: Trial) -> Settings:
    """SGD with another batch size, on as many images in all and between two evaluations."""
    size = int(trial.own)
    updates, every, warmup = (count * task.batch // size for count in (task.budget, task.every, task.warmup))
    changed = {"batch": size, "updates": updates, "evaluate": {"every": every}, "schedule": {"warmup": warmup}}
    return {**sgd(task, method, trial), **changed}


def adamw(task: Task, method: Method, trial: Trial) -> Settings:
    descent = {"rule": "adamw", "beta1": trial.momentum, "decay": trial.own}
    return {**sgd(task, method, trial), "descent": descent}


def isgd(task: Task, method: Method, trial: Trial) -> Settings:
    algorithm = {"name": "isgd", "batches": "epoch", "zeta": trial.own * trial.rate, "margin": 2.0, "stop": 5}
    return training(task, method, trial, algorithm)


def local_sgd(task: Task, method: Method, trial: Trial) -> Settings:
    return training(task, method, trial, {"name": "local_sgd", "h": int(trial.own)})


def post_local_sgd(task: Task, method: Method, trial: Trial) -> Settings:
    switch = round(trial.own * task.budget / method.learners)
    return training(task, method, trial, {"name": "post_local_sgd", "h": POST_LOCAL_STEPS, "switch": switch})


def diloco(task: Task, method: Method, trial: Trial) -> Settings:
    """AdamW inside, at the decay of libraries; the momentum that is drawn is that of the outer step."""
    algorithm = {"name": "diloco", "h": int(trial.own), "alpha": 0.7, "momentum": trial.momentum}
    descent = {"rule": "adamw", "beta1": 0.9, "decay": 0.01}
    return {**training(task, method, trial, algorithm), "descent": descent}


def delayed(task: Task, method: Method, trial: Trial) -> Settings:
    return training(task, method, trial, {"name": "matex_agd", "delay": 1})


def softsync(task: Task, method: Method, trial: Trial) -> Settings:
    """A server that updates after every k / n gradients; in which order they arrive is drawn at the middle link."""
    from paper_figures.together.seconds import server

    n = int(trial.own)
    algorithm = {"name": "rudra", "workers": method.learners, "n": n, "history": 4 * n + 8}
    found = training(task, method, trial, algorithm, gathered=method.learners // n)
    return {**found, "server": server(task)}


def sma(task: Task, method: Method, trial: Trial, momentum: float | None = None) -> Settings:
    """The centre has this momentum, or that of the replicas, as in the authors' code."""
    centre = trial.momentum if momentum is None else momentum
    algorithm = {"name": "crossbow", "alpha": trial.own / method.learners, "momentum": centre}
    return training(task, method, trial, algorithm)


POST_LOCAL_STEPS = 8
STEPS = ("local steps H", (2.0, 4.0, 8.0, 16.0))
ALONE = (
    Method("sgd", "SGD", 1, sgd, "alone"),
    Method("adamw", "AdamW", 1, adamw, "alone", ("decay", (0.0, 0.01, 0.1)), (0.0, 0.9, 0.95), adaptive=True),
    Method("isgd", "ISGD", 1, isgd, "alone", ("zeta / rate", (0.1, 1.0, 10.0))),
    Method("law", "SGD, the law's batch", 1, sgd_of_batch, "alone", ("batch size", (0.0,)), by_law=True),
)
SYNCHRONOUS = Method("sync", "synchronous SGD", 4, sgd, "blocking")
LOCAL = Method("local", "Local SGD", 4, local_sgd, "local", STEPS)
SMA = Method("sma", "SMA", 4, sma, "overlapped", ("alpha k", (0.4, 0.9, 1.6)))
PARALLEL = (
    SYNCHRONOUS,
    Method("hardsync", "hardsync", 4, sgd, "hardsync", shares="sync"),
    Method("layerwise", "layer-wise", 4, sgd, "layer-wise", shares="sync"),
    Method("delayed", "delayed (1)", 4, delayed, "delayed"),
    Method("softsync", "n-softsync", 4, softsync, "softsync", ("n", (1.0, 2.0, 4.0))),
    LOCAL,
    Method(
        "postlocal", "post-local SGD", 4, post_local_sgd, "post-local", ("switch / budget", (0.05, 0.1, 0.2, 0.4))
    ),
    Method("diloco", "DiLoCo", 4, diloco, "local", STEPS, adaptive=True),
    Method("easgd", "EA-SGD", 4, partial(sma, momentum=0.0), "overlapped", ("alpha k", (0.4, 0.9, 1.6))),
    SMA,
)
MANY = (SYNCHRONOUS, LOCAL, SMA)  # those with sixteen learners too
OTHERS: Table[Method] = Table("method", {})  # of other packages


def methods(task: Task) -> tuple[Method, ...]:
    """The methods of a task in the order of the board: one learner, four, sixteen, then those of other packages."""
    four = [method.at(4) for method in PARALLEL]
    sixteen = [method.at(16) for method in MANY] if 16 in task.learners else []
    alone = [method for method in ALONE if task.update_seconds or not method.by_law]
    return (*alone, *four, *sixteen, *(OTHERS[name] for name in sorted(OTHERS)))


def study(task: Task, method: Method) -> Mapping[str, Any]:
    """Settings of ``together/study`` for a method on a task."""
    drawn = trials(task, method)
    tried = [method.settings(task, method, trial) for trial in drawn]
    chosen = {"tried": task.trials, "update_seconds": [[size, task.update_seconds[size]] for size in task.sizes]}
    return {
        "data": {**task.data, "subset": task.subset},
        "model": dict(task.model),
        "record": {"every": 64},
        **tried[0],
        "study": {
            "trials": tried,
            "tuning_seed": TUNING_SEED,
            "seeds": list(task.seeds),
            "batch": task.batch,
            "validation": task.validation,
            "target": task.target,
            "median": task.median,
            **(chosen if method.by_law else {}),
        },
    }
