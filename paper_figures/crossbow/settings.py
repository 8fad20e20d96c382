"""Training settings of Crossbow's figures at each profile, as plain run specifications.

Rates, momenta, weight decays and most batch sizes are inside the paper's pictures; they are taken from the authors'
scripts (lsds/Crossbow d4441b35, scripts/benchmarks) and marked where they differ.

Replicas, not devices, make the statistics: g GPUs with m learners each are k = g * m workers of one run. The same
groups of runs exist at every profile, on a smaller network below ``paper``: digits at ``smoke``, LeNet on a fixed
subset of MNIST at ``reduced``, ResNet-32 on CIFAR-10 at ``paper``. What a small machine can train of ResNet-32
itself are the first epochs on a subset, one seed: shown at ``reduced`` as a proxy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from suite.models.settings import caffe
from suite.spec import RunSpec

Method = Literal["sma", "ea-sgd", "s-sgd"]
Groups = dict[str, tuple[RunSpec, ...]]

NETWORKS = {
    "crossbow_lenet": "LeNet",
    "crossbow_resnet32": "ResNet-32",
    "crossbow_vgg16": "VGG-16",
    "crossbow_resnet50": "ResNet-50",
}
SEEDS = {"smoke": (0,), "reduced": (0, 1, 2), "paper": (0, 1, 2)}
LEARNERS = {"smoke": (1, 4), "reduced": (1, 4, 8, 16), "paper": (1, 2, 4, 8, 16, 32)}
TARGET = 0.80  # share correct, printed, of Figs. 3, 12 and 13; stand-ins: see readings.py
FINAL_TARGET = 0.88  # of Figs. 10, 14, 15 and 16
VGG_TARGET = 0.69
LENET_TARGET = 0.99
# A run that is only asked for its epochs to a target ends when it has answered: the median of five evaluations, which
# is the paper's metric, is above the target, and five epochs more show that it stays there.
STOP = {"median": 5, "after": 5}
TWO_LEVEL = {"smoke": (4, 2), "reduced": (8, 2), "paper": (16, 8)}  # learners, and the devices they are spread over
TAU_LEARNERS = {"smoke": 4, "reduced": 8, "paper": 16}  # replicas of the runs that synchronise every 4 iterations
MANY = {"smoke": 4, "reduced": 16, "paper": 16}  # "many learners"
LENET_IMAGES = 2000  # a fixed subset of MNIST's 60,000 training images at the reduced scale
LENET_BATCH = 16
LENET_EPOCHS = {1: 6, 4: 7, 8: 9, 16: 13}  # by learners, cut to a pilot in which 16 passed 85% at epoch 8
LENET_LEARNERS = (1, 2, 4, 8, 16)  # of the runs on all of MNIST
LENET_LENGTH = 20  # epochs of theirs; a run of SMA with four learners had not arrived after ten
CENTRE_MOMENTUM = 0.9  # sma.cu's constant when replicas have momentum
LONE_ALPHA = 0.1  # of one learner: 1/k = 1 would swap replica and centre; the authors' scripts have 0.1
CROSSBOW_BATCH = 64  # ResNet-32, section 5.2
RESNET32_EPOCHS = 140
RESNET32_DROPS = ((80, 0.1), (120, 0.01))  # (epoch, factor of the first rate)
VGG_HALVING, VGG_EPOCHS = 20, 250
RESNET50_DROPS = (30, 60)  # epochs; section 3.2 has them as common, not as its own


def algorithm(method: Method, learners: int, *, tau: int = 1, devices: int | None = None) -> dict[str, Any]:
    """SMA and EA-SGD with alpha = 1/k (0.1 for one learner), or the mean gradient of all learners.

    With ``devices`` SMA has two levels, and alpha follows the models averaged at each.
    """
    if method == "s-sgd":
        return {"name": "sgd"}
    momentum = CENTRE_MOMENTUM if method == "sma" else 0.0
    alpha = LONE_ALPHA if learners == 1 else 1 / learners
    averaging = {"alpha": alpha} if devices is None else {"devices": devices}
    return {"name": "crossbow", **averaging, "momentum": momentum, "tau": tau}


def training(
    base: dict[str, Any],
    method: Method,
    learners: int,
    seed: int,
    *,
    images: int,
    epochs: int,
    tau: int = 1,
    devices: int | None = None,
    evaluate: Mapping[str, int] | None = None,
    target: float | None = None,
) -> RunSpec:
    """A training run evaluated once an epoch; all methods read the same batches at the same rate.

    With a ``target`` (share correct) it ends ``STOP``'s epochs after the paper's metric reached it.
    """
    turns = images // (base["batch"] * learners)
    drops = [[epoch * turns, factor] for epoch, factor in base.get("epoch_drops", ())]
    settings = {key: value for key, value in base.items() if key != "epoch_drops"}
    if drops:
        settings["drops"] = drops
        settings["restart"] = method == "sma"
    if target is not None:
        settings["stop"] = {"metric": "test_error", "below": round(1 - target, 4), **STOP}
    return RunSpec(
        "train",
        {
            **settings,
            "algorithm": algorithm(method, learners, tau=tau, devices=devices),
            "workers": learners,
            "order": {"kind": "shuffled", "share": "pool"},
            "updates": turns * epochs,
            "evaluate": {"every": turns, "train_examples": 500, **(evaluate or {})},
            "record": {"every": 5},
        },
        seed,
    )


# lenet.sh has batches of 1 at rate 0.001 without momentum, for up to 100 epochs; 16, 0.01 and 0.9 reach the target in
# a few.
MNIST = {"name": "mnist", "transform": "scale"}
own = partial(caffe, multipliers=False)  # Crossbow's solver has none
LENET = own("crossbow_lenet", 1e-4, 0.01, batch=LENET_BATCH, data={**MNIST, "subset": LENET_IMAGES})
DIGITS = own("digits_lenet", 1e-4, 0.01, batch=8, data={"name": "digits", "transform": "scale", "size": 28})
CROPS = {"crop": 32, "margin": 4}
RESNET32 = own(
    "crossbow_resnet32", 1e-4, 0.1, batch=CROSSBOW_BATCH, epoch_drops=RESNET32_DROPS, augment=CROPS,
    data={"name": "cifar10", "transform": "signed"},
)  # fmt: skip
# The first epochs of RESNET32 (before its first drop) on a fixed fifth of the training images. The average model is
# evaluated with batch-norm statistics of its own, since those of the replicas belong to other weights.
RESNET32_PART = RESNET32 | {"data": {**RESNET32["data"], "subset": 10_000}, "epoch_drops": ()}
RESNET32_PART_EPOCHS = 10
RESNET32_PART_EVALUATED = {"test_examples": 2000, "recompute": 1000}
VGG_DROPS = tuple((e, 0.5 ** (e // VGG_HALVING)) for e in range(VGG_HALVING, VGG_EPOCHS, VGG_HALVING))
VGG16 = own(  # vgg.sh has batch 256, the library's VGG 128
    "crossbow_vgg16", 5e-4, 0.1, batch=128, epoch_drops=VGG_DROPS, augment=CROPS,
    data={"name": "cifar100", "transform": "signed"},
)  # fmt: skip


# What is trained, timed and measured in ResNet-32's place, and its training images.
IN_PLACE = {"smoke": (DIGITS, 1437), "reduced": (LENET, LENET_IMAGES), "paper": (RESNET32, 50_000)}


def stand_in(
    profile: str,
    method: Method,
    learners: int,
    seed: int,
    *,
    target: float | None = None,
    **options: Any,
) -> RunSpec:
    """The run of a profile in the place of ResNet-32's: on digits, LeNet, or ResNet-32 itself.

    ``options`` are ``tau`` and ``devices``. ``target`` ends ResNet-32's own run when it has answered, see
    :func:`training`; stand-ins keep their length.
    """
    base, images = IN_PLACE[profile]
    epochs = {"smoke": 12, "reduced": LENET_EPOCHS.get(learners, 0), "paper": RESNET32_EPOCHS}[profile]
    target = target if profile == "paper" else None
    return training(base, method, learners, seed, images=images, epochs=epochs, target=target, **options)


def named(names: Iterable[str], make: Callable[..., RunSpec], seeds: Sequence[int] = (0,)) -> Groups:
    """Groups called ``METHOD K``, ``METHOD K tau T`` or ``METHOD K devices G``, with a run of these for each seed."""
    found: Groups = {}
    for name in names:
        method, k, *rest = name.split()
        options = {rest[0]: int(rest[1])} if rest else {}
        found[name] = tuple(make(method, int(k), seed, **options) for seed in seeds)
    return found


def learners_in(name: str) -> int:
    """The K of a group called ``METHOD K``."""
    return int(name.split()[1])


def groups(profile: str, *names: str, target: float | None = None, seeds: Sequence[int] = ()) -> Groups:
    """The groups of these names that the profile has, with its seeds or these; ``target`` as :func:`stand_in`'s."""
    there = [name for name in names if learners_in(name) in LEARNERS[profile]]
    return named(there, partial(stand_in, profile, target=target), seeds or SEEDS[profile])


