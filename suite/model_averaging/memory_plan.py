"""Reusing the output buffers of operators (Crossbow, section 4.5): a plan made beforehand, and a shared pool.

An operator writes one output and reads the outputs of others. With reference counts, an output's buffer returns to
the pool when its last reader is done. *Offline*, the operators of one learner are visited in their order and each
takes a free buffer if one is large enough. *Online*, the learners of a device share the pool, as in
:class:`suite.model_averaging.engine.Engine`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Operator:
    """``inputs`` are positions of earlier operators in the list; ``size`` is the output in bytes."""

    name: str
    inputs: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Plan:
    """``buffer[i]`` holds the output of operator i; ``sizes`` are the buffers' bytes."""

    buffer: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return sum(self.sizes)


class Pool:
    """Buffers of which each is held by at most one output at a time."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.holders: list[int] = []  # live references on each buffer

    def take(self, size: int, references: int) -> int:
        """The smallest free buffer that fits, or else the largest free one grown, or else a new one."""
        free = [i for i, count in enumerate(self.holders) if count == 0]
        fitting = [i for i in free if self.sizes[i] >= size]
        if fitting:
            chosen = min(fitting, key=lambda i: (self.sizes[i], i))
        elif free:
            chosen = max(free, key=lambda i: (self.sizes[i], -i))
            self.sizes[chosen] = size
        else:
            chosen = len(self.sizes)
            self.sizes.append(size)
            self.holders.append(0)
        assert self.holders[chosen] == 0
        self.holders[chosen] = references
        return chosen

    def release(self, buffer: int) -> None:
        """One reader less."""
        assert self.holders[buffer] > 0, "a buffer was released more often than it was taken"
        self.holders[buffer] -= 1


def readers(operators: Sequence[Operator]) -> list[int]:
    """How many operators read each output; the outputs that nobody reads (results) count one, and stay."""
    counts = Counter(source for operator in operators for source in operator.inputs)
    return [max(1, counts[place]) for place in range(len(operators))]


def offline(operators: Sequence[Operator]) -> Plan:
    """The plan of one learner."""
    pool, placed = Pool(), list[int]()
    for operator, references in zip(operators, readers(operators), strict=True):
        placed.append(pool.take(operator.size, references))
        for source in operator.inputs:
            pool.release(placed[source])
    return Plan(tuple(placed), tuple(pool.sizes))


def training_operators(outputs: Sequence[int], inputs: Sequence[tuple[int, ...]]) -> list[Operator]:
    """Forward and gradient operators of a network: forward operator i writes ``outputs[i]`` bytes.

    ``inputs[i]`` are the forward operators that i reads (none: the batch itself). The gradient operator of i reads
    the gradient of i's output, i's output and i's inputs, and writes the gradient of its largest input (nothing for
    the batch: gradients of weights lie with the model). Several gradients of one output are merged by their reader.
    """
    operators = [
        Operator(f"forward {i}", tuple(reads), size)
        for i, (size, reads) in enumerate(zip(outputs, inputs, strict=True))
    ]
    arriving: dict[int, list[int]] = {}
    for i in reversed(range(len(outputs))):
        above = tuple(arriving.get(i, ()))
        size = max((outputs[j] for j in inputs[i]), default=0)
        operators.append(Operator(f"gradient {i}", (*above, i, *inputs[i]), size))
        for j in inputs[i]:
            arriving.setdefault(j, []).append(len(operators) - 1)
    return operators
