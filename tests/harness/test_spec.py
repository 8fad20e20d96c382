"""Specifications: canonical JSON, ids that name content, seeds that depend on named coordinates alone."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import CHECKOUT, environment

from suite.spec import RunSpec, SpecError, canonical, seed, thaw

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
plain = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=6
)
settings = st.dictionaries(st.text(min_size=1), plain, max_size=5)


@given(settings, st.integers(0, 2**40))
def test_json_round_trip_keeps_everything(values, run_seed):
    spec = RunSpec("any/thing", values, run_seed)
    again = RunSpec.from_json(spec.text)
    assert again == spec
    assert again.id == spec.id
    assert again.text == spec.text
    assert thaw(again.settings) == json.loads(json.dumps(values))


@given(settings)
def test_order_of_keys_and_kind_of_sequence_do_not_matter(values):
    turned = dict(reversed(list(values.items())))
    as_tuples = {k: tuple(v) if isinstance(v, list) else v for k, v in turned.items()}
    assert RunSpec("x", values).id == RunSpec("x", as_tuples).id


@given(plain)
def test_canonical_json_is_a_fixed_point(value):
    text = canonical(value)
    assert canonical(json.loads(text)) == text
    assert text.isascii()


@pytest.mark.parametrize("pair", [(1, 1.0), (1, True), (0, False), (0.0, -0.0), ("1", 1), (None, 0), ([], "")])
def test_values_that_python_calls_equal_are_different_settings(pair):
    one, other = (RunSpec("x", {"a": value}) for value in pair)
    assert one != other
    assert len({one, other}) == 2


def test_a_specification_cannot_be_changed_after_it_is_named():
    inner = {"list": [1, 2], "map": {"a": 1}}
    spec = RunSpec("x", inner)
    name = spec.id
    inner["map"]["a"] = 2
    inner["list"].append(3)
    assert RunSpec.from_json(spec.text).id == name
    with pytest.raises(TypeError):
        spec.settings["list"] = 1
    with pytest.raises(AttributeError):
        spec.settings["list"].append(1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}, {1, 2}, b"bytes"])
def test_what_json_cannot_hold_is_refused_with_its_place(value):
    with pytest.raises(SpecError, match=r"settings\.deep\[1\]"):
        RunSpec("x", {"deep": [0, value]})


def test_settings_that_hold_themselves_or_nest_too_deep_are_refused():
    own: dict = {}
    own |= {"first": [own], "second": own}
    for settings in (own, reduce(lambda inner, _: {"a": inner}, range(3000), {})):
        with pytest.raises(SpecError, match="settings cannot be written as JSON"):
            RunSpec("x", settings)


@pytest.mark.parametrize("arguments", [("",), (3,), ("x", {}, -1), ("x", {}, True), ("x", {}, 1.0), ("x", [])])
def test_a_specification_of_the_wrong_shape_is_refused(arguments):
    with pytest.raises(SpecError):
        RunSpec(*arguments)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        "[" * 100_000,
        '{"experiment":"x","schema":1,"seed":0,"settings":{},"more":1}',
        '{"experiment":"x","schema":2,"seed":0,"settings":{}}',
        '{"experiment":"x","schema":"1","seed":0,"settings":{}}',
        '{"experiment":"x","schema":1,"seed":0,"settings":{"a":NaN}}',
        '{"experiment":"x","schema":1,"seed":0,"settings":[1]}',
    ],
)
def test_foreign_json_is_refused_in_a_sentence(text):
    with pytest.raises(SpecError):
        RunSpec.from_json(text)


def test_ids_and_seeds_are_the_same_in_every_process():
    script = (
        "from suite.spec import RunSpec, seed\n"
        "print(RunSpec('x', {'b': 1, 'a': [0.1, 'é']}, 7).id, seed(7, 'batches', 3), seed(7, 'batches', 4))"
    )
    options = {"cwd": CHECKOUT, "env": environment(PYTHONHASHSEED="1"), "capture_output": True, "text": True}
    printed = subprocess.run([sys.executable, "-c", script], check=True, **options).stdout.split()
    seeds = [str(seed(7, "batches", place)) for place in (3, 4)]
    assert printed == [RunSpec("x", {"a": [0.1, "é"], "b": 1}, 7).id, *seeds]


@given(st.lists(st.integers(0, 99) | st.text(max_size=3), max_size=4))
def test_seeds_separate_coordinates(coordinates):
    mine = seed(*coordinates)
    assert 0 <= mine < 2**63
    assert mine != seed(*coordinates, 0)
    assert mine != seed("", *coordinates)
    assert seed("ab", "c") != seed("a", "bc")
    assert seed(1) != seed("1")


def test_seeds_use_all_of_their_63_bits():
    assert max(seed(i) for i in range(64)) >= 2**62


def test_what_is_not_said_of_a_specification_is_no_setting_and_seed_0():
    assert json.loads(RunSpec("x").text) == {"experiment": "x", "schema": 1, "seed": 0, "settings": {}}
