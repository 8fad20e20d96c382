"""How the optimisers step: they look like torch's, and hand every update to a reference implementation.

``torch.optim.Optimizer`` supplies parameter groups, hooks, closures and what schedulers expect. Here stand the
vector that the algorithms see, the learners that take turns in one module, the agreement of several processes and
steps that all must skip alike (mixed precision). :mod:`suite.optim.base` writes and reads their state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from reference_impls.contract import Sent, Turn
from suite.communication.collectives import Processes, in_process
from suite.communication.group import Group
from suite.optim import averaging, joining
from suite.optim.core import Core, widened
from suite.optim.module import Buffers, Membership, Reminder, check_device, copied, digest, tested, unwrapped
from suite.optim.solver import (
    Base,
    Grouped,
    Wrapped,
    check_names,
    comparable,
    current,
    parameters_of,
    prototype,
    sgd_defaults,
)
from suite.optim.vector import Loss, Pieces, Vector

Closure = Callable[[], Any]
Collected = tuple[Tensor | Pieces, Sent]  # sums of gradients, and what of them has been sent
FUSED = (torch.float32, torch.float64)  # types that torch's fused SGD takes on every device
FOREIGN = ("dampening", "maximize", "nesterov")  # settings of torch's SGD that the papers' has not


class Steps(torch.optim.Optimizer):
    """Set-up, steps and the model to test. :class:`~suite.optim.base.Algorithm` adds what is saved and resumed."""

    learners = 1  # replicas that take turns in this process
    _step_supports_amp_scaling = True
    _uneven = False  # within ``join``
    _no_loss = 0.0  # what stands for the loss of a step without a closure
    _at_once = True  # an update uses a gradient as it comes, and once, so it may stay where backward left it

    def __init__(
        self,
        module: nn.Module,
        params: Iterable[Any] | None,
        *,
        settings: Mapping[str, Any],
        base: Base | None = None,
        fused: bool | None,
        group: Group | None,
    ):
        """``settings`` are those of ``base``, by default of SGD; None stands for one that was not given."""
        self.module = unwrapped(module)
        params = parameters_of(self.module, params)
        if isinstance(base, Steps):
            raise ValueError("base must be an optimiser of one learner, such as torch.optim.AdamW")
        if base is None:
            self.base, defaults = None, sgd_defaults(type(self), settings, params)
        else:
            self.base = prototype(type(self), base, params, settings, fused)
            defaults = self.base.defaults
            params = [{**group, "params": list(group["params"])} for group in self.base.param_groups]
        self.group = joining.group() if group is None else group
        self.t = 0  # updates made
        self._begun = False
        self._names: dict[Tensor, str] = {parameter: name for name, parameter in self.module.named_parameters()}
        self._frozen: list[Tensor] = []
        super().__init__(params, defaults)
        self._lay_out()
        check_device(self.vector, self.group)
        self._fused = self.base is not None or (self.vector.dtype in FUSED if fused is None else fused)
        self.solver: Grouped | Wrapped = (
            Grouped(self.vector, self.param_groups, fused=self._fused)
            if self.base is None
            else Wrapped(self.vector, self.param_groups, self.base)
        )
        self.group.agree(self._facts() | self._group_settings())
        self._share()
        joining.own_random_numbers(self.group)
        self.buffers = Buffers(self._membership, self.learners)
        copied(self.module, {id(held): held for held in [*self.module.parameters(), *self.module.buffers()]})
        self._losses: list[Loss] = []  # of the learners that have had their batch in this update
        self.core = self._core(self.vector.x if self._fused else None)
        if self._fused and not self.core.in_place:  # a rule that has no update in place makes new vectors
            if not isinstance(self.solver, Grouped):
                name = type(self.core.algorithm).__name__
                raise ValueError(f"{name} has no update in place, which base needs")
            self._fused = self.solver.fused = False
            self.core = self._core(None)
        self.core_state = self.core.init(self.vector.x)
        self._begun = True
        if self.core.algorithm.replicated or self.learners > 1:
            Reminder(self.module, self)
        self._load()

    # What a subclass says

    def _core(self, weights: Tensor | None) -> Core:
        """The reference implementation, configured; it updates ``weights`` [d] in place if they are given."""
        raise NotImplementedError

    def _facts(self) -> dict[str, Any]:
        """What must be the same in all processes, and when a state is loaded."""
        solver = {} if self.base is None else {"base": type(self.base).__name__}
        return solver | {
            "optimiser": type(self).__name__,
            "model": digest(self.module, self.vector),
            "learners": self.learners,
            "number of processes": self.group.size,
        }

    def _group_settings(self) -> dict[str, Any]:
        """What must be the same in all processes and changes with a schedule."""
        return {"the groups' settings": [comparable(group) for group in self.param_groups]}

    # Set-up

    def _lay_out(self) -> None:
        self.vector = Vector([group["params"] for group in self.param_groups])
        self._gradients = self.vector.x.new_zeros(0, self.vector.d)  # a row for each learner, once one is needed
        self._views: list[list[Tensor]] = []
        self._membership = Membership(self.module, self.vector.parameters)

    def _reserve(self, rows: int) -> None:
        """Have so many rows for gradients, as many as there are keeping what is in them."""
        if (missing := rows - len(self._gradients)) > 0:
            self._gradients = torch.cat([self._gradients, self.vector.x.new_zeros(missing, self.vector.d)])
            self._views = [self.vector.views(row) for row in self._gradients]

    def _untrained(self) -> dict[str, Tensor]:
        """The module's other parameters: frozen, or in no group."""
        trained = {id(parameter) for parameter in self.vector.parameters}
        return {name: parameter for name, parameter in self.module.named_parameters() if id(parameter) not in trained}

    def _share(self) -> None:
        """Give all processes the weights and buffers of process 0."""
        for shared in (self.vector.x, *self.module.buffers(), *self._untrained().values()):
            self.group.broadcast(shared.data)
        self.vector.load(self.vector.x)

    def _collective(self, **options: Any) -> Any:
        """Sums over all learners of all processes."""
        if self.group.size == 1:
            return in_process(self.learners)
        return Processes(self.group, rows=self.learners, **options)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train further parameters of the module, with their own settings, from the next update on.

        Frozen ones among them are left out. Every process must add the same.

        Args:
            param_group: ``params`` and whichever settings are not the optimiser's, such as ``lr``.

        Raises:
            ValueError: in the middle of an update (between the batches of several learners, or with exchanges under
                way), for parameters that are not the module's, and where none is left.
            TypeError: for a setting of torch's SGD that this one has not.
        """
        if self.base is None:
            check_names(type(self), filter(param_group.get, FOREIGN))
        if self._begun:
            self._require_rest("add_param_group")
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        if foreign := [p for p in group["params"] if p not in self._names]:
            self.param_groups.pop()
            raise ValueError(
                f"a parameter of shape {tuple(foreign[0].shape)} is not the module's; all that are trained "
                "must be, as the module is what is averaged and tested"
            )
        added = [p for p in group["params"] if p.requires_grad]
        if self._begun and group["params"] and not added:
            self.param_groups.pop()
            raise ValueError("none of these parameters requires a gradient; unfreeze them before they are added")
        if names := group.get("param_names"):
            trained = zip(names, group["params"], strict=True)
            group["param_names"] = [name for name, parameter in trained if parameter.requires_grad]
        self._frozen += [p for p in group["params"] if not p.requires_grad]
        self._frozen = [p for p in self._frozen if not any(p is other for other in added)]
        group["params"] = added
        if self._begun:
            self._notice()
            before, old = self.core_state, self.vector.d
            self._lay_out()
            self.solver.lay_out(self.vector)
            self.buffers.membership = self._membership
            self.core.weights = self.vector.x if self._fused else None
            fresh = self.core.init(self.vector.x.clone())
            self.core_state = self.core.own(widened(before, fresh, old, self.vector.d))
            self._load()

    def _require_rest(self, what: str) -> None:
        if self._losses:
            raise ValueError(
                f"{what} came when {len(self._losses)} of {self.learners} learners had had their batch of update "
                f"{self.t}; call it when all have"
            )

    # Steps

    def step(self, closure: Closure | None = None) -> Any:
        """One learner's step from the gradients that lie in the parameters; the update comes with the last learner's.

        Afterwards the module holds the next learner's weights.

        Args:
            closure: computes the gradients first, where they do not lie there yet, and gives the loss.

        Returns:
            What ``closure`` returned; None without one.

        Raises:
            ValueError: no parameter has a gradient, or the module is not the one that the optimiser was made for.
            WorkerLost: another process died, or did not answer within the group's timeout.
        """
        if self._uneven:
            self._somebody_trains(True)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._overflowed():
            return loss
        self._take(self._no_loss if loss is None else loss)
        return loss

    @torch.no_grad()
    def _take(self, loss: Loss) -> None:
        """Take the gradients in the parameters, and their loss, as those of the learner whose turn it is."""
        self._check()
        learner, turn = len(self._losses), self.core.round(self.t, self.group.rank * self.learners)
        if learner == 0 and self.learners > 1:  # an update has one rate, which schedules may change after each batch
            self.solver.groups = [current(group) for group in self.param_groups]
        if self.core.by_learner:  # which steps along its own gradient alone
            self.core.step(self.core_state, turn, learner, self.vector.pieces() or self._gathered(0, 1))
        collected = (None, ()) if self.core.by_learner else self._collect(learner)
        self.buffers.keep(learner)
        self._losses.append(loss.detach() if isinstance(loss, Tensor) else loss)
        if len(self._losses) == self.learners:
            losses, self._losses = self._losses, []
            self._tell(turn, losses, *collected)
            self.solver.groups = self.param_groups
        self._load()

    def _collect(self, learner: int) -> Collected:
        """The gradients of a round so far, with this learner's."""
        return self._pieces() or self._gathered(learner, self.learners), ()

    def _gathered(self, row: int, rows: int) -> Tensor:
        """Gradients [rows, d], with those of the parameters copied to one row."""
        self._reserve(rows)
        self.vector.gradient(self._views[row])
        return self._gradients[:rows]

    def _pieces(self) -> Pieces | None:
        """The gradient where it lies, if the update needs no other and no copy of it."""
        alone = self.learners == self.group.size == 1
        return self.vector.pieces() if self._at_once and self._fused and alone else None

    def _tell(self, turn: Turn, losses: list[Loss], sums: Tensor | Pieces | None, sent: Sent = ()) -> None:
        self.core_state = self.core.update(self.core_state, turn, losses, sums, sent)
        self.t += 1
        self.group.heartbeat.updates = self.t

    @torch.no_grad()
    def _load(self) -> None:
        """Put the weights and buffers of the learner whose turn is next into the module."""
        point = self._point()
        if point.data_ptr() != self.vector.x.data_ptr():
            averaging.copy(self.vector.x, point)
        self.vector.load(self.vector.x)
        self.buffers.load(len(self._losses))

    def _point(self) -> Tensor:
        """The weights [d] of the learner whose turn is next."""
        if self._fused and self.learners == 1:  # updated where they lie
            return self.vector.x
        if self.core.by_learner:
            return self.core_state.replicas[len(self._losses)]
        turn = self.core.round(self.t, self.group.rank * self.learners)
        return self.core.algorithm.points(self.core_state, turn).parameters[len(self._losses)]

    def _check(self) -> None:
        """Take up what was written to the weights. Raises ValueError where there is nothing to train with."""
        self._refuse_unfrozen()
        self._membership.check()
        if self.group.size == 1 and not self._any_gradient():
            raise ValueError(
                "no parameter has a gradient; call backward before step, and make the optimiser anew if others took "
                "the place of the module's parameters, as load_state_dict(assign=True) does"
            )
        self._refuse_displaced()
        self.buffers.check()
        self._notice()

    def _any_gradient(self) -> bool:
        return any(parameter.grad is not None for parameter in self.vector.parameters)

    def _refuse_displaced(self) -> None:
        if (parameter := self.vector.displaced()) is not None:
            raise ValueError(
                f"parameter {self._names[parameter]} lies elsewhere than {type(self).__name__} has put it, as after "
                "module.to, module.double, vector_to_parameters or a new .data; make the optimiser after moving the "
                "module, and write weights in place"
            )

    def _notice(self) -> None:
        """Take up weights that were written into the module since the last step, where they are the one learner's."""
        if self.vector.overwritten():
            with torch.no_grad():
                self._follow()

    def _follow(self) -> None:
        self.vector.gather()
        x, point = self.vector.x, self._point()
        if point.data_ptr() != x.data_ptr() and not torch.equal(point, x):
            if self.learners > 1:
                raise ValueError(
                    "weights were written into the module since the last step (by load_state_dict, clamping, an "
                    f"embedding's max_norm?), and each of {self.learners} learners has its own; call take_up() after "
                    "writing, which makes the module's those of all, or train with one learner in each process"
                )
            self.core_state = self.core.moved(self.core_state, x, centre=False)
        self.vector.count()

    def _refuse_unfrozen(self) -> None:
        if thawed := [p for p in self._frozen if p.requires_grad]:
            raise ValueError(
                f"parameter {self._names[thawed[0]]} was frozen when {type(self).__name__} was made and is not any "
                "more; add it with add_param_group({'params': [...]})"
            )
        if frozen := [p for p in self.vector.parameters if not p.requires_grad]:
            raise ValueError(
                f"parameter {self._names[frozen[0]]} was frozen after {type(self).__name__} was made, and momentum, "
                "decay and averaging would move it still; freeze it before, or make a new optimiser"
            )

    # Steps that all processes skip or take alike

    def _overflowed(self) -> bool:
        """Whether a gradient of any process overflowed, so that all skip the step; otherwise undo the scaling."""
        found = getattr(self, "found_inf", None)
        if found is not None and self.group.size > 1:
            found = Processes(self.group).sum(found.double().reshape(1, 1).to(self.vector.x.device))
        return self._unscaled(found)

    def _unscaled(self, found: Tensor | None) -> bool:
        """Whether to skip the step as ``found`` overflows; otherwise undo the scaling."""
        if found is None:
            return False
        if found.item():
            return True
        if (scale := getattr(self, "grad_scale", None)) is not None:
            grads = [p.grad for p in self.vector.parameters if p.grad is not None]
            torch._foreach_mul_(grads, float(1 / scale.double()))
        return False

    def _somebody_trains(self, here: bool) -> bool:
        """Whether a process has a batch, by the word of all."""
        if getattr(self, "found_inf", None) is not None:
            raise ValueError("GradScaler cannot be used within join(); train in bfloat16, which needs no scaling")
        return bool(Processes(self.group).sum(self.vector.x.new_full((1, 1), float(here))).item())

    # What is tested

    @torch.no_grad()
    def average(self) -> nn.Module:
        """The model to test and to save: a copy of the module with the weights that the paper evaluates.

        Its batch-norm statistics are the mean of all learners' of all processes, so every process must call it.

        Returns:
            The copy, in evaluation mode, made anew each time.

        Raises:
            ValueError: a trained parameter has left the module or was moved; processes have drifted apart.
        """
        self._membership.check()
        self._refuse_displaced()
        self._notice()
        values = self.vector.views(self.core.algorithm.model(self.core_state).to(self.vector.x))
        total = self.buffers.total().to(self.vector.x.device)
        joining.compare_weights(self.group, self.core.algorithm, self.vector.x, "average()")
        if self.group.size > 1 and total.numel():
            total = Processes(self.group).sum(total[None])
        return tested(self.module, self.vector.parameters, values, total / (self.learners * self.group.size))
