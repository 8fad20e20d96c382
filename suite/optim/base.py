"""What all optimisers share, with their state: as torch hands it over, or in a folder to resume from."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from suite.optim import joining
from suite.optim.files import newest_checkpoint, write_checkpoint
from suite.optim.module import Buffers
from suite.optim.solver import Wrapped
from suite.optim.steps import Steps
from suite.training.checkpoint import flatten, rebuild

Pass = tuple[dict[str, Tensor], int]  # torch's random numbers when it began, and the batches it has given


class Algorithm(Steps):
    """A paper's algorithm on ``module``, whose parameters become views of one vector.

    Args:
        module: compiled or not; its parameters that require gradients are trained, the frozen ones stay as they are.
        params: parameters or parameter groups where not all of them are trained alike, as torch's optimisers take
            them: each group may have its own ``lr``, ``momentum`` and ``weight_decay``.
        fused: step by torch's fused SGD and update in place; by default where torch has it. False is the solver and
            the code that made the papers' figures, several times slower.
        group: the processes to train with; by default all of ``torchrun`` or ``init_process_group``, or this one.

    Weights may be written in place between steps (``load_state_dict``, clamping): a process's one learner goes on
    from there; where several take turns ``step`` raises ValueError until ``take_up`` is called. What is written by
    ``.data`` is not seen, so call it then too. After moving the module (``to``, ``double``) make a new optimiser.

    A parameter without a gradient, which ``torch.optim`` passes over, has one of zeros here, as algorithms exchange
    whole vectors: momentum, decay and averaging move it. ``step`` without any gradient raises ValueError in a lone
    process; among several it is that of one without a batch. Two optimisers may share a module, and raise ValueError
    where both have several learners and the module has buffers, which each would keep.

    Raises ValueError for a module that cannot be trained this way, for settings out of range, and where processes
    differ in either.
    """

    _no_join = ""  # why a process without batches cannot go on exchanging
    _pass: Pass | None = None  # of ``epoch``, under way
    _resumed: Pass | None = None  # that ``resume`` has found

    def state_dict(self) -> dict[str, Any]:
        """``param_groups`` as torch's, and under ``state`` plain numbers and tensors by name: this process's part.

        With the module's state it is everything the next update depends on besides the random numbers: a training
        that loads both goes on to the same bits. ``torch.save`` and :func:`suite.optim.save_file` write it. Exchanges
        under way are waited for, and kept as their sums.

        Returns:
            The two, with tensors that training goes on without changing.
        """
        self._notice()
        tensors = {"gradients": self._waiting()}
        plain: dict[str, Any] = {"t": self.t, "facts": self._facts(), "rank": self.group.rank}
        # As text, since a file of the state marks its tensors in the same way.
        plain["core"] = json.dumps(flatten(self.core_state, "core", tensors))
        plain["losses"] = json.dumps(flatten(self._losses, "losses", tensors))
        flatten(self.buffers.sets(), "buffer", tensors)
        tensors = {name: tensor.clone() for name, tensor in tensors.items()}
        further = self._further_state()
        if self.solver.groups is not self.param_groups:  # within an update of several learners
            further["settings"] = self.solver.groups
        shown = dict(self.state)  # hooks may have left something there
        self.state.update({"tensors": tensors, "plain": plain, **further})  # type: ignore[dict-item]
        try:
            return super().state_dict()
        finally:
            self.state.clear()
            self.state.update(shown)

    def _waiting(self) -> Tensor:
        """Gradients [n, d] of learners that have had their batch of a round and step with the last."""
        return self._gradients[: 0 if self.core.by_learner else len(self._losses)]

    def _further_state(self) -> dict[str, Any]:
        return {"base": self.solver.state()} if isinstance(self.solver, Wrapped) else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what ``state_dict`` returned; the module takes up its weights and buffers.

        Exchanges under way are waited for and forgotten, so every process must call it after the same update.

        Args:
            state_dict: what this process's ``state_dict`` returned.

        Raises:
            ValueError: the state of another optimiser, model, number of learners or processes, or another process's.
        """
        if missing := {"state", "param_groups"} - set(state_dict):
            raise ValueError(f"this is not the state of {type(self).__name__}: it has no {sorted(missing)[0]!r}")
        super().load_state_dict(state_dict)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up what ``load_state_dict`` has read, between its hooks."""
        held = state["state"]
        self._check_state(held)
        self._settle()
        super().__setstate__({"state": defaultdict(dict), "param_groups": state["param_groups"]})
        self.solver.groups = held.get("settings", self.param_groups)
        self.solver.lay_out(self.vector)  # lets go of the rows before
        tensors, plain = held["tensors"], held["plain"]
        here = {name: value.to(self._gradients.device, copy=True) for name, value in tensors.items()}
        self.core_state = self.core.own(rebuild(json.loads(plain["core"]), here, self.core_state))
        self._losses = rebuild(json.loads(plain["losses"]), here)
        self.t = plain["t"]
        self._restore(held)
        self._restore_gradients(here["gradients"])
        self._restore_buffers(here)
        self.group.heartbeat.updates = self.t
        self._load()

    def _check_state(self, held: Mapping[str, Any]) -> None:
        """Raise ValueError for a state that this optimiser cannot go on from."""
        if "plain" not in held:
            raise ValueError(f"this is not the state of {type(self).__name__}: nothing is called 'plain' in it")
        if not isinstance(held["plain"]["core"], str):
            raise ValueError("the state was written by an earlier version, in a form that is not read any more")
        now = {**self._facts(), "rank": self.group.rank}
        then = {**held["plain"]["facts"], "rank": held["plain"]["rank"]}
        for name in sorted({*now, *then}):
            if now.get(name) != then.get(name):
                raise ValueError(
                    f"the state was written with {name} = {then.get(name)!r}, not {now.get(name)!r}; make the "
                    "optimiser with the same settings, and give every process its own part"
                )
        stepped = self.core.algorithm.replicated and not len(held["tensors"]["gradients"])
        if held["plain"]["losses"] != "[]" and stepped and not self.core.by_learner:
            raise ValueError(
                "the state was saved between two learners of an update, when one had stepped; make the optimiser "
                "with fused as it was then, or save after the last learner's step"
            )

    def _restore_gradients(self, waiting: Tensor) -> None:
        """Take up gradients [n, d] of learners that had not stepped, where a round was saved before its end."""
        if self.core.by_learner:  # the optimiser that saved them steps its learners together
            turn = self.core.round(self.t, self.group.rank * self.learners)
            for learner, gradient in enumerate(waiting):
                self.core.step(self.core_state, turn, learner, gradient[None])
        elif len(waiting):
            self._reserve(self.learners)
            self._waiting().copy_(waiting)

    def _restore_buffers(self, here: Mapping[str, Tensor]) -> None:
        sets: list[dict[str, Tensor]] = [{} for _ in range(self.learners)]
        for key, value in here.items():
            kind, _, rest = key.partition("/")
            learner, _, name = rest.partition("/")
            if kind == "buffer":
                sets[int(learner)][name] = value
        self.buffers.put(sets[0])
        self.buffers.own = sets if self.learners > 1 else []

    @torch.no_grad()
    def take_up(self) -> None:
        """Make the module's present weights and buffers those of all learners and of the centre.

        For weights written by ``module.load_state_dict``, say. Gradients that wait for their update are dropped;
        momentum stays, but a centre's begins anew. Every process must call it, and takes up those of process 0.

        Raises:
            ValueError: exchanges are under way, or the module was moved.
        """
        self._refuse_displaced()
        self.group.everyone(None, "take_up()")
        self.vector.gather()
        self._share()
        self._losses, self.solver.groups = [], self.param_groups
        self.core_state = self.core.moved(self.core_state, self.vector.x, centre=True)
        self.solver.lay_out(self.vector)  # lets go of the rows before
        self.buffers = Buffers(self._membership, self.learners)
        self._load()

    def __getstate__(self) -> dict[str, Any]:
        """Refused with TypeError: what a copy would need, it has only together with a module of its own."""
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled, as its weights are the module's; copy the module, "
            "make an optimiser of the copy, and hand it this one's state_dict()"
        )

    def _settle(self) -> None:
        """Wait for every exchange under way, which would write to memory that the next ones use."""

    def _restore(self, held: Mapping[str, Any]) -> None:
        """Take what ``_further_state`` gave."""
        if isinstance(self.solver, Wrapped):
            self.solver.load(held["base"])

    def epoch(self, loader: Iterable[Any]) -> Iterator[Any]:
        """The batches of one pass over ``loader``, which a resumed training takes up where it was saved.

        A loader that shuffles draws its order when the pass begins, so ``save`` within the pass keeps torch's random
        numbers of that moment. After ``resume`` the first pass draws the same order, leaves out the batches that were
        had, and goes on with the random numbers of the save.

        Args:
            loader: of batches, such as a ``DataLoader``.

        Returns:
            An iterator over its batches. A pass that is left by ``break`` is over: save within it before that.

        Raises:
            ValueError: the pass that was saved had more batches than the loader has.
        """
        begun, had, now = self._random_state(), 0, None
        if self._resumed is not None:
            now = begun
            begun, had = self._resumed
            self._resumed = None
            self._set_random_state(begun)
        batches = iter(loader)
        if (found := sum(1 for _ in itertools.islice(batches, had))) < had:
            raise ValueError(
                f"the pass was saved after {had} batches, and the loader gives {found}; resume with the loader, and "
                "the batch size, that it was saved with"
            )
        if now is not None:
            self._set_random_state(now)
        try:
            for batch in batches:
                had += 1
                self._pass = begun, had
                yield batch
        finally:  # also where the loop is left
            self._pass = None

    def _random_state(self) -> dict[str, Tensor]:
        state = {"cpu": torch.get_rng_state()}
        if self.vector.x.is_cuda:
            state["cuda"] = torch.cuda.get_rng_state(self.vector.x.device)
        return state

    def _set_random_state(self, state: Mapping[str, Tensor]) -> None:
        torch.set_rng_state(state["cpu"].cpu())
        if "cuda" in state:
            torch.cuda.set_rng_state(state["cuda"].cpu(), self.vector.x.device)

    def save(self, folder: str | Path, **plain: Any) -> None:
        """Write this process's state, torch's random numbers and ``plain`` values of the caller's under ``folder``.

        The module's weights are all among it, those that are not trained too. Every process must call it after the
        same update; older states are removed once all have written theirs, so a kill at any moment leaves one that is
        whole.

        Args:
            folder: where the states are kept; each process writes into one of its own.
            plain: what ``resume`` is to return, such as the number of the epoch: plain values and tensors.

        Raises:
            ValueError: the processes are at different updates, have different rates, or have drifted apart.
            TypeError: a value of the caller's is neither plain nor a tensor.
            OSError: nothing can be written there.
        """
        tensors = {f"random/{kind}": value for kind, value in self._random_state().items()}
        begun, had = self._pass or ({}, 0)
        tensors |= {f"epoch/{kind}": value for kind, value in begun.items()}
        tensors |= {f"untrained/{name}": parameter.detach() for name, parameter in self._untrained().items()}
        values = {"state": flatten(self.state_dict(), "state", tensors), "plain": flatten(plain, "plain", tensors)}
        self.group.agree(self._group_settings())
        joining.compare_weights(self.group, self.core.algorithm, self.vector.x, "save()")
        write_checkpoint(Path(folder), self.group, self.t, values | {"had": had}, tensors)

    def resume(self, folder: str | Path) -> dict[str, Any]:
        """Go on from the newest state under ``folder`` that every process has whole.

        Training then ends in the same bits as if it had not been interrupted. Where there is none nothing changes;
        a warning says so where there are states, each damaged or missing in some process. Every process must call it.

        Args:
            folder: the one that was given to ``save``.

        Returns:
            The ``plain`` values of the state; an empty dictionary where there is none.

        Raises:
            ValueError: as ``load_state_dict``.
        """
        found = newest_checkpoint(Path(folder), self.group)
        if found is None:
            return {}
        values, tensors = found
        untrained = {name: p for name, p in self._untrained().items() if f"untrained/{name}" in tensors}
        for name, parameter in untrained.items():
            if (shape := tensors[f"untrained/{name}"].shape) != parameter.shape:
                raise ValueError(
                    f"the state was written with a parameter {name} of shape {tuple(shape)}, not "
                    f"{tuple(parameter.shape)}; make the same module"
                )
        self.load_state_dict(rebuild(values["state"], tensors))
        with torch.no_grad():
            for name, parameter in untrained.items():
                parameter.copy_(tensors[f"untrained/{name}"])
        self._set_random_state(_below("random/", tensors))
        begun = _below("epoch/", tensors)
        self._resumed = self._pass = (begun, values["had"]) if begun else None
        return dict(rebuild(values["plain"], tensors))

    @contextlib.contextmanager
    def join(self) -> Iterator[None]:
        """Let processes have unequally many batches: each goes on exchanging until the last has stepped for good.

            with opt.join():
                for inputs, targets in loader:
                    ...
                    opt.step()

        A process without a batch exchanges gradients of zeros, as in ``torch.nn.parallel.DistributedDataParallel``'s
        join; momentum, decay and averaging go on. Every process must enter it. Each step costs a sum of one number.

        Returns:
            A context; on leaving it a process exchanges until all have no batch any more.

        Raises:
            ValueError: a gradient leaves before the step, or counts for more than itself.
        """
        if self._no_join:
            raise ValueError(self._no_join)
        self._uneven = self.group.size > 1
        try:
            yield
            while self._uneven and self._somebody_trains(False):
                self.zero_grad()
                self._take(0.0)
        finally:
            self._uneven = False


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those whose name begins with ``prefix``, by the rest of it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
