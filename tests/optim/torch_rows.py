"""What torch tests its own optimisers and schedulers for, by the names of its test functions, written for ours.

``python tests/optim/torch_rows.py > tests/optim/torch_rows.md`` writes the table of what works and what is refused.
Rows of ``TestOptimRenewed`` that need a GPU, compare implementations that ours do not have (foreach, capturable,
differentiable, complex, sparse-only) or test torch's own declarations have no row. Nor have those of which the
support matrix has one: parameters of several types, overflows, copies, states in files.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from test_corners import MAKERS as ALONE
from torch import Tensor, nn
from torch.optim import lr_scheduler as S
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch_schedules import SCHEDULES, Make, X, alike, fit, linear

from suite.optim import EASGD, ISGD, SMA, Softsync

MAKERS: dict[str, Callable[..., Any]] = {
    **ALONE,
    "SMA, 2 learners": partial(SMA, learners=2),
    "EASGD, 2 learners": partial(EASGD, learners=2, alpha=0.2),
    "Softsync, 2 learners": partial(Softsync, learners=2),
}


def values(module: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1).double() for parameter in module.parameters()])


def refused(errors: Any, call: Callable[[], Any]) -> None:
    try:
        call()
    except errors:
        return
    raise AssertionError("was taken")


# TestOptimRenewed


def errors(make: Make) -> None:
    module = linear()
    refused(ValueError, lambda: make(module, lr=-1.0))
    refused((TypeError, ValueError), lambda: make(module, [module[0].weight.detach().numpy()]))
    refused(ValueError, lambda: make(module, [{"params": [module[0].weight]}, {"params": [module[0].weight]}]))
    refused(TypeError, lambda: make(module, [{"params": {module[0].weight}}]))
    refused(TypeError, lambda: make(module, unheard_of=True))


def right_direction(make: Make, tensor_lr: bool = False, transposed: bool = False) -> None:
    module = linear()
    if transposed:
        module[0].weight = nn.Parameter(torch.randn(3, 4).t() / 2)
    opt = make(module, lr=torch.tensor(0.02) if tensor_lr else 0.02)
    losses = fit(opt, module, 30)
    assert sum(losses[-5:]) < sum(losses[:5])


def groups_in_the_right_direction(make: Make, **second: float) -> None:
    module = linear()
    groups = [{"params": module[0].parameters()}, {"params": module[2].parameters(), **second}]
    opt = make(module, groups, lr=0.02)
    begun, still = values(module[2]), second.get("lr") == 0.0
    losses = fit(opt, module, 30, S.StepLR(opt, 20))
    assert sum(losses[-5:]) < sum(losses[:5])
    assert not still or torch.equal(values(module[2]), begun) or isinstance(opt, ISGD)


def default_type(make: Make) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        module = linear()
        fit(make(module), module)
    finally:
        torch.set_default_dtype(torch.float32)


def fused_is_unfused(make: Make) -> None:
    ends = []
    for fused in (True, False):
        module = linear(torch.float64)
        fit(make(module, fused=fused), module, 10)
        ends.append(values(module))
    assert torch.allclose(*ends, rtol=1e-12)


def no_gradient(make: Make) -> None:
    module = linear()
    make(module).step(lambda: torch.zeros(()))


def no_gradient_in_part(make: Make) -> None:
    module = linear()
    opt, begun = make(module, momentum=0.0), values(module[2])
    module[0](X).sum().backward()
    opt.step(lambda: torch.zeros(()))
    assert torch.equal(values(module[2]), begun)


def zero_gradients(make: Make) -> None:
    module = linear()
    opt, begun = make(module), values(module)
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    opt.step(lambda: torch.zeros(()))
    assert torch.equal(values(module), begun)


def printed(make: Make) -> None:
    assert "Parameter Group 0" in repr(make(linear()))


def state(make: Make, named: tuple[bool, bool] = (False, False)) -> None:
    ends = []
    module, other = linear(), linear()
    opt = make(module, module.named_parameters() if named[0] else None)
    again = make(other, other.named_parameters() if named[1] else None)
    fit(opt, module, 5)
    held = copy.deepcopy(opt.state_dict())
    again.load_state_dict(held)
    for pair in ((opt, module), (again, other)):
        fit(*pair, 5)
        ends.append(values(pair[1]))
    assert torch.equal(*ends)


def step_hooks(make: Make, everywhere: bool = False) -> None:
    module, seen = linear(), []
    opt = make(module)
    if everywhere:
        removed = register_optimizer_step_post_hook(lambda o, a, k: seen.append("all"))
    opt.register_step_pre_hook(lambda o, a, k: seen.append("before"))
    opt.register_step_post_hook(lambda o, a, k: seen.append("after"))
    fit(opt, module, 1)
    if everywhere:
        removed.remove()
    assert seen == ["before", "after", *(["all"] if everywhere else [])]


def state_hooks(make: Make) -> None:
    opt = make(linear())
    opt.register_state_dict_pre_hook(lambda o: o.state.update(test=1))
    opt.register_state_dict_post_hook(lambda o, held: {**held, "ran": "test" in held["state"]})
    held = opt.state_dict()
    assert held["state"]["test"] == 1
    assert held["ran"]


def load_hooks(make: Make) -> None:
    opt = make(linear(), lr=0.01)

    def first(o: Any, held: dict[str, Any]) -> None:
        held["param_groups"][0]["lr"] = 0.002

    def second(o: Any, held: dict[str, Any]) -> dict[str, Any]:
        other = copy.deepcopy(held)
        other["param_groups"][0]["lr"] = 0.003
        return other

    opt.register_load_state_dict_pre_hook(second)
    opt.register_load_state_dict_pre_hook(first, prepend=True)
    opt.register_load_state_dict_post_hook(lambda o: o.state.update(ran=o.param_groups[0]["lr"]))
    opt.load_state_dict(opt.state_dict())
    assert opt.param_groups[0]["lr"] == opt.state["ran"] == 0.003


def non_empty_state(make: Make) -> None:
    module = linear()
    opt = make(module)
    fit(opt, module)
    assert opt.state_dict()["state"]["tensors"]


def gradients_stay(make: Make) -> None:
    module = linear()
    opt = make(module)
    for _ in range(3):
        grads = [torch.ones_like(parameter) for parameter in module.parameters()]
        for parameter, grad in zip(module.parameters(), grads, strict=True):
            parameter.grad = grad
        opt.step(lambda: torch.ones(()))
        assert all(torch.equal(grad, torch.ones_like(grad)) for grad in grads)


def zero_size(make: Make) -> None:
    module = linear()
    module.empty = nn.Parameter(torch.zeros(0, 3))
    opt = make(module)
    (module(X).sum() + module.empty.sum()).backward()
    opt.step(lambda: torch.ones(()))


def scalar(make: Make) -> None:
    module = nn.Module()
    module.number = nn.Parameter(torch.tensor(1.0))
    opt = make(module)
    module.number.square().backward()
    opt.step(lambda: torch.ones(()))


OPTIMISERS: dict[str, Callable[[Make], None]] = {
    "test_errors": errors,
    "test_forloop_goes_right_direction": right_direction,
    "test_forloop_goes_right_direction, not contiguous": partial(right_direction, transposed=True),
    "test_param_group_with_lrscheduler_goes_right_direction": groups_in_the_right_direction,
    "test_tensor_lr": partial(right_direction, tensor_lr=True),
    "test_set_default_dtype_works_with_foreach": default_type,
    "test_fused_matches_forloop": fused_is_unfused,
    "test_param_groups_weight_decay": partial(groups_in_the_right_direction, weight_decay=0.01),
    "test_param_groups_lr": partial(groups_in_the_right_direction, lr=0.0),
    "test_step_is_noop_when_params_have_no_grad": no_gradient,
    "test_step_is_noop_when_params_have_no_grad, in part": no_gradient_in_part,
    "test_step_is_noop_for_zero_grads": zero_gradients,
    "test_optimizer_can_be_printed": printed,
    "test_state_dict_deterministic": state,
    "test_can_load_from_to_named_state_dict": partial(state, named=(True, True)),
    "test_can_load_from_to_named_state_dict, from named": partial(state, named=(True, False)),
    "test_can_load_from_to_named_state_dict, to named": partial(state, named=(False, True)),
    "test_step_pre_hook, test_step_post_hook": step_hooks,
    "test_step_all_hooks": partial(step_hooks, everywhere=True),
    "test_state_dict_pre_post_hook": state_hooks,
    "test_load_state_dict_pre_post_hook": load_hooks,
    "test_non_empty_state": non_empty_state,
    "test_grads_are_never_inplaced_into": gradients_stay,
    "a parameter without numbers": zero_size,
    "a parameter of one number": scalar,
}

ROWS: dict[str, Callable[[Make], None]] = {
    **OPTIMISERS,
    **{name: partial(alike, kind=kind) for name, kind in SCHEDULES.items()},
}

REFUSED: dict[tuple[str, str], tuple[str, str]] = {}  # (row, optimiser) -> of the message, the reason in the table


def refuse(row: str, message: str, reason: str, *names: str) -> None:
    REFUSED.update({(row, name): (message, reason) for name in names or MAKERS})


refuse("test_step_is_noop_when_params_have_no_grad", "no parameter has", "Backward was forgotten.")


def outcome(name: str, row: str) -> str:
    """``works``, or the message of a refusal. Anything else is raised."""
    make = lambda module, params=None, **more: MAKERS[name](module, params, **{"lr": 0.01, "momentum": 0.5, **more})
    try:
        ROWS[row](make)
    except (ValueError, TypeError) as error:
        return str(error)
    return "works"


def table() -> Iterator[str]:
    """The table in Markdown."""
    reasons = list(dict.fromkeys(reason for _, reason in REFUSED.values()))
    yield "# What torch tests its own optimisers and schedulers for\n"
    yield "By the names of its tests; made and compared by `tests/optim/test_torch_rows.py`. The optimisers have one"
    yield "learner where none is named; *no* is refused in a sentence, for the reason below.\n"
    yield f"| | {' | '.join(MAKERS)} |"
    yield "|---" * (len(MAKERS) + 1) + "|"
    for row in ROWS:
        cells = [REFUSED.get((row, name)) for name in MAKERS]
        shown = ["yes" if cell is None else f"no ({reasons.index(cell[1]) + 1})" for cell in cells]
        yield f"| {row} | {' | '.join(shown)} |"
    yield ""
    yield from (f"{number}. {reason}" for number, reason in enumerate(reasons, start=1))


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        print("\n".join(table()))
