"""Reusing the output buffers of operators by a plan made beforehand (Crossbow, section 4.5).

An operator writes one output and reads the outputs of others. With reference counts, an output's buffer is free again
when its last reader is done. The operators of one learner are visited in their order, and each takes a free buffer if
one is large enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Operator(NamedTuple):
    """``inputs`` are positions of earlier operators in the list; ``size`` is the output in bytes."""

    inputs: tuple[int, ...]
    size: int


class Plan(NamedTuple):
    """``buffer[i]`` holds the output of operator i; ``sizes`` are the buffers' bytes."""

    buffer: list[int]
    sizes: list[int]


def offline(operators: Sequence[Operator]) -> Plan:
    """The plan of one learner.

    An output takes the smallest free buffer that fits, or else the largest free one grown, or else a new one. Outputs
    that nobody reads are results, and stay.
    """
    readers = Counter(source for operator in operators for source in operator.inputs)
    plan, waiting = Plan([], []), list[int]()  # how many have still to read each buffer
    for place, operator in enumerate(operators):
        free = [buffer for buffer, count in enumerate(waiting) if count == 0]
        fitting = [buffer for buffer in free if plan.sizes[buffer] >= operator.size]
        if fitting:
            chosen = min(fitting, key=plan.sizes.__getitem__)
        elif free:
            chosen = max(free, key=plan.sizes.__getitem__)
            plan.sizes[chosen] = operator.size
        else:
            chosen = len(waiting)
            plan.sizes.append(operator.size)
            waiting.append(0)
        plan.buffer.append(chosen)
        waiting[chosen] = max(1, readers[place])
        for source in operator.inputs:
            waiting[plan.buffer[source]] -= 1
    return plan


def training_operators(outputs: Sequence[int], inputs: Sequence[tuple[int, ...]]) -> list[Operator]:
    """Forward and gradient operators of a network: forward operator i writes ``outputs[i]`` bytes.

    ``inputs[i]`` are the forward operators that i reads (none: the batch itself). The gradient operator of i reads
    the gradient of i's output, i's output and i's inputs, and writes the gradient of its largest input (nothing for
    the batch: gradients of weights lie with the model). Several gradients of one output are merged by their reader.
    """
    operators = [Operator(tuple(reads), size) for size, reads in zip(outputs, inputs, strict=True)]
    arriving: dict[int, list[int]] = {}
    for i in reversed(range(len(outputs))):
        above = tuple(arriving.get(i, ()))
        size = max((outputs[j] for j in inputs[i]), default=0)
        operators.append(Operator((*above, i, *inputs[i]), size))
        for j in inputs[i]:
            arriving.setdefault(j, []).append(len(operators) - 1)
    return operators
