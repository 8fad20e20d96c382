"""Groups of runs that several artifacts share, by the names their measures know them by."""

from __future__ import annotations

from collections.abc import Iterable

from paper_figures.rudra.settings import Configuration, at_profile
from paper_figures.rudra.simulations import (
    SLOW,
    SPLITS,
    cifar_times,
    clock,
    identities,
    imagenet_messages,
    imagenet_times,
)
from suite.papers.artifact import Groups
from suite.spec import RunSpec


def label(configuration: Configuration) -> str:
    """The paper's (sigma, mu, lambda), with n for sigma."""
    return "({}, {}, {})".format(*configuration)


def training_groups(profile: str, configurations: Iterable[Configuration]) -> dict[str, tuple[RunSpec, ...]]:
    """Groups of the configurations that the profile runs."""
    found = {label(c): at_profile(c, profile) for c in configurations}
    return {name: specs for name, specs in found.items() if specs}


def modulation_groups(profile: str) -> Groups:
    """30-softsync at mu = 128 with both rates; 4-softsync too at full size."""
    found = training_groups(profile, [(30, 128, 30), (4, 128, 30)])
    groups = {}
    for n in (30, 4):
        name = label((n, 128, 30))
        if name in found:
            suffix = "" if n == 30 else " of 4-softsync"
            groups[f"alpha0/{n}"] = found[name]
            groups[f"alpha0{suffix}"] = at_profile((n, 128, 30), profile, modulated=False)
    return groups


def protocol_groups() -> Groups:
    """Learners that are alike but for a jitter of 5%."""
    return {
        "hardsync": (clock(0),),
        "async": (clock(30),),
        "n": tuple(clock(n) for n in SPLITS),
        "one learner": (clock(1, learners=1, gradients=2_000),),
        "stalled": (clock(30, slow=SLOW),),
        "identities": (identities(),),
    }


def tree_groups() -> Groups:
    """adv and adv* at the configuration of Table 4."""
    return {
        "adv": (imagenet_messages("adv", 1, 4, 54),),
        "adv*": (imagenet_messages("adv*", 1, 4, 54),),
        "identities": (identities(),),
        "times": (imagenet_times(),),
    }


def cifar_times_group() -> Groups:
    return {"times": (cifar_times(),)}


def imagenet_times_group() -> Groups:
    return {"times": (imagenet_times(),)}


def left_out_group(profile: str, spec: RunSpec) -> Groups:
    """A leave-one-out of a cost model: minutes, so not at smoke."""
    return {} if profile == "smoke" else {"left out": (spec,)}
