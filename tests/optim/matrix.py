"""What each optimiser can do, alone and over processes: the table of features, refusals with their reasons.

``test_matrix.py`` tries every cell. As a script this prints the support matrix, which ``sgd-suite refresh`` writes.
"""

from __future__ import annotations

from collections.abc import Callable

import features
import features_of_corners
import features_of_modules
from features import OPTIMISERS, PROCESSES, Job

FEATURES: dict[str, Callable[[Job], None]] = {
    "the loop of torch.optim, and `average()`": features.the_loop,
    "`step()` without a closure": features.without_closure,
    "`zero_grad(set_to_none=False)`": features.zeroed,
    "parameter groups with their own rate and decay": features.groups,
    "parameters frozen before": features.frozen,
    "parameters frozen later": features.freezing_later,
    "`add_param_group` while training": features.adding_a_group,
    "`clip_grad_norm_` between backward and step": features.clipping,
    "several backward passes before a step": features.accumulation,
    "torch's schedulers": features.schedulers,
    "`state_dict` by `torch.save`, to the same bits": features.by_torch_save,
    "`state_dict` by safetensors, to the same bits": features.by_safetensors,
    "parameters of several types": features.mixed_types,
    "`torch.autocast`": features.autocast,
    "`torch.amp.GradScaler`": features.grad_scaler,
    "`GradScaler.unscale_` before `step`": features.unscaling,
    "weights written in place between steps": features_of_modules.written,
    "weights loaded for all learners by `take_up()`": features_of_modules.taken_up,
    "a module moved, or its `.data` replaced": features_of_modules.moving_later,
    "buffers that change their shape": features_of_modules.growing_buffers,
    "a module compiled by `torch.compile`": features.compiled,
    "a module wrapped in DistributedDataParallel": features.distributed_data_parallel,
    "sparse gradients": features.sparse,
    "another base optimiser than SGD": features_of_corners.any_base,
    "gradients that are assigned": features_of_corners.assigned,
    "a batch left out by `zero_grad`": features_of_corners.skipped,
    "empty parameter groups": features_of_corners.empty_groups,
    "`copy.deepcopy`, pickle and `torch.save` of the optimiser": features_of_corners.copied,
    "parameters replaced in the module later": features_of_corners.left,
    "`join()` for loaders of unequal length": features_of_corners.joined,
    '`learners="auto"`': features_of_corners.tuned,
}
AVERAGING = tuple(name for name, kind in OPTIMISERS.items() if kind.takes("learners") and name != "Softsync")
SENT = "layer-wise exchange has sent the gradients by then"
AGES = "the learners hold weights of several ages, and new ones would have one"
REFUSALS: dict[tuple[str, int, str], tuple[str, str]] = {}  # (optimiser, processes, feature) -> (message, reason)


def refuse(feature: str, message: str, reason: str, *names: str, processes: tuple[int, ...] = (1, 2)) -> None:
    for name in names or OPTIMISERS:
        REFUSALS.update({(name, count, feature): (message, reason) for count in processes})


refuse(
    "a module wrapped in DistributedDataParallel",
    "averages gradients by itself",
    "it averages gradients by itself, before the algorithm could exchange what it exchanges",
)
refuse("sparse gradients", "sparse=False", "every algorithm adds up dense vectors of all parameters")
refuse("parameters frozen later", "frozen after", "momentum, decay and averaging would move them still")
refuse("`step()` without a closure", "needs a closure", "it may ask for the same batch again", "ISGD")
EARLY = "`GradScaler` looks for overflow before the closure has computed the gradients"
for feature in ("`torch.amp.GradScaler`", "`GradScaler.unscale_` before `step`"):
    refuse(feature, "before the closure has computed", EARLY, "ISGD")
refuse(
    "a module moved, or its `.data` replaced",
    "lies elsewhere",
    "the optimiser keeps all parameters in one flat tensor, which the module would leave",
)
for feature, message in (
    ("`clip_grad_norm_` between backward and step", "changed between backward and step"),
    ("several backward passes before a step", "backward ran twice"),
    ("`torch.amp.GradScaler`", "changed between backward and step"),
    ("`GradScaler.unscale_` before `step`", "changed between backward and step"),
):
    refuse(feature, message, SENT, "DelayedSGD, layer-wise")
