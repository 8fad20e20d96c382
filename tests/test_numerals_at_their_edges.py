"""Numbers as text where their form changes: signs, thousands, very small and very large."""

from __future__ import annotations

import math

import pytest

from suite.claims.judge import Claim
from suite.claims.measured import exact, interval
from suite.report.numerals import number, ours, printed, tolerance, values, with_unit, with_units


def claim(rule="within", printed=(1.0,), **entries):
    return Claim("p/a/c", "s", "w", rule, "smoke", "nothing", "b", printed, **entries)


@pytest.mark.parametrize(
    ("value", "half_width", "text"),
    [
        (-50_000.0, 0.0, "−50,000"),
        (-9_999.0, 0.0, "−9999"),
        (-123_456.0, 2_000, "−123,500"),
        (-0.5, 0.0, "−0.5"),
        (-3.2e-7, 0.0, "-3.2e-07"),
        (1e-4, 3e-5, "0.000100"),
        (1.2e-4, 3e-5, "0.000120"),
        (9e-5, 3e-5, "9e-05"),
        (1.23456e-5, 0.0, "1.235e-05"),
        (12_345.678, 0.0, "12,346"),
        (1234.5678, 0.0, "1235"),
        (1.23456e-5, 1e-6, "1.23e-05"),
        (999_999_999.0, 0.0, "999,999,999"),
        (1.2e9, 0.0, "1.2e+09"),
        (1e9, 0.0, "1e+09"),
        (2.5, -1.0, "2.5"),
    ],
)
def test_the_form_of_a_number_changes_with_its_size_whatever_its_sign(value, half_width, text):
    assert number(value, half_width) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (50_000.0, "50,000"),
        (-0.123456789, "−0.123456789"),
        (0.000123456789, "0.000123456789"),
        (0.0000123456789, "1.23457e-05"),
        (1_200_000_000.5, "1.2e+09"),
        (0.0, "0"),
    ],
)
def test_a_printed_number_keeps_the_digits_that_are_printed(value, text):
    assert printed(claim(printed=(value,))) == [text]


def test_units_follow_their_numbers():
    assert [with_unit("3", unit) for unit in ("", "1", "%", "s")] == ["3", "3", "3%", "3 s"]
    assert with_unit("46", "% less time") == "46% less time"
    assert with_units(["1", "2"], "images/s, s") == ["1 images/s", "2 s"]
    assert with_units(["1", "2", "3"], "a, b") == ["1 a, b", "2 a, b", "3 a, b"]
    assert with_units([], "s") == []


def test_a_share_of_cases_holds_only_where_it_is_known_exactly():
    holds = claim("holds", ())
    assert ours(exact(0.5), holds) == ["holds in 50% of cases"]
    assert ours(interval(1.0, 0.9, 1.0), holds) == ["holds in 100.0 [90.0, 100.0]% of cases"]
    assert ours(interval(0.0, 0.0, 0.1), holds) == ["holds in 0.0 [0.0, 10.0]% of cases"]


def test_steps_are_named_where_there_are_as_many_as_the_order_has():
    steps = claim("order", (), order=("a", "b"), unit="s")
    assert ours(exact([1, 2]), steps) == ["1 s", "2 s"]
    assert ours(exact([1, 2]), claim("order", (), order=("a", "b", "c"))) == ["b minus a: 1", "c minus b: 2"]


def test_values_that_no_claim_reads_have_no_unit():
    assert values(interval([1.0, 2.0], [0.5, 2.0], [1.5, 2.0])) == ["1.00 [0.50, 1.50]", "2"]
    assert values(interval(1.0, -math.inf, 2.0)) == ["1 [−∞, 2]"]


@pytest.mark.parametrize(
    ("made", "allowed"),
    [
        (claim("order", (), order=("a", "b"), tolerance=(2.0,), unit="s"), "every step above 2 s"),
        (claim("order", (), order=("a", "b"), unit="s"), "every step above 0"),
        (claim(printed=(1.0, 2.0), tolerance=(0.0, 1.0), unit="s"), "± 0, 1 s"),
        (claim(printed=(1.0, 2.0), tolerance=(1.0, 1.0), unit="%"), "± 1 points"),
        (claim(tolerance=(0.5,)), "± 0.5"),
        (claim(relative=0.0), "± 0% of the printed value"),
        (claim("bound", side="below", tolerance=(-1.0,), unit="x"), "± −1 x"),
    ],
)
def test_a_tolerance_is_told_with_its_unit(made, allowed):
    assert tolerance(made) == allowed
