"""Buffer reuse by reference counts: by hand, and as properties of any graph."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from suite.model_averaging.memory_plan import Operator, offline, training_operators


def test_a_chain_by_hand():
    """a -> b -> c: c takes a's buffer, which nobody reads any more; 8 + 4 bytes instead of 8 + 4 + 8."""
    plan = offline([Operator((), 8), Operator((0,), 4), Operator((1,), 8)])
    assert plan.buffer == [0, 1, 0]
    assert plan.sizes == [8, 4]


def test_training_keeps_every_output_until_its_gradient():
    """Equal layers: n forward outputs live when the first gradient is written, so at most half is saved."""
    n, size = 20, 10
    operators = training_operators([size] * n, [(), *((i,) for i in range(n - 1))])
    plan = offline(operators)
    apart = sum(o.size for o in operators)
    assert apart == size * (2 * n - 1)
    assert n * size < sum(plan.sizes) <= (n + 1) * size
    assert sum(plan.sizes) / apart > 0.5


@st.composite
def graphs(draw):
    size = draw(st.integers(1, 14))
    operators = []
    for i in range(size):
        inputs = tuple(sorted(draw(st.sets(st.integers(0, i - 1), max_size=3)))) if i else ()
        operators.append(Operator(inputs, draw(st.integers(0, 9))))
    return operators


@settings(deadline=None, max_examples=60)
@given(graphs())
def test_no_buffer_is_taken_while_its_output_is_still_to_be_read(operators):
    plan = offline(operators)
    last = {
        i: max([j for j, o in enumerate(operators) if i in o.inputs], default=len(operators))
        for i in range(len(operators))
    }
    for later in range(len(operators)):
        for earlier in range(later):
            if plan.buffer[earlier] == plan.buffer[later]:
                assert last[earlier] < later
    assert all(plan.sizes[b] >= o.size for b, o in zip(plan.buffer, operators, strict=True))
    assert sum(plan.sizes) <= sum(o.size for o in operators)


def test_the_smallest_free_buffer_that_fits_is_taken_and_else_the_largest_grown():
    """The fourth reads buffers of 6, 3 and 5, which are free from there on."""
    three = [Operator((), size) for size in (6, 3, 5)]
    plan = offline([*three, Operator((0, 1, 2), 9), *(Operator((), size) for size in (4, 7, 8))])
    assert plan.buffer == [0, 1, 2, 3, 2, 0, 1]
    assert plan.sizes == [7, 8, 5, 9]


def test_the_operators_of_a_training_by_hand():
    """2 reads 0 and 1, 1 reads 0, which reads the batch: what arrives at 0 are the gradients of 2 and of 1."""
    forward = [Operator((), 4), Operator((0,), 8), Operator((0, 1), 2)]
    backward = [Operator((2, 0, 1), 8), Operator((3, 1, 0), 4), Operator((3, 4, 0), 0)]
    assert training_operators([4, 8, 2], [(), (0,), (0, 1)]) == [*forward, *backward]