refuse("`add_param_group` while training", "weights of several ages", AGES, "Softsync")
for feature in ("`state_dict` by `torch.save`, to the same bits", "`state_dict` by safetensors, to the same bits"):
    refuse(feature, "cannot go on to the same bits", "arrivals do not repeat themselves", "Softsync", processes=(2,))

WITHOUT_BASE = {"ISGD": "its paper's chart and steps are of SGD", "Softsync": "the server's solver is SGD"}
for name, kind in OPTIMISERS.items():
    if not kind.takes("base"):
        refuse("another base optimiser than SGD", "base", WITHOUT_BASE.get(name, "its steps are of SGD"), name)
refuse(
    "`copy.deepcopy`, pickle and `torch.save` of the optimiser",
    "cannot be copied or pickled",
    "its weights are the module's; a new optimiser of a copy takes its `state_dict`",
)
refuse("parameters replaced in the module later", "is not in the module any more", "the vector has the old ones")
JOIN = "`join()` for loaders of unequal length"
refuse(JOIN, "every process needs as many", "it holds batches against those of the epoch before", "ISGD")
refuse(JOIN, "needs layerwise=False", "gradients leave before the step", "DelayedSGD, layer-wise")
refuse(JOIN, "wait for nobody", "learners of a server wait for nobody", "Softsync", processes=(2,))
AUTO = '`learners="auto"`'
for name, kind in OPTIMISERS.items():
    if not kind.takes("learners"):
        refuse(AUTO, "learners", "a process has one learner", name)
    elif not kind.takes("max_learners"):
        refuse(AUTO, "learners='auto' must be", "the tuner is SMA's", name)
LATER = "weights written in place between steps"
refuse(LATER, "call take_up() after writing", "each learner has weights of its own", *AVERAGING)
refuse(LATER, "call take_up() after writing", "each learner has weights of its own", "Softsync", processes=(1,))
for feature, message in (
    (LATER, "the next pull would undo"),
    ("weights loaded for all learners by `take_up()`", "server"),
):
    refuse(feature, message, "the server has the weights", "Softsync", processes=(2,))


def tried(job: Job, feature: str) -> str:
    """``works``, or the message of the refusal."""
    try:
        FEATURES[feature](job)
    except (ValueError, RuntimeError, TypeError, AssertionError) as error:
        if hasattr(job.made, "fail"):  # as leaving the block by an error does
            job.made.fail()
        return f"{type(error).__name__}: {error}"
    return "works"


def page() -> str:
    """The support matrix in Markdown."""
    reasons = list(dict.fromkeys(reason for _, reason in REFUSALS.values()))
    text = [
        "# What the optimisers support",
        "",
        "Made from the tests: `tests/optim/test_matrix.py` tries every cell and compares this page with what it",
        "expects. *yes* works; *no* is refused by an error that says why, and the number leads to the reason.",
        "Optimisers with learners have two in each process and DelayedSGD has a delay of 1; Softsync is",
        "`parameter_server`. PostLocalSGD is LocalSGD with another rule of when to average.",
        "",
        "A parameter without a gradient, which `torch.optim` leaves alone, has one of zeros here: momentum, decay",
        "and averaging move it. A step without any gradient is refused in one process.",
        "",
        "`get_optimizer_state_dict` of `torch.distributed.checkpoint` knows states of parameters alone. It makes",
        "a step by itself where no parameter has a gradient, and ends with `KeyError: 'tensors'`: use `opt.save`.",
    ]
    for count, title in PROCESSES.items():
        text += ["", f"## {title[0].upper()}{title[1:]}", "", f"| | {' | '.join(OPTIMISERS)} |"]
        text += ["|---" * (len(OPTIMISERS) + 1) + "|"]
        for feature in FEATURES:
            cells = [REFUSALS.get((name, count, feature)) for name in OPTIMISERS]
            shown = ["yes" if cell is None else f"no ({reasons.index(cell[1]) + 1})" for cell in cells]
            text.append(f"| {feature} | {' | '.join(shown)} |")
    text += ["", "## Why not", ""]
    text += [f"{number}. {reason[0].upper()}{reason[1:]}." for number, reason in enumerate(reasons, start=1)]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    print(page(), end="")