def called(found: Groups, names: Mapping[str, str]) -> Groups:
    """Groups under names that are the same at every profile: name -> name here, those that there are."""
    return {name: found[here] for name, here in names.items() if here in found}


def resnet32_part(*names: str) -> Groups:
    """Groups called ``METHOD K`` of ResNet-32 itself on 10,000 images of CIFAR-10, one seed."""
    make = partial(training, RESNET32_PART, images=10_000, epochs=RESNET32_PART_EPOCHS)
    return named(names, partial(make, evaluate=RESNET32_PART_EVALUATED))


def resnet32(profile: str, *names: str, target: float | None = None) -> Groups:
    """Groups called ``METHOD K``; at ``reduced`` ResNet-32 itself, with the learners that a small machine trains."""
    if profile == "reduced":
        return resnet32_part(*(name for name in names if learners_in(name) in (1, 4)))
    return groups(profile, *names, target=target)


def vgg16(profile: str) -> Groups:
    """VGG-16 on CIFAR-100 with one and three learners, and plain training; at the paper's scale only."""
    names = ("s-sgd 1", "sma 1", "sma 3") if profile == "paper" else ()
    return named(names, partial(training, VGG16, images=50_000, epochs=VGG_EPOCHS))


def lenet_target(profile: str) -> Groups:
    """Plain training of LeNet on all of MNIST, which sets Fig. 9's target; in full, 4 learners with 16 each."""
    if profile == "smoke":
        return {"s-sgd 1": (stand_in("smoke", "s-sgd", 1, 0),)}
    if profile == "paper":
        return {"s-sgd 4": lenet(profile)["s-sgd 4"]}
    base = {**LENET, "data": MNIST, "batch": 64, "epoch_drops": ((2, 0.1),)}
    return {"s-sgd 1": (training(base, "s-sgd", 1, 0, images=60_000, epochs=3),)}


