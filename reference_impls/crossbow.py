"""Crossbow's synchronous model averaging (SMA), of which elastic averaging SGD is the case without momentum.

Alexandros Koliousis, Pijika Watcharapichat, Matthias Weidlich, Luo Mai, Paolo Costa and Peter Pietzuch,
"Crossbow: Scaling Deep Learning with Small Batch Sizes on Multi-GPU Servers", PVLDB 12(11), 2019, Alg. 1.
Sixin Zhang, Anna Choromanska and Yann LeCun, "Deep learning with Elastic Averaging SGD", NeurIPS 2015.

Update rules, for learner j of k with its own replica and batch:

    c_j <- alpha (w_j - z)                                        (line 9)
    w_j <- w_j - gamma grad l(w_j) - c_j                          (lines 8, 10)
    z'  <- z;  z <- z + sum_j c_j + mu (z - z_prev);  z_prev <- z'  (lines 11-13)

With several learners on each of several GPUs (section 3.3), replica 0 of a GPU is its reference model r. The others
are corrected towards r, r takes up their corrections, and Algorithm 1 runs between the references and z. A sum then
has one row for each GPU, which stands for its learners. The reference model of a lone GPU is z, which makes this the
flat form.

    paper   | code         | shape  | unit
    w_j     | replicas     | [m, d] | parameters of the m learners held here
    z       | centre       | [d]    | parameters, the central average model
    z_prev  | previous     | [d]    | parameters
    c_j     | corrections  | [m, d] | parameters
    k       | workers      |        | learners, of which m in this process, on ``devices`` GPUs
    alpha   | alpha        |        | fraction of the distance
    gamma   | lr           | []     | learning rate
    mu      | momentum     |        | of the centre
    tau     | tau          |        | turns from one synchronisation to the next

The model evaluated is z.

Differs from the paper:
- Line 2 starts with no z_prev, and line 11 is lost in the text at hand: z_prev = z at the start, and line 12 reads
  the old z.
- alpha ~ 1/k is taken as exactly 1/k, following k (``alpha=None``). At k = 1 that makes replica and centre
  swap: no descent on any quadratic without momentum. Give alpha there.
- Local momentum and weight decay are absent from Algorithm 1 and present in the authors' code; the optimizer
  has them, each replica with its own memory.
- Section 3.2 restarts when the accuracy does not improve after a change of the rate; nothing here sees the
  accuracy, so whoever calls ``restart`` decides (the training loop: at every drop, if asked to).
- Batch-norm statistics are not mentioned. They are no parameters: here every replica has its own, and z is
  evaluated with their mean (or with recomputed ones).
- Section 3.3 does not say that r takes up its GPU's corrections; otherwise the others would not count.
- Section 3.3 takes one of the reference models as z and averages the others. Here, on two GPUs or more, z stands
  beside all of them, so that every GPU is alike; only on a lone GPU, where no other model is left to average, is
  the reference z itself. It has no gradient of its own then, as z has none in Algorithm 1.
- Two levels are stable up to lower rates than the flat form: at momentum 0.9 two GPUs with two learners each up to
  gamma lambda = 0.55 on a quadratic of curvature lambda, four flat learners up to 1.66.
Differs from the authors' code (github.com/lsds/Crossbow, d4441b35):
- There alpha is a constant 0.1 or 0.2, mu is 0.9 if replicas have momentum and 0 if not, and learners on one
  GPU are averaged flat; ``devices=None`` is that form.
- There a restart copies z to the replicas and keeps all velocities, and a new learner copies replica 0
  with its velocity; ``restarting`` and ``newcomer`` choose.
- There batch-norm statistics are kept per device, shared by its replicas, and never averaged over devices.
- There alpha does not follow k when the auto-tuner changes it; a constant ``alpha`` is that form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from reference_impls.contract import Algorithm, Collective, Optimizer, Points, Sent, Turn
from reference_impls.numbers import on_device


class SMAState(NamedTuple):
    replicas: Tensor  # [m, d]
    memory: Tensor  # the optimizer's, a row per replica
    centre: Tensor  # [d]
    previous: Tensor  # [d] the centre before the last synchronisation


@dataclass(frozen=True)
class SMA(Algorithm[SMAState]):
    """Raises ValueError for values outside the ranges stated."""

    alpha: float | None = None  # in (0, 1]; None: 1 / number of models averaged
    momentum: float = 0.9  # in [0, 1), of the centre
    tau: int = 1  # >= 0; 0: never synchronise
    devices: int | None = None  # >= 1 held here: rows of one stand together, its reference first; None: flat
    restarting: Literal["paper", "code"] = "paper"  # all of Alg. 1 anew, or the replicas only
    newcomer: Literal["centre", "first"] = "centre"  # z at rest (section 4.4), or replica 0 as it moves

    keeps_memory = False  # but the replicas before the step are what is corrected
    replicated = True

    def __post_init__(self) -> None:
        if self.alpha is not None and not 0 < self.alpha <= 1:
            raise ValueError(
                f"crossbow: alpha={self.alpha} must lie in (0, 1]; above 1 a replica jumps past the centre"
            )
        if not 0 <= self.momentum < 1:
            raise ValueError(f"crossbow: momentum={self.momentum} of the centre must lie in [0, 1)")
        if self.tau < 0 or (self.devices is not None and self.devices < 1):
            raise ValueError(
                f"crossbow: tau={self.tau} must be at least 0 (never synchronise) and devices={self.devices} "
                "at least 1, or None for flat averaging"
            )
        if self.restarting not in ("paper", "code") or self.newcomer not in ("centre", "first"):
            raise ValueError(
                f"crossbow: restarting={self.restarting!r} must be 'paper' or 'code' and "
                f"newcomer={self.newcomer!r} 'centre' or 'first'"
            )

    def init(self, x0: Tensor) -> SMAState:
        rows = self.collective.rows
        if rows % (self.devices or 1):
            raise ValueError(
                f"crossbow: {rows} learners cannot be spread evenly over devices={self.devices}; give each as many"
            )
        replicas = x0.expand(rows, -1).clone()
        return SMAState(replicas, self.optimizer.init(replicas), x0.clone(), x0.clone())

    def points(self, state: SMAState, turn: Turn) -> Points:
        numbers = on_device([entry.number for entry in turn.entries], state.centre.device)
        return Points(state.replicas, (1,) * len(turn.entries), numbers)

    def update(
        self, state: SMAState, turn: Turn, losses: Tensor, gradients: Tensor, lr: Tensor, sent: Sent = ()
    ) -> SMAState:
        w, v, z, z_prev = state
        stepped, v = self.optimizer.step(v, w, gradients, lr)
        if self.tau == 0 or turn.t % self.tau:
            return SMAState(stepped, v, z, z_prev)
        c, to_centre = self.corrections(w, z)
        return SMAState(stepped.sub_(c), v, self.averaged(z, z_prev, to_centre, self.per_device(len(w))), z)

    def averaged(self, z: Tensor, z_prev: Tensor, to_centre: Tensor, each: int = 1) -> Tensor:
        """Line 12: the centre [d] moved by corrections [r, d], of which a row stands for ``each`` learners."""
        total = self.collective.sum(to_centre, each=each)
        return (z + total).add_(z - z_prev, alpha=self.momentum)

    def model(self, state: SMAState) -> Tensor:
        return state.centre

    def per_device(self, rows: int) -> int:
        """Learners that share a reference model; 1 when flat, as all are on a lone GPU, whose reference is z."""
        learners = rows // self.devices if self.devices else 1
        return 1 if learners == self.collective.workers else learners

    def corrections(self, w: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """What each replica gives up [m, d], and what of it goes to the centre, a row per reference."""
        learners = self.per_device(len(w))
        alpha = self.alpha or learners / self.collective.workers
        if learners == 1:
            c = (w - z).mul_(alpha)  # in place: another [m, d] would cost as much as the subtraction
            return c, c
        on_device = w.view(-1, learners, *w.shape[1:])
        r, others = on_device[:, 0], on_device[:, 1:]
        to_reference = (self.alpha or 1 / learners) * (others - r[:, None])
        to_centre = alpha * (r - z)
        from_reference = to_centre - to_reference.sum(1)
        return torch.cat([from_reference[:, None], to_reference], 1).flatten(0, 1), to_centre

    def resize(self, state: SMAState) -> SMAState:
        """Learners join or leave, as many on every device; a reference model stays where it is.

        Raises ValueError for fewer than one on a device, or a number that differs between devices.
        """
        rows, devices = self.collective.rows, self.devices or 1
        if rows < devices or rows % devices:
            raise ValueError(
                f"crossbow: cannot resize to {rows} learners on devices={self.devices}; give each device equally "
                "many, and at least one"
            )
        w, v, z, _ = state
        new_w, new_v = (None, None) if self.newcomer == "first" else (z, torch.zeros_like(v[0]))
        return state._replace(replicas=self.regrouped(w, new_w), memory=self.regrouped(v, new_v))

    def regrouped(self, values: Tensor, newcomer: Tensor | None = None) -> Tensor:
        """A row [...] for each learner there is now: on every device the last leave, or others join behind the last.

        A ``newcomer`` is one row [...]; by default it is the first row of its device.
        """
        devices = self.devices or 1
        on_device = values.view(devices, len(values) // devices, *values.shape[1:])
        learners = self.collective.rows // devices
        new = on_device[:, :1] if newcomer is None else newcomer.expand_as(on_device[:, :1])
        joining = new.expand(-1, max(0, learners - on_device.shape[1]), *values.shape[1:])
        return torch.cat([on_device[:, :learners], joining], 1).flatten(0, 1)

    def restart(self, state: SMAState) -> SMAState:
        """After a change of the learning rate (section 3.2): every replica starts again from z."""
        anew = state._replace(replicas=state.centre.expand_as(state.replicas).clone())
        if self.restarting == "code":
            return anew
        return anew._replace(memory=torch.zeros_like(state.memory), previous=state.centre)


def elastic_averaging(optimizer: Optimizer, collective: Collective, alpha: float, tau: int = 1) -> SMA:
    """EA-SGD: SMA whose centre has no momentum."""
    return SMA(optimizer, collective, alpha, momentum=0.0, tau=tau)


def continues(reached: bool, batches_left: int, workers: int) -> bool:
    """Line 3: whether another iteration begins, ``reached`` saying that z has the target accuracy."""
    return not reached and batches_left >= workers
