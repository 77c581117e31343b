import random
from itertools import islice, permutations
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetite.code import linear_extensions as module
from magnetite.code.linear_extensions import LinearExtensions


@st.composite
def small_orders(draw) -> LinearExtensions:
    size = draw(st.integers(1, 7))
    return LinearExtensions(
        tuple(draw(st.integers(0, (1 << later) - 1)) & draw(st.integers(0, 127)) for later in range(size))
    )


@given(small_orders())
def test_count_and_iteration_agree_with_brute_force(orders):
    size = len(orders.before)
    allowed = [
        order
        for order in permutations(range(size))
        if all(not orders.before[node] & ~sum(1 << done for done in order[:i]) for i, node in enumerate(order))
    ]
    assert list(orders) == allowed
    assert orders.count == len(allowed)


@given(small_orders(), st.integers(0, 2**32))
def test_a_sample_is_one_of_them_and_the_normal_form_is_the_smallest(orders, seed):
    randomness = random.Random(seed)
    listed = list(orders)
    assert orders.sample(randomness) in listed
    keys = randomness.sample(range(100), len(orders.before))
    assert orders.smallest(keys) == min(listed, key=lambda order: [keys[node] for node in order])


def test_long_lists_are_counted_exactly_and_listed_lazily():
    free = LinearExtensions((0,) * 1000)
    assert free.count == factorial(1000)
    assert next(iter(free)) == tuple(range(1000))
    then_return = LinearExtensions((0,) * 300 + ((1 << 300) - 1,))
    assert then_return.count == factorial(300)
    assert len(set(islice(then_return, 50))) == 50


def test_orders_that_cannot_be_counted_can_be_listed(monkeypatch):
    monkeypatch.setattr(module, "MAX_STATES", 5)
    interdependent = LinearExtensions((0, 0, 0, 0, 0b11, 0b110, 0b1100, 0b1001))  # a crown: neither series nor parallel
    with pytest.raises(ValueError, match=r"8 interdependent statements .* sample"):
        _ = interdependent.count
    assert next(iter(interdependent)) == tuple(range(8))