def lenet(profile: str) -> Groups:
    """Groups ``METHOD K`` of LeNet on all of MNIST, at the paper's scale only; one learner is SMA's alone."""
    if profile != "paper":
        return {}
    names = [f"sma {k}" for k in LENET_LEARNERS]
    names += [f"{method} {k}" for method in ("ea-sgd", "s-sgd") for k in LENET_LEARNERS if k > 1]
    make = partial(training, {**LENET, "data": MNIST}, images=60_000, epochs=LENET_LENGTH)
    return named(names, make, SEEDS[profile])


def followed(profile: str) -> Groups:
    """Runs in which every replica is evaluated beside the average model, and one that grows from 1 to 4 learners."""
    base, images = ({**LENET, "data": MNIST}, 60_000) if profile == "paper" else IN_PLACE[profile]
    turns = images // (base["batch"] * 4)
    common = {**base, "algorithm": algorithm("sma", 4), "order": {"kind": "shuffled"}}
    common |= {"images": images, "epochs": LENET_LENGTH if profile == "paper" else 5}
    schedules = {"followed": [[0, 4]]}
    if profile != "reduced":
        schedules["growing"] = [[0, 1], [2 * turns, 2], [3 * turns, 4]]
    return {
        name: tuple(RunSpec("crossbow/followed", {**common, "learners": s}, seed) for seed in SEEDS[profile])
        for name, s in schedules.items()
    }


ALGEBRA: Groups = {"algebra": (RunSpec("crossbow/algebra"),)}
TASKS: Groups = {"tasks": (RunSpec("crossbow/tasks", {"repeats": 20}),)}
TUNER = RunSpec("crossbow/tuner", {"lost_runs": 500, "settling_runs": 1000})
SIZES = RunSpec("crossbow/sizes", {"batch": 32})


def throughput(profile: str) -> Groups:
    """Learners in one step against one after another and against one large batch.

    The group ``throughput`` is of the network that is trained in ResNet-32's place, others bear their network's name.
    """
    networks = {"throughput": IN_PLACE[profile][0]}
    how = {"learners": (1, 2, 3, 4), "turns": 3, "repeats": 7, "threshold": 0.05}
    if profile == "paper":
        networks = {"crossbow_lenet": LENET, **networks, "crossbow_vgg16": VGG16}
        how |= {"learners": (1, 2, 3, 4, 5, 6, 8), "turns": 50, "repeats": 15}
    return {
        group: (RunSpec("crossbow/throughput", {"model": s["model"]["name"], "batch": s["batch"], **how}),)
        for group, s in networks.items()
    }


def apart(profile: str) -> Groups:
    """Two equal devices that are tuned apart, on two networks: the cores of a quiet machine, no part of ``smoke``."""
    common = {"devices": 2, "most": 8, "turns": 25, "repeats": 20, "threshold": 0.05}
    sizes = {"digits_lenet": 4, "crossbow_lenet": LENET_BATCH} if profile == "reduced" else {}
    runs = (RunSpec("crossbow/apart", {"model": name, "batch": batch, **common}) for name, batch in sizes.items())
    return {"apart": tuple(runs)} if sizes else {}


def timed_groups(profile: str, *names: str, target: float | None = None) -> Groups:
    """Groups of :func:`groups`, and as ``throughput`` the run that measures how fast several learners are."""
    return {**groups(profile, *names, target=target), "throughput": throughput(profile)["throughput"]}


def memory(profile: str) -> Groups:
    """Bytes of one to four learners at several batch sizes."""
    network = IN_PLACE[profile][0]["model"]["name"]
    settings = {"model": network, "batches": (64, 128, 256), "learners": (1, 2, 4)}
    return {"memory": (RunSpec("crossbow/memory", settings),)}
