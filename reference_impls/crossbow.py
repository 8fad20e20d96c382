"""Crossbow's synchronous model averaging (SMA), of which elastic averaging SGD is the case without momentum.

Alexandros Koliousis, Pijika Watcharapichat, Matthias Weidlich, Luo Mai, Paolo Costa and Peter Pietzuch,
"Crossbow: Scaling Deep Learning with Small Batch Sizes on Multi-GPU Servers", PVLDB 12(11), 2019, Alg. 1.
Sixin Zhang, Anna Choromanska and Yann LeCun, "Deep learning with Elastic Averaging SGD", NeurIPS 2015.

Update rules, for learner j of k with its own replica and batch:

    c_j <- alpha (w_j - z)                                        (line 9)
    w_j <- w_j - gamma grad l(w_j) - c_j                          (lines 8, 10)
    z'  <- z;  z <- z + sum_j c_j + mu (z - z_prev);  z_prev <- z'  (lines 11-13)

With several learners on each GPU (section 3.3), replica 0 of a GPU is its reference model r. The others are
corrected towards r, r takes up their corrections, and Algorithm 1 runs between the references and z. A sum then
has one row for each GPU, which stands for its learners.

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
- Line 11 and the first z_prev are lost in print; z_prev = z at the start, and line 12 reads the old z.
- alpha ~ 1/k is taken as exactly 1/k, following k (``alpha=None``). At k = 1 that makes replica and centre
  swap: no descent on any quadratic without momentum. Give alpha there.
- Local momentum and weight decay are absent from Algorithm 1 and present in the authors' code; the descent
  has them, each replica with its own memory.
- Section 3.2 restarts when the accuracy does not improve after a change of the rate; nothing here sees the
  accuracy, so whoever calls :func:`restart` decides (the training loop: at every drop, if asked to).
- Batch-norm statistics are not mentioned. They are no parameters: here every replica has its own, and z is
  evaluated with their mean (or with recomputed ones).
- Section 3.3 does not say that r takes up its GPU's corrections; otherwise the others would not count.
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

from reference_impls.contract import Ask, Collective, Descent, Told, Turn


@dataclass(frozen=True)
class Config:
    """Raises ValueError for values outside the ranges stated."""

    alpha: float | None = None  # in (0, 1]; None: 1 / number of models averaged
    momentum: float = 0.9  # in [0, 1)
    tau: int = 1  # >= 0; 0: never synchronise
    devices: int | None = None  # >= 1 held here: rows of one stand together, its reference first; None: flat
    restarting: Literal["paper", "code"] = "paper"  # all of Alg. 1 anew, or the replicas only
    newcomer: Literal["centre", "first"] = "centre"  # z at rest (section 4.4), or replica 0 as it moves

    def __post_init__(self) -> None:
        if self.alpha is not None and not 0 < self.alpha <= 1:
            raise ValueError(
                f"crossbow: alpha={self.alpha} must lie in (0, 1]; above 1 a replica jumps past the centre"
            )
        if not 0 <= self.momentum < 1:
            raise ValueError(f"crossbow: momentum={self.momentum} must lie in [0, 1)")
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


def elastic_averaging(alpha: float, tau: int = 1) -> Config:
    """EA-SGD: SMA whose centre has no momentum."""
    return Config(alpha=alpha, momentum=0.0, tau=tau)


class State(NamedTuple):
    replicas: Tensor  # [m, d]
    memory: Tensor  # the descent's, a row per replica
    centre: Tensor  # [d]
    previous: Tensor  # [d] the centre before the last synchronisation


def init(config: Config, x0: Tensor, workers: int, rows: int, descent: Descent) -> State:
    if rows % (config.devices or 1):
        raise ValueError(
            f"crossbow: {rows} learners cannot be spread evenly over devices={config.devices}; give each as many"
        )
    replicas = x0.expand(rows, -1).clone()
    return State(replicas, descent.init(replicas), x0.clone(), x0.clone())


def ask(config: Config, state: State, turn: Turn) -> Ask:
    numbers = torch.tensor([entry.number for entry in turn.entries], device=state.centre.device)
    return Ask(state.replicas, (1,) * len(turn.entries), numbers)


def per_device(config: Config, rows: int) -> int:
    """Learners that share a reference model; 1 when flat."""
    return rows // config.devices if config.devices else 1


def corrections(config: Config, w: Tensor, z: Tensor, workers: int) -> tuple[Tensor, Tensor]:
    """What each replica gives up [m, d], and what of it goes to the centre, a row per reference."""
    learners = per_device(config, len(w))
    alpha = config.alpha or learners / workers
    if learners == 1:
        c = (w - z).mul_(alpha)  # in place: another [m, d] would cost as much as the subtraction
        return c, c
    on_device = w.unflatten(0, (-1, learners))
    r, others = on_device[:, 0], on_device[:, 1:]
    to_reference = (config.alpha or 1 / learners) * (others - r[:, None])
    to_centre = alpha * (r - z)
    from_reference = to_centre - to_reference.sum(1)
    return torch.cat([from_reference[:, None], to_reference], 1).flatten(0, 1), to_centre


def tell(
    config: Config,
    state: State,
    turn: Turn,
    told: Told,
    *,
    collective: Collective,
    descent: Descent,
    lr: Tensor,
) -> State:
    w, v, z, z_prev = state
    stepped, v = descent.step(v, w, told.sums, lr)
    if config.tau == 0 or turn.t % config.tau:
        return State(stepped, v, z, z_prev)
    c, to_centre = corrections(config, w, z, collective.workers)
    total = collective.sum(to_centre, each=per_device(config, len(w)))
    moved = (z + total).add_(z - z_prev, alpha=config.momentum)
    return State(stepped.sub_(c), v, moved, z)


def model(config: Config, state: State, collective: Collective) -> Tensor:
    return state.centre


def continues(reached: bool, batches_left: int, workers: int) -> bool:
    """Line 3: whether another iteration begins, ``reached`` saying that z has the target accuracy."""
    return not reached and batches_left >= workers


def regrouped(config: Config, rows: Tensor, count: int, newcomer: Tensor | None = None) -> Tensor:
    """``rows`` [m, ...] as [count, ...]: on every device the last ones leave, or newcomers join behind the last.

    A ``newcomer`` is one row [...]; by default it is the first row of its device.
    """
    on_device = rows.unflatten(0, (config.devices or 1, -1))
    learners = count // len(on_device)
    new = on_device[:, :1] if newcomer is None else newcomer.expand_as(on_device[:, :1])
    joining = new.expand(-1, max(0, learners - on_device.shape[1]), *rows.shape[1:])
    return torch.cat([on_device[:, :learners], joining], 1).flatten(0, 1)


def resize(config: Config, state: State, rows: int) -> State:
    """Learners join or leave, as many on every device; a reference model stays where it is.

    Raises ValueError for fewer than one on a device, or a number that differs between devices.
    """
    devices = config.devices or 1
    if rows < devices or rows % devices:
        raise ValueError(
            f"crossbow: cannot resize to {rows} learners on devices={config.devices}; give each device equally many, "
            "and at least one"
        )
    w, v, z, _ = state
    new_w, new_v = (None, None) if config.newcomer == "first" else (z, torch.zeros_like(v[0]))
    return state._replace(replicas=regrouped(config, w, rows, new_w), memory=regrouped(config, v, rows, new_v))


def restart(config: Config, state: State) -> State:
    """After a change of the learning rate (section 3.2): every replica starts again from z."""
    anew = state._replace(replicas=state.centre.expand_as(state.replicas).clone())
    if config.restarting == "code":
        return anew
    return anew._replace(memory=torch.zeros_like(state.memory), previous=state.centre)
