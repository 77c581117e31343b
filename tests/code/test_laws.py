"""Both halves of the law on random programs, checked by running them."""

import ast
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetite import code
from magnetite.code.dependencies import blocks
from tests.code.aliasing_programs import compare
from tests.code.random_programs import Programs, compiled, outcome, reordered, shuffled

SEEDS = range(4)


def program(seed: int) -> tuple[str, random.Random]:
    rng = random.Random(seed)
    return ast.unparse(ast.parse(Programs(rng).generate())), rng


def outcomes(source: str) -> list | None:
    """The outcomes of some runs; None for an invalid program (`nonlocal` after a use, unbound names)."""
    try:
        function = compiled(source)
        return [outcome(function, seed) for seed in SEEDS]
    except (SyntaxError, UnboundLocalError, NameError):
        return None


def agree(one: list, other: list) -> bool:
    return all(a == b for a, b in zip(one, other, strict=True) if a is not None and b is not None)


def check_soundness(seed: int) -> tuple[int, int]:
    """Reorder at random, legally or not: equal hashes must mean equal outcomes. Count equal and different hashes."""
    source, rng = program(seed)
    expected, name = outcomes(source), code.build(source).hash
    equal = different = 0
    for _ in range(6):
        changed = shuffled(source, rng, rng.randint(1, 2))
        if changed == source:
            continue
        found = outcomes(changed)
        if found is None or expected is None:
            continue
        if code.build(changed).hash == name:
            assert agree(expected, found), f"{source}\n\n{changed}"
            equal += 1
        else:
            different += 1
    return equal, different


@given(st.integers(0, 10**9))
def test_legal_orders_have_one_hash_and_one_outcome(seed):
    source, rng = program(seed)
    changed = reordered(source, rng, blocks)
    assert code.build(changed).hash == code.build(source).hash
    one, other = outcomes(source), outcomes(changed)
    assert one is not None and other is not None and agree(one, other)


@given(st.integers(0, 10**9))
def test_programs_of_equal_hash_do_the_same(seed):
    check_soundness(seed)


@pytest.mark.slow
def test_thousands_of_programs_of_equal_hash_do_the_same():
    counts = [check_soundness(seed) for seed in range(4000)]
    assert sum(equal for equal, _ in counts) > 5000
    assert sum(different for _, different in counts) > 5000


@given(st.integers(0, 10**9))
def test_programs_that_reach_objects_through_containers(seed):
    found = compare(seed)
    assert not found.contradictions and not found.broken


@pytest.mark.slow
def test_hundreds_of_programs_that_reach_objects_through_containers():
    counts = [compare(seed) for seed in range(600)]
    assert not [text for found in counts for text in found.contradictions + found.broken]
    assert sum(found.equal for found in counts) > 3000
    assert sum(found.different for found in counts) > 2000


def test_other_processes_find_the_same_hash():
    source = program(3)[0]
    command = f"from magnetite import code; print(code.build({source!r}).hash)"
    for salt in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", command],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": salt, "PYTHONPATH": ":".join(sys.path)},
        )
        assert run.stdout.strip() == code.build(source).hash
